"""Finding out that a target can be measured, and what it serves, before a run begins.

Whatever is wrong gets one sentence with its cause, because this is where most first tries end.
"""

from __future__ import annotations

import difflib
from typing import Any

import msgspec

from headway.backends.backend import TargetInfo
from headway.backends.endpoint import Endpoint
from headway.backends.failures import error_text, failure_of, is_html
from headway.core.errors import TargetError
from headway.wire.exchange import Exchange, Timeouts

# A list of models is no inference: a target that is silent for so long is not ready.
_TOTAL_S = 10.0
_MAX_NAMED = 10
# A server without the list answers one of these; anything else says more than "not here".
_NO_SUCH_ROUTE = frozenset({404, 405, 501})


class _Model(msgspec.Struct):
    id: str
    owned_by: str | None = None
    root: str | None = None
    max_model_len: int | None = None


class _Models(msgspec.Struct):
    data: list[_Model]


async def discover(endpoint: Endpoint, model: str | None) -> TargetInfo:
    """Ask the target for its models.

    Args:
        endpoint: Started.
        model: What the user named; None: take the first one listed.

    Raises:
        TargetError: it does not answer, refuses, speaks something else, or has no such model.
    """
    path = f"{endpoint.api_path}/models"
    exchange = await endpoint.ask("GET", path, timeouts=_patience(endpoint))
    models = _listed_models(exchange, endpoint)
    names = tuple(listed.id for listed in models)
    if model is None and not names:
        raise TargetError(
            f"{endpoint.origin.url}{path} lists no models; name the one to ask for (--model), or "
            "give the API's base as URL, for example http://host:8000/v1"
        )
    if model is not None and names and model not in names:
        raise TargetError(_no_such_model(model, names, endpoint))
    chosen = model if model is not None else names[0]
    return TargetInfo(
        url=endpoint.origin.url + endpoint.origin.path,
        model=chosen,
        models=names,
        server=exchange.headers.get("server"),
        details=_details(models, chosen),
    )


def _patience(endpoint: Endpoint) -> Timeouts:
    given = endpoint.timeouts
    return Timeouts(connect_s=given.connect_s, total_s=min(given.total_s, _TOTAL_S))


def _listed_models(exchange: Exchange, endpoint: Endpoint) -> list[_Model]:
    failure = failure_of(exchange, endpoint.redactor)
    url = endpoint.origin.url
    if failure is not None:
        if exchange.failure is None and exchange.status in _NO_SUCH_ROUTE:
            return []
        reason = _reason(exchange, endpoint)
        raise TargetError(f"cannot measure {url}: {failure.message}{reason}")
    if is_html(exchange):
        raise TargetError(
            f"{url} answers {endpoint.api_path}/models with an HTML page: this is a web site or a "
            "proxy, not an OpenAI-compatible API; check the URL's host, port and path"
        )
    try:
        return msgspec.json.decode(exchange.body, type=_Models).data
    except msgspec.DecodeError as error:
        raise TargetError(
            f"{url} answers {endpoint.api_path}/models with something else than a list of models; "
            "is it an OpenAI-compatible API?"
        ) from error


def _reason(exchange: Exchange, endpoint: Endpoint) -> str:
    """What an error reply says, and what to do about it."""
    said = endpoint.redactor.redact(error_text(exchange.body) or "")
    reason = f" ({said})" if said else ""
    if exchange.status in (401, 403):
        has_key = any(name.lower() == "authorization" for name in endpoint.headers)
        reason += (
            "; the target refuses the API key that was given"
            if has_key
            else "; the target wants an API key: name the variable or file that holds it "
            "(--api-key-env, --api-key-file)"
        )
    return reason


def _no_such_model(model: str, names: tuple[str, ...], endpoint: Endpoint) -> str:
    listed = ", ".join(names[:_MAX_NAMED]) + (", ..." if len(names) > _MAX_NAMED else "")
    near = difflib.get_close_matches(model, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"{endpoint.origin.url} has no model {model!r}; it has: {listed}{hint}"


def _details(models: list[_Model], chosen: str) -> dict[str, Any] | None:
    for listed in models:
        if listed.id == chosen:
            fields = msgspec.structs.asdict(listed)
            return {name: value for name, value in fields.items() if value is not None}
    return None
