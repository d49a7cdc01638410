"""Routes that list and download the files that jobs left behind."""

from __future__ import annotations

import json
import mimetypes
import re
from collections.abc import AsyncIterator
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
from headway.store.events import EventKind
from headway.store.jobs import Event, JobRow

_UNKNOWN_TYPE = "application/octet-stream"
_TYPE = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}(;\s*charset=[\w-]{1,40})?", re.ASCII)
_ACTIVE = re.compile("script|html|xml|svg|css|wasm|multipart|event-stream", re.IGNORECASE)
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
        recorded = await self._recorded(row)
        return ArtifactList(artifacts=await anyio.to_thread.run_sync(self._present, row, recorded))

    async def download(
        self, caller: Caller, job_id: JobReference, name: Name, attempt: Attempt = None
    ) -> Response:
        """One artifact, as a download."""
        row = await self._access.find(job_id, caller)
        recorded = await self._recorded(row)
        attempts = [number for number, known in recorded if known == name]
        found = max((n for n in attempts if attempt in (None, n)), default=None)
        path = None if found is None else self._path(row, found, name)
        if found is None or path is None:
            raise Refusal(404, f"job {row.id} has no artifact {name!r}")
        return FileResponse(
            path,
            media_type=harmless_type(recorded[found, name]),
            headers={
                **_DOWNLOAD_HEADERS,
                "content-disposition": f"attachment; filename*=utf-8''{quote(path.name)}",
            },
        )

    async def _recorded(self, row: JobRow) -> dict[tuple[int, str], str]:
        """The artifacts that the store knows, by attempt and name, with their media types.

        The files alone would not do: an attempt that has lost its lease may still write some, and
        only the store refuses it (J5).
        """
        recorded = {}
        async for event in self._events(row):
            if event.kind == EventKind.ARTIFACT:
                said = json.loads(event.data_json)
                media_type = said.get("media_type") or _guessed(said["name"])
                recorded[event.attempt, said["name"]] = media_type
        return recorded

    async def _events(self, row: JobRow) -> AsyncIterator[Event]:
        after = 0
        while events := await self._access.store.events(row.id, after):
            for event in events:
                yield event
            after = events[-1].number

    def _present(self, row: JobRow, recorded: dict[tuple[int, str], str]) -> list[Artifact]:
        found = []
        for (attempt, name), media_type in recorded.items():
            path = self._path(row, attempt, name)
            if path is not None:
                size = path.stat().st_size
                found.append(
                    Artifact(name=name, size_bytes=size, media_type=media_type, attempt=attempt)
                )
        return sorted(found, key=lambda each: (-each.attempt, each.name))

    def _path(self, row: JobRow, attempt: int, name: str) -> Path | None:
        directory = self._access.state_dir.job_artifacts(row.id) / str(attempt)
        path = directory / name
        # A job may have left a link there that leads to a file of the server.
        inside = path.resolve().is_relative_to(directory.resolve())
        return path if inside and path.is_file() and not path.is_symlink() else None


def harmless_type(media_type: str) -> str:
    """The type that a download is sent with.

    The download of a page is saved, and the sandbox keeps it from acting should a browser show it
    all the same; but a page of this server may load its scripts and styles from this server. No
    file of a job is one: browsers refuse to run what is not declared to be a script (`nosniff`).
    """
    plain = _TYPE.fullmatch(media_type) is not None and _ACTIVE.search(media_type) is None
    return media_type if plain else _UNKNOWN_TYPE


def _guessed(name: str) -> str:
    return mimetypes.guess_type(name)[0] or _UNKNOWN_TYPE
