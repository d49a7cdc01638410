"""Routes that list and download the files that jobs left behind."""

from __future__ import annotations

import json
import mimetypes
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import anyio
from fastapi import APIRouter, Query, Response
from fastapi import Path as PathParameter
from fastapi.responses import FileResponse

from headway.api.identity import Caller
from headway.api.job_access import JobAccess
from headway.api.job_routes import JobReference
from headway.api.problems import Refusal, problem_answers
from headway.client.models import Artifact, ArtifactList
from headway.core.errors import ConfigError
from headway.jobs.artifacts import check_name
from headway.store.values import JobRow

_UNKNOWN_TYPE = "application/octet-stream"
# A job's file is shown by browsers as a page of this server unless they are told not to.
_DOWNLOAD_HEADERS = {"content-security-policy": "sandbox; default-src 'none'"}

Attempt = Annotated[
    int | None,
    Query(ge=1, le=999_999, description="Of this attempt; without it, the newest that has it."),
]
Name = Annotated[str, PathParameter(max_length=1000)]


class ArtifactRoutes:
    """The routes under `/v1/jobs/{job_id}/artifacts`.

    Args:
        access: Finds jobs and their files.
    """

    def __init__(self, access: JobAccess) -> None:
        self._access = access

    def router(self) -> APIRouter:
        router = APIRouter(tags=["artifacts"])
        answers = problem_answers(404, 409, 422, 503)
        router.add_api_route(
            "/v1/jobs/{job_id}/artifacts",
            self.list_artifacts,
            response_model=ArtifactList,
            responses=answers,
        )
        content = {_UNKNOWN_TYPE: {"schema": {"type": "string", "format": "binary"}}}
        router.add_api_route(
            "/v1/jobs/{job_id}/artifacts/{name:path}",
            self.download,
            response_class=Response,
            responses={200: {"content": content, "description": "The file."}, **answers},
        )
        return router

    async def list_artifacts(self, caller: Caller, job_id: JobReference) -> ArtifactList:
        """The job's artifacts, the newest attempt's first."""
        row = await self._access.find(job_id, caller)
        types = await self._media_types(row)
        found = await anyio.to_thread.run_sync(self._scan, row, types)
        return ArtifactList(artifacts=found)

    async def download(
        self, caller: Caller, job_id: JobReference, name: Name, attempt: Attempt = None
    ) -> Response:
        """One artifact, as a download."""
        row = await self._access.find(job_id, caller)
        path = self._path(row, name, attempt)
        if path is None:
            raise Refusal(404, f"job {row.id} has no artifact {name!r}")
        types = await self._media_types(row)
        return FileResponse(
            path,
            media_type=types.get(name) or _guessed(name),
            headers={
                **_DOWNLOAD_HEADERS,
                "content-disposition": f"attachment; filename*=utf-8''{quote(path.name)}",
            },
        )

    def _path(self, row: JobRow, name: str, attempt: int | None) -> Path | None:
        try:
            checked = check_name(name)
        except ConfigError:
            return None  # a name that no job could have given
        attempts = range(row.attempt, 0, -1) if attempt is None else (attempt,)
        for number in attempts:
            directory = self._access.state_dir.job_artifacts(row.id) / str(number)
            path = directory / checked
            # A job may have left a link there that leads to a file of the server.
            if path.is_file() and path.resolve().is_relative_to(directory.resolve()):
                return path
        return None

    async def _media_types(self, row: JobRow) -> dict[str, str]:
        """What the job itself said of its files, by their names."""
        events = await self._access.store.events(row.id)
        said = (json.loads(event.data_json) for event in events if event.kind == "artifact")
        return {one["name"]: one["media_type"] for one in said if "media_type" in one}

    def _scan(self, row: JobRow, types: dict[str, str]) -> list[Artifact]:
        found: list[Artifact] = []
        for attempt in range(row.attempt, 0, -1):
            directory = self._access.state_dir.job_artifacts(row.id) / str(attempt)
            for path in _files_below(directory):
                name = path.relative_to(directory).as_posix()
                media_type = types.get(name) or _guessed(name)
                size_bytes = path.stat().st_size
                found.append(
                    Artifact(
                        name=name, size_bytes=size_bytes, media_type=media_type, attempt=attempt
                    )
                )
        return found


def _files_below(directory: Path) -> Iterator[Path]:
    """Complete files, by name. One that is still being written has a name with a dot in front."""
    for path in sorted(directory.rglob("*")):
        if path.is_file() and not path.is_symlink() and not path.name.startswith("."):
            yield path


def _guessed(name: str) -> str:
    return mimetypes.guess_type(name)[0] or _UNKNOWN_TYPE
