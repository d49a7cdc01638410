"""Limits and locks over HTTP: `client.limits`, in both kinds of client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar
from urllib.parse import quote

from pydantic import BaseModel

from headway.client.limit_models import (
    Limit,
    LimitPage,
    LimitRequest,
    Lock,
    LockList,
    LockRequest,
)
from headway.client.steps import Call, Flow, Reply
from headway.core.errors import ConfigError

T = TypeVar("T")

EVERY = "*"
"""In place of a name: each workspace, or each user, that has no limit of its own."""


class LimitFlows:
    """The calls as flows of steps.

    Args:
        send: Sends a call, again and again where that is right.
    """

    def __init__(self, send: Callable[[Call], Flow[Reply]]) -> None:
        self._send = send

    def show(self) -> Flow[LimitPage]:
        reply = yield from self._send(Call("GET", "/v1/limits"))
        return LimitPage.model_validate_json(reply.body)

    def set(self, workspace: str, user: str | None, limit: LimitRequest) -> Flow[Limit]:
        reply = yield from self._send(_put(_path_of(workspace, user), limit))
        return Limit.model_validate_json(reply.body)

    def locks(self) -> Flow[list[Lock]]:
        reply = yield from self._send(Call("GET", "/v1/limits/locks"))
        return LockList.model_validate_json(reply.body).locks

    def set_lock(self, lock: LockRequest) -> Flow[Lock]:
        reply = yield from self._send(_put("/v1/limits/locks", lock))
        return Lock.model_validate_json(reply.body)

    def remove_lock(self, name: str) -> Flow[None]:
        call = Call("DELETE", "/v1/limits/locks", query=[("name", name)], repeatable=False)
        yield from self._send(call)


class CarryOut(Protocol):
    """Carries out a flow, blocking."""

    def __call__(self, flow: Flow[T]) -> T: ...


class Limits:
    """Limits of workspaces and users, and locks.

    Args:
        flows: The calls.
        carry_out: Carries them out.
    """

    def __init__(self, flows: LimitFlows, carry_out: CarryOut) -> None:
        self._flows = flows
        self._carry_out = carry_out

    def show(self) -> LimitPage:
        """The limits of the workspace and its use of the server; all, for an administrator."""
        return self._carry_out(self._flows.show())

    def set(self, workspace: str, user: str | None, limit: LimitRequest) -> Limit:
        """Set the limit of a workspace, or of a user in it; `*` stands for each."""
        return self._carry_out(self._flows.set(workspace, user, limit))

    def locks(self) -> list[Lock]:
        """Every lock (administrators)."""
        return self._carry_out(self._flows.locks())

    def set_lock(self, lock: LockRequest) -> Lock:
        """Set a lock up, or change it (administrators)."""
        return self._carry_out(self._flows.set_lock(lock))

    def remove_lock(self, name: str) -> None:
        """Make its members locks of their own again (administrators)."""
        self._carry_out(self._flows.remove_lock(name))


class AsyncCarryOut(Protocol):
    """Carries out a flow on the event loop."""

    def __call__(self, flow: Flow[T]) -> Awaitable[T]: ...


class AsyncLimits:
    """Limits of workspaces and users, and locks; as `Limits`.

    Args:
        flows: The calls.
        carry_out: Carries them out.
    """

    def __init__(self, flows: LimitFlows, carry_out: AsyncCarryOut) -> None:
        self._flows = flows
        self._carry_out = carry_out

    async def show(self) -> LimitPage:
        return await self._carry_out(self._flows.show())

    async def set(self, workspace: str, user: str | None, limit: LimitRequest) -> Limit:
        return await self._carry_out(self._flows.set(workspace, user, limit))

    async def locks(self) -> list[Lock]:
        return await self._carry_out(self._flows.locks())

    async def set_lock(self, lock: LockRequest) -> Lock:
        return await self._carry_out(self._flows.set_lock(lock))

    async def remove_lock(self, name: str) -> None:
        await self._carry_out(self._flows.remove_lock(name))


def _path_of(workspace: str, user: str | None) -> str:
    if workspace == EVERY:
        if user not in (None, EVERY):
            raise ConfigError(f"a limit of {user!r} belongs to one workspace: name it")
        return "/v1/limits/every-workspace" if user is None else "/v1/limits/every-user"
    path = f"/v1/limits/workspaces/{quote(workspace, safe='')}"
    return path if user is None else f"{path}/users/{quote(user, safe='')}"


def _put(path: str, body: BaseModel) -> Call:
    content = body.model_dump_json(exclude_defaults=True).encode()
    return Call("PUT", path, headers={"content-type": "application/json"}, body=content)
