"""From a request to a job that the store can take; all is checked before the commit."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import msgspec
from pydantic import BaseModel, JsonValue, ValidationError

from headway.access.identity import Identity
from headway.api.fair_use import FairUse
from headway.api.premises import Premises
from headway.api.problems import Refusal, field_problems
from headway.client.models import FieldProblem, JobRequest, PreconditionSpec, SubmitOptions
from headway.core.errors import ConfigError
from headway.core.retry import RetryPolicy
from headway.dispatch.preconditions import check_precondition
from headway.jobs.environment import EnvironmentPolicy
from headway.jobs.operation import Operation
from headway.jobs.precondition import Condition
from headway.jobs.registry import Registry
from headway.jobs.target import Aim
from headway.store.jobs import Precondition
from headway.store.submissions import Idempotency, NewJob


@dataclass(frozen=True)
class Asked:
    """One job as it was asked for, its input validated and kept as it was written.

    Attributes:
        request: The validated input.
        input_json: The input as JSON; the job's process validates it again.
        fingerprint: Equal for equal requests.
        path: Where in the request this job stands, for error messages; with a dot at its end.
    """

    operation: Operation
    request: BaseModel
    input_json: str
    options: SubmitOptions
    idempotency_key: str | None
    fingerprint: str
    path: str = ""


class Submissions:
    """Checks what clients ask for against the operations and the operator's rules.

    Args:
        registry: The operations and preconditions of this server.
        environment: Which variables a job may set.
        fair_use: How urgent a caller's job may be; None: as urgent as it says.
        premises: What workspaces add to their jobs, and what these may reach; None: nothing.
    """

    def __init__(
        self,
        registry: Registry,
        environment: EnvironmentPolicy,
        premises: Premises | None = None,
        fair_use: FairUse | None = None,
    ) -> None:
        self._fair_use = fair_use
        self._registry = registry
        self._environment = environment
        self._premises = premises

    def operation(self, name: str) -> Operation:
        """The operation called `name`.

        Raises:
            Refusal: 404; there is none.
        """
        operation = self._registry.get(name)
        if operation is None:
            lists = "`headway operations` or GET /v1/operations lists them"
            raise Refusal(404, f"there is no operation {name!r}; {lists}")
        return operation

    def asked_in_batch(self, job: JobRequest, index: int) -> Asked:
        """One job of a batch, validated.

        Raises:
            Refusal: 422; the operation is unknown or the input does not fit it.
        """
        path = f"jobs.{index}."
        operation = self._registry.get(job.operation)
        if operation is None:
            raise _refused(f"{path}operation", f"there is no operation {job.operation!r}")
        sent = job.input if job.input is not None else {}
        try:
            request = operation.request_model.model_validate(sent)
        except ValidationError as error:
            raise _refused_fields(f"{path}input", error) from None
        input_json = _json(sent, f"{path}input")
        whole = _json(job.model_dump(mode="json", exclude={"idempotency_key"}), f"jobs.{index}")
        return Asked(
            operation=operation,
            request=request,
            input_json=input_json,
            options=job,
            idempotency_key=job.idempotency_key,
            fingerprint=fingerprint(job.operation, whole),
            path=path,
        )

    def new_job(self, asked: Asked, caller: Identity) -> NewJob:
        """The store's form of a submission.

        Raises:
            Refusal: 422; an option is not possible for this operation or on this server. 403; the
                priority is above the ceiling of the caller's role.
        """
        asked = self._under_premises(asked, caller)
        operation, options = asked.operation, asked.options
        self._check_environment(asked)
        config = self._checked_config(asked)
        aim = self._aim(asked, config, caller)
        self._check_key(asked, caller)
        return NewJob(
            operation=operation.name,
            lane=operation.lane.value,
            input_json=asked.input_json,
            priority=self._checked_priority(asked, caller) or operation.priority,
            not_before=_with_zone(asked),
            timeout_s=_shorter(options.timeout_s, operation.timeout_s),
            concurrency_key=_key(asked, aim),
            preconditions=self._preconditions(asked, config, aim),
            labels=options.labels,
            env=options.env,
            config_json=_json(dict(options.config), f"{asked.path}config"),
            secrets=options.secrets_by_variable,
            secret_names=_secret_names(asked.operation, asked.request, aim),
            target=None if aim is None or aim.target is None else aim.target.name,
            keep_result=operation.keep_result and not options.ignore_result,
            memory_limit_bytes=operation.memory_limit_bytes,
            grace_s=operation.grace_s,
            retry=_retry_policy(operation, options.max_attempts),
            created_by=caller.user,
            workspace=caller.workspace,
            idempotency=_idempotency(asked),
        )

    def again(self, job: NewJob, caller: Identity) -> NewJob:
        """An ended job's submission once more, for a caller who may have other rights than the
        first: what it was allowed then is asked anew.

        Raises:
            Refusal: 422; it would not be taken now.
        """
        operation = self._registry.get(job.operation)
        if operation is None:
            raise _refused("operation", f"there is no operation {job.operation!r} any more")
        ceiling = self._ceiling(caller)
        if ceiling is not None and job.priority > max(ceiling, operation.priority):
            job = msgspec.structs.replace(job, priority=ceiling)
        try:
            self._environment.check(job.env)
            self._environment.check_secrets(job.secrets)
            if operation.aim is None or self._premises is None:
                return job
            request = operation.request_model.model_validate_json(job.input_json)
            config = operation.validate_config(msgspec.json.decode(job.config_json))
            aim = self._premises.aim_of(operation, request, config, caller)
        except (ConfigError, ValidationError) as error:
            raise _refused("job", f"it would not be taken now: {error}") from None
        if aim is None:
            return msgspec.structs.replace(job, target=None)
        return msgspec.structs.replace(
            job,
            target=None if aim.target is None else aim.target.name,
            secret_names=_secret_names(operation, request, aim),
            concurrency_key=aim.concurrency_key,
        )

    def _under_premises(self, asked: Asked, caller: Identity) -> Asked:
        """The same with what the caller's workspace adds, and with conditions that it may have."""
        if self._premises is None:
            return asked
        options, premises = asked.options, self._premises
        changed: dict[str, Any] = {}
        env = premises.env_of(caller.workspace, options.env)
        config = premises.config_of(caller.workspace, asked.operation.name, options.config)
        if env is not options.env:
            changed["env"] = env
        if config is not options.config:
            changed["config"] = config
        if options.preconditions:
            changed["preconditions"] = [
                self._condition(spec, caller, f"{asked.path}preconditions.{index}")
                for index, spec in enumerate(options.preconditions)
            ]
        return replace(asked, options=options.model_copy(update=changed)) if changed else asked

    def _condition(self, spec: PreconditionSpec, caller: Identity, path: str) -> PreconditionSpec:
        assert self._premises is not None
        try:
            return self._premises.condition(spec, caller)
        except ConfigError as error:
            raise _refused(path, str(error)) from None

    def _aim(self, asked: Asked, config: Any, caller: Identity) -> Aim | None:
        if self._premises is None:
            return None
        try:
            aim = self._premises.aim_of(asked.operation, asked.request, config, caller)
        except ConfigError as error:
            raise _refused(f"{asked.path}input", str(error)) from None
        if aim is not None and asked.options.concurrency_key is not None:
            text = "the lock group of the target decides what runs at a time; leave the key out"
            raise _refused(f"{asked.path}concurrency_key", text)
        return aim

    def _check_key(self, asked: Asked, caller: Identity) -> None:
        key = asked.options.concurrency_key
        if key is None or self._premises is None:
            return
        try:
            self._premises.check_key(key, caller)
        except ConfigError as error:
            raise _refused(f"{asked.path}concurrency_key", str(error)) from None

    def _ceiling(self, caller: Identity) -> int | None:
        return None if self._fair_use is None else self._fair_use.ceiling(caller)

    def _checked_priority(self, asked: Asked, caller: Identity) -> int:
        priority, ceiling = asked.options.priority, self._ceiling(caller)
        if ceiling is None or priority <= ceiling:
            return priority
        text = (
            f"priority {priority} is above {ceiling}, the highest that the role {caller.role} may"
            " ask for"
        )
        problem = FieldProblem(path=f"{asked.path}priority", message=text)
        raise Refusal(403, text, errors=[problem])

    def _check_environment(self, asked: Asked) -> None:
        options = asked.options
        try:
            self._environment.check(options.env)
        except ConfigError as error:
            raise _refused(f"{asked.path}env", str(error)) from None
        try:
            self._environment.check_secrets(options.secrets_by_variable)
        except ConfigError as error:
            raise _refused(f"{asked.path}secrets", str(error)) from None

    def _checked_config(self, asked: Asked) -> Any:
        try:
            return asked.operation.validate_config(asked.options.config)
        except ConfigError as error:
            raise _refused(f"{asked.path}config", str(error)) from None
        except ValidationError as error:
            raise _refused_fields(f"{asked.path}config", error) from None

    def _preconditions(
        self, asked: Asked, config: Any, aim: Aim | None
    ) -> tuple[Precondition, ...]:
        """The operation's own, then the submitter's."""
        own = _own_conditions(asked, config) if aim is None else aim.conditions
        named = asked.options.preconditions
        return (
            *(self._precondition(each, f"{asked.path}input") for each in own),
            *(
                self._precondition(spec, f"{asked.path}preconditions.{index}")
                for index, spec in enumerate(named)
            ),
        )

    def _precondition(self, spec: PreconditionSpec | Condition, path: str) -> Precondition:
        try:
            check_precondition(self._registry, spec.name, spec.arguments)
        except ConfigError as error:
            raise _refused(path, str(error)) from None
        return Precondition(
            name=spec.name,
            arguments_json=_json(dict(spec.arguments), path),
            timeout_s=spec.timeout_s,
        )


