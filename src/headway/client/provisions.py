"""Secrets, targets and overlays over HTTP: `client.provisions`, in both kinds of client."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from pydantic import BaseModel

from headway.client.provision_models import (
    Overlay,
    OverlayRequest,
    Rotation,
    Secret,
    SecretList,
    SecretRequest,
    Target,
    TargetList,
    TargetRequest,
)
from headway.client.steps import Call, Flow, Reply

T = TypeVar("T")


class ProvisionFlows:
    """The calls as flows of steps.

    Args:
        send: Sends a call, again and again where that is right.
    """

    def __init__(self, send: Callable[[Call], Flow[Reply]]) -> None:
        self._send = send

    def secrets(self) -> Flow[list[Secret]]:
        reply = yield from self._send(Call("GET", "/v1/secrets"))
        return SecretList.model_validate_json(reply.body).secrets

    def set_secret(self, name: str, value: str) -> Flow[Secret]:
        body = SecretRequest(value=value)
        reply = yield from self._send(_put(f"/v1/secrets/{_part(name)}", body))
        return Secret.model_validate_json(reply.body)

    def remove_secret(self, name: str) -> Flow[None]:
        yield from self._send(_delete(f"/v1/secrets/{_part(name)}"))

    def rotate(self) -> Flow[int]:
        reply = yield from self._send(Call("POST", "/v1/secrets:rotate", repeatable=False))
        return Rotation.model_validate_json(reply.body).resealed

    def targets(self) -> Flow[list[Target]]:
        reply = yield from self._send(Call("GET", "/v1/targets"))
        return TargetList.model_validate_json(reply.body).targets

    def set_target(self, name: str, target: TargetRequest) -> Flow[Target]:
        reply = yield from self._send(_put(f"/v1/targets/{_part(name)}", target))
        return Target.model_validate_json(reply.body)

    def remove_target(self, name: str) -> Flow[None]:
        yield from self._send(_delete(f"/v1/targets/{_part(name)}"))

    def overlay(self, workspace: str) -> Flow[Overlay]:
        reply = yield from self._send(Call("GET", f"/v1/workspaces/{_part(workspace)}/overlay"))
        return Overlay.model_validate_json(reply.body)

    def set_overlay(self, workspace: str, overlay: OverlayRequest) -> Flow[Overlay]:
        path = f"/v1/workspaces/{_part(workspace)}/overlay"
        reply = yield from self._send(_put(path, overlay))
        return Overlay.model_validate_json(reply.body)


class CarryOut(Protocol):
    """Carries out a flow, blocking."""

    def __call__(self, flow: Flow[T]) -> T: ...


class Provisions:
    """What a workspace, and an administrator, provide jobs with.

    Args:
        flows: The calls.
        carry_out: Carries them out.
    """

    def __init__(self, flows: ProvisionFlows, carry_out: CarryOut) -> None:
        self._flows = flows
        self._carry_out = carry_out

    def secrets(self) -> list[Secret]:
        """The secrets of the workspace, without their values, which nobody gets back."""
        return self._carry_out(self._flows.secrets())

    def set_secret(self, name: str, value: str) -> Secret:
        """Set a secret of the workspace, new or in the place of an old one."""
        return self._carry_out(self._flows.set_secret(name, value))

    def remove_secret(self, name: str) -> None:
        """Forget a secret; jobs that name it fail when they are claimed."""
        self._carry_out(self._flows.remove_secret(name))

    def rotate(self) -> int:
        """Seal the secrets of all workspaces with a new key; how many there were."""
        return self._carry_out(self._flows.rotate())

    def targets(self) -> list[Target]:
        """The registered targets of the workspace; for an administrator, all."""
        return self._carry_out(self._flows.targets())

    def set_target(self, name: str, target: TargetRequest) -> Target:
        """Register a target, or change it."""
        return self._carry_out(self._flows.set_target(name, target))

    def remove_target(self, name: str) -> None:
        """Forget a target; jobs that wait for it fail when they are claimed."""
        self._carry_out(self._flows.remove_target(name))

    def overlay(self, workspace: str) -> Overlay:
        """What the workspace gives to all of its jobs."""
        return self._carry_out(self._flows.overlay(workspace))

    def set_overlay(self, workspace: str, overlay: OverlayRequest) -> Overlay:
        """Replace what the workspace gives to all of its jobs."""
        return self._carry_out(self._flows.set_overlay(workspace, overlay))


class AsyncProvisions:
    """As `Provisions`, to be awaited.

    Args:
        flows: The calls.
        carry_out: Carries them out.
    """

    def __init__(
        self, flows: ProvisionFlows, carry_out: Callable[[Flow[Any]], Awaitable[Any]]
    ) -> None:
        self._flows = flows
        self._carry_out = carry_out

    async def secrets(self) -> list[Secret]:
        found: list[Secret] = await self._carry_out(self._flows.secrets())
        return found

    async def set_secret(self, name: str, value: str) -> Secret:
        made: Secret = await self._carry_out(self._flows.set_secret(name, value))
        return made

    async def remove_secret(self, name: str) -> None:
        await self._carry_out(self._flows.remove_secret(name))

    async def rotate(self) -> int:
        count: int = await self._carry_out(self._flows.rotate())
        return count

    async def targets(self) -> list[Target]:
        found: list[Target] = await self._carry_out(self._flows.targets())
        return found

    async def set_target(self, name: str, target: TargetRequest) -> Target:
        made: Target = await self._carry_out(self._flows.set_target(name, target))
        return made

    async def remove_target(self, name: str) -> None:
        await self._carry_out(self._flows.remove_target(name))

    async def overlay(self, workspace: str) -> Overlay:
        found: Overlay = await self._carry_out(self._flows.overlay(workspace))
        return found

    async def set_overlay(self, workspace: str, overlay: OverlayRequest) -> Overlay:
        made: Overlay = await self._carry_out(self._flows.set_overlay(workspace, overlay))
        return made


def _put(path: str, request: BaseModel) -> Call:
    body = request.model_dump_json(exclude_defaults=True).encode()
    return Call("PUT", path, headers={"content-type": "application/json"}, body=body)


def _delete(path: str) -> Call:
    # Not repeated: the second would be told that there is none.
    return Call("DELETE", path, repeatable=False)


def _part(name: str) -> str:
    return quote(name, safe="")
