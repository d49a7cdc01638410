"""Routes that ask the model for nothing: its name, its tokenizer, the server's health."""

from __future__ import annotations

import msgspec

from headway.sim.answers import send_answer, send_refusal
from headway.sim.dialect import cannot_read
from headway.sim.exchange import Exchange, Route
from headway.sim.messages import ChatMessage, Refusal
from headway.sim.options import ReplyOptions
from headway.sim.tokenizer import token_ids, tokenize, tokenize_chat


class _TokenizeBody(msgspec.Struct):
    prompt: str | None = None
    messages: list[ChatMessage] | None = None
    model: str | None = None
    add_generation_prompt: bool = True


def plain_routes(options: ReplyOptions, created: int) -> dict[bytes, tuple[bytes, Route]]:
    """The routes by path, each with its method.

    Args:
        options: What the model answers.
        created: The Unix time that the models carry.
    """
    return {
        b"/health": (b"GET", _health),
        b"/v1/models": (b"GET", _models(options, created)),
        b"/tokenize": (b"POST", _tokenize(options)),
    }


def _health(exchange: Exchange) -> None:
    send_answer(exchange.connection, 200, b"", b"text/plain")


def _models(options: ReplyOptions, created: int) -> Route:
    models = [
        {
            "id": model,
            "object": "model",
            "created": created,
            "owned_by": "headway-sim",
            "max_model_len": options.max_model_len,
        }
        for model in options.models
    ]
    body = msgspec.json.encode({"object": "list", "data": models})
    return lambda exchange: send_answer(exchange.connection, 200, body)


def _tokenize(options: ReplyOptions) -> Route:
    decoder = msgspec.json.Decoder(_TokenizeBody)

    def answer(exchange: Exchange) -> None:
        try:
            body = decoder.decode(exchange.request.body)
        except msgspec.MsgspecError as error:
            send_refusal(exchange.connection, cannot_read(error))
            return
        if body.messages is not None:
            tokens = tokenize_chat(body.messages, body.add_generation_prompt)
        elif body.prompt is not None:
            tokens = tokenize(body.prompt)
        else:
            send_refusal(exchange.connection, Refusal(400, "Give 'prompt' or 'messages'."))
            return
        counted = {
            "count": len(tokens),
            "max_model_len": options.max_model_len,
            "tokens": token_ids(tokens),
        }
        send_answer(exchange.connection, 200, msgspec.json.encode(counted))

    return answer
