"""The OpenAPI document: FastAPI's, with our errors in place of the framework's."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from pydantic.json_schema import models_json_schema

from headway.client.models import Problem

_FRAMEWORK_SCHEMAS = ("HTTPValidationError", "ValidationError")


def describe(app: FastAPI) -> None:
    """Make `app` answer with a document that has `Problem` for every error."""
    generate = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _with_problems(generate())
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to extend it


def _with_problems(document: dict[str, Any]) -> dict[str, Any]:
    _, defined = models_json_schema(
        [(Problem, "serialization")], ref_template="#/components/schemas/{model}"
    )
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for name in _FRAMEWORK_SCHEMAS:
        schemas.pop(name, None)
    schemas.update(defined["$defs"])
    return document
