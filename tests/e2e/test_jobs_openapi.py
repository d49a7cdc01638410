"""The OpenAPI document says what the server does, and the server does what it says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

OPERATIONS = Path(__file__).parent / "openapi_ops.py"

# Left out, with the reason: input may fit the schema and still name a precondition, an operation
# or an environment variable that this server does not have; and POST /v1/operations/{name} is not
# in the document, because each operation has a typed path of its own beside it.
EXCLUDED_CHECKS = "positive_data_acceptance,unsupported_method,allow_header_conformance"


@pytest.fixture
def document(start_server: Any) -> Any:
    server = start_server(operations=OPERATIONS)
    with httpx.Client(base_url=server.url, verify=False, timeout=60) as http:
        return server, http.get("/openapi.json").json()


@pytest.mark.timeout(300)
def test_schemathesis_finds_no_500_and_no_undocumented_answer(start_server: Any) -> None:
    # Without load tests: those that it would make up and have accepted would really be run.
    server = start_server("--no-bench", operations=OPERATIONS)
    command = [
        str(Path(sys.executable).with_name("st")), "run", f"{server.url}/openapi.json",
        # A live stream does not end while its job waits; test_log_stream.py is about it.
        "--exclude-path-regex", "/logs/stream",
        "--exclude-checks", EXCLUDED_CHECKS,
        "--phases", "examples,coverage,fuzzing",
        "--max-examples", "5", "--generation-deterministic", "--request-timeout", "30",
        "--no-color",
    ]  # fmt: skip
    # A file of its own to run in: it keeps what it learned beside it.
    done = subprocess.run(
        command,
        text=True,
        capture_output=True,
        timeout=280,
        check=False,
        cwd=server.state_dir.parent,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "Tested: " in done.stdout
    assert not [line for line in server.log() if line.get("status") == 500]


def test_each_operation_has_its_own_request_and_response_schema(document: Any) -> None:
    """J13: OpenAPI 3.1 with the schema of every operation."""
    server, openapi = document
    assert openapi["openapi"].startswith("3.1")
    schemas = openapi["components"]["schemas"]
    post = openapi["paths"]["/v1/operations/plan"]["post"]
    body = post["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    assert schemas[body]["properties"]["input"] == {"$ref": "#/components/schemas/Plan"}
    assert schemas[body]["additionalProperties"] is False
    result = post["responses"]["200"]["content"]["application/json"]["schema"]["$ref"]
    properties = schemas[result.rpartition("/")[2]]["properties"]
    assert "#/components/schemas/Plan" in str(properties["result"])
    assert "202" in post["responses"]
    with httpx.Client(base_url=server.url, verify=False, timeout=60) as http:
        sent = {"input": {"stages": [{"rate_per_s": 5}]}}
        answer = http.post("/v1/operations/plan?wait=30s", json=sent)
    assert answer.status_code == 200
    schema = {"$ref": result, "components": openapi["components"]}
    jsonschema.Draft202012Validator(schema).validate(answer.json())


def test_every_error_is_described_as_a_problem_document(document: Any) -> None:
    _, openapi = document
    for path, methods in openapi["paths"].items():
        for method, route in methods.items():
            for status, answer in route["responses"].items():
                if status.startswith(("4", "5")):
                    where = f"{method} {path} {status}"
                    assert list(answer["content"]) == ["application/problem+json"], where
    assert "HTTPValidationError" not in str(openapi)