def fingerprint(*parts: str) -> str:
    """A hash that is equal for equal requests, however their JSON was spaced or ordered."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(_canonical(part) + b"\n")
    return digest.hexdigest()


def _canonical(text: str) -> bytes:
    try:
        return msgspec.json.encode(msgspec.json.decode(text), order="sorted")
    except msgspec.DecodeError:
        return text.encode("utf-8", "backslashreplace")


def _json(value: JsonValue, path: str) -> str:
    """A part of a request as JSON again.

    Raises:
        Refusal: 422; Python's parser let pass what JSON cannot carry: NaN, half a character.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except ValueError:
        raise _refused(path, "it holds a number or a character that JSON cannot carry") from None
    return text


def _refused(path: str, message: str) -> Refusal:
    problem = FieldProblem(path=path, message=message)
    return Refusal(422, "the job cannot be submitted as it is; see the fields", errors=[problem])


def _refused_fields(prefix: str, error: ValidationError) -> Refusal:
    problems = [
        FieldProblem(path=_join(prefix, problem.path), message=problem.message)
        for problem in field_problems(error.errors(include_url=False, include_input=False))
    ]
    return Refusal(422, "the job cannot be submitted as it is; see the fields", errors=problems)


def _join(prefix: str, path: str) -> str:
    return prefix if path == "body" else f"{prefix}.{path}"


