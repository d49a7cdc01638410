"""What a workspace gives to all of its jobs, within the operator's allow-list (J10, trap 12).

Kept in memory too, because every submission asks; every change goes through this server.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from headway.api.problems import Refusal, field_problems
from headway.client.models import FieldProblem
from headway.core.errors import ConfigError
from headway.jobs.environment import EnvironmentPolicy
from headway.jobs.operation import Operation
from headway.jobs.registry import Registry
from headway.store.overlays import OverlayRow, OverlayStore

_DETAIL = "the overlay cannot be used as it is; see the fields"


class Overlays:
    """The overlays of all workspaces.

    Args:
        store: Keeps them.
        registry: The operations, whose configuration models a configuration has to fit.
        environment: The operator's allow-list.
    """

    def __init__(
        self, store: OverlayStore, registry: Registry, environment: EnvironmentPolicy
    ) -> None:
        self._store = store
        self._registry = registry
        self._environment = environment
        self._rows: dict[str, OverlayRow] = {}

    async def load(self) -> None:
        """Read what is stored; once, before the first request."""
        self._rows = {row.workspace: row for row in await self._store.overlays()}

    def of(self, workspace: str) -> OverlayRow:
        """The overlay of a workspace; an empty one when it has none."""
        return self._rows.get(workspace) or OverlayRow(workspace=workspace)

    async def put(
        self,
        workspace: str,
        env: Mapping[str, str],
        config: Mapping[str, Mapping[str, Any]],
        by: str,
    ) -> OverlayRow:
        """Replace the overlay of a workspace.

        Raises:
            Refusal: 422; a variable is not on the allow-list, or a configuration does not fit.
        """
        problems = [*self._env_problems(env), *self._config_problems(config)]
        if problems:
            raise Refusal(422, _DETAIL, errors=problems)
        row = OverlayRow(workspace=workspace, env=env, config=config, changed_by=by)
        stored = await self._store.put_overlay(row)
        self._rows[workspace] = stored
        return stored

    def _env_problems(self, env: Mapping[str, str]) -> list[FieldProblem]:
        try:
            self._environment.check(env)
        except ConfigError as error:
            return [FieldProblem(path="env", message=str(error))]
        return []

    def _config_problems(self, config: Mapping[str, Mapping[str, Any]]) -> list[FieldProblem]:
        problems = []
        for name, overlay in config.items():
            operation = self._registry.get(name)
            if operation is None:
                text = f"there is no operation {name!r}"
                problems.append(FieldProblem(path=f"config.{name}", message=text))
            else:
                problems += _misfits(operation, overlay)
        return problems


def merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` laid over `under`; objects inside are merged alike."""
    result = dict(under)
    for name, value in over.items():
        below = result.get(name)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            result[name] = merged(below, value)
        else:
            result[name] = value
    return result


def _misfits(operation: Operation, overlay: Mapping[str, Any]) -> list[FieldProblem]:
    """What is wrong with a configuration; what it leaves out, a job may still give."""
    try:
        operation.validate_config(overlay)
    except ConfigError as error:
        return [FieldProblem(path=f"config.{operation.name}", message=str(error))]
    except ValidationError as error:
        found = [
            each
            for each in error.errors(include_url=False, include_input=False)
            if each["type"] != "missing"
        ]
        return [
            FieldProblem(path=f"config.{operation.name}.{each.path}", message=each.message)
            for each in field_problems(found)
        ]
    return []
