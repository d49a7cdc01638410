"""Plain calls as values: `client.perform(add_user("ann"))`.

What administrators do needs no methods on the clients: each call is a value that says what
is sent and what the answer means, and both clients perform it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ValidationError

from headway.client.retrying import Retrier
from headway.client.steps import Call, Flow, Query
from headway.core.errors import ConfigError

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


@dataclass(frozen=True)
class Ask(Generic[T]):
    """One call.

    Attributes:
        call: What is sent.
        read: Makes the answer of its body.
    """

    call: Call
    read: Callable[[bytes], T]


def performing(ask: Ask[T], retrier: Retrier) -> Flow[T]:
    """The flow of a call."""
    reply = yield from retrier.send(ask.call)
    return ask.read(reply.body)


def get(path: str, model: type[M], query: Query = ()) -> Ask[M]:
    """Ask for something."""
    return Ask(Call("GET", path, query=query), model.model_validate_json)


def post(path: str, body: BaseModel, model: type[M], *, repeatable: bool = False) -> Ask[M]:
    """Make something; not repeated when the answer was lost, unless twice does as once."""
    return _sending("POST", path, body, model, repeatable)


def put(path: str, body: BaseModel, model: type[M]) -> Ask[M]:
    """Set something."""
    return _sending("PUT", path, body, model, repeatable=True)


def delete(path: str) -> Ask[None]:
    """Remove something."""
    return Ask(Call("DELETE", path), _nothing)


def path_of(template: str, **names: str) -> str:
    """A path with names in it, whatever characters they have."""
    return template.format(**{key: quote(name, safe="") for key, name in names.items()})


def checked(model: type[M], **fields: Any) -> M:
    """What is to be sent.

    Raises:
        ConfigError: a field cannot be so; the server would refuse it.
    """
    try:
        return model(**fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"{where}: {first['msg']}") from None


def _sending(method: str, path: str, body: BaseModel, model: type[M], repeatable: bool) -> Ask[M]:
    content = body.model_dump_json(exclude_defaults=True).encode()
    headers = {"content-type": "application/json"}
    call = Call(method, path, headers=headers, body=content, repeatable=repeatable)
    return Ask(call, model.model_validate_json)


def _nothing(_: bytes) -> Any:
    return None