def _with_zone(asked: Asked) -> datetime | None:
    moment = asked.options.not_before
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise _refused(f"{asked.path}not_before", "write the time with its zone, such as Z")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        text = "that time is beyond the calendar; write another, or none"
        raise _refused(f"{asked.path}not_before", text) from None


def _shorter(asked_s: float | None, operation_s: float | None) -> float | None:
    limits = [limit for limit in (asked_s, operation_s) if limit is not None]
    return min(limits, default=None)


def _secret_names(operation: Operation, request: BaseModel, aim: Aim | None) -> tuple[str, ...]:
    """What the operation asks for, and what its target does."""
    own = operation.secrets_for(request)
    return tuple(dict.fromkeys((*own, *(() if aim is None else aim.secrets))))


def _key(asked: Asked, aim: Aim | None) -> str | None:
    if aim is not None:
        return aim.concurrency_key
    return asked.options.concurrency_key or _own_key(asked)


def _own_key(asked: Asked) -> str | None:
    try:
        return asked.operation.concurrency_key_for(asked.request)
    except Exception as error:
        text = f"the operation cannot tell its concurrency key: {type(error).__name__}: {error}"
        raise _refused(f"{asked.path}input", text) from error


def _own_conditions(asked: Asked, config: Any) -> tuple[Condition, ...]:
    try:
        return asked.operation.conditions_for(asked.request, config)
    except ConfigError as error:
        raise _refused(f"{asked.path}input", str(error)) from None
    except Exception as error:
        text = f"the operation cannot tell its conditions: {type(error).__name__}: {error}"
        raise _refused(f"{asked.path}input", text) from error


def _retry_policy(operation: Operation, max_attempts: int | None) -> RetryPolicy:
    if max_attempts is None:
        return operation.retry
    return msgspec.structs.replace(operation.retry, max_attempts=max_attempts)


def _idempotency(asked: Asked) -> Idempotency | None:
    if asked.idempotency_key is None:
        return None
    return Idempotency(key=asked.idempotency_key, fingerprint=asked.fingerprint)
