"""`/v1/completions`, and what it shares with chat completions."""

from __future__ import annotations

import msgspec

from headway.sim.dialect import Ask, cannot_read, encode
from headway.sim.messages import Refusal, StreamOptions
from headway.sim.reply import ReplyPlan, channel_text, pieces
from headway.sim.script import IDENT, Script, Usage, frame
from headway.sim.tokenizer import tokenize

ERROR_EVENT = (
    b'data: {"error":{"message":"The simulated engine failed.","type":"server_error",'
    b'"param":null,"code":"engine_error"}}\n\n'
)


class Envelope:
    """The fields around every event, or around the whole reply.

    Args:
        prefix: Of the identifier.
        kind: The `object` field.
        created: Unix time.
        model: The model's name.
    """

    def __init__(self, prefix: str, kind: str, created: int, model: str) -> None:
        self._before = (
            f'{{"id":"{prefix}{IDENT.decode()}","object":"{kind}","created":{created},'
            f'"model":{encode(model)},"choices":['
        )

    def whole(self, choice: str) -> tuple[bytes, bytes]:
        """The reply around its usage."""
        return f'{self._before}{choice}],"usage":'.encode(), b"}"

    def event(self, choice: str) -> bytes:
        """One event, unframed."""
        return f"data: {self._before}{choice}]}}\n\n".encode()

    def script(self, plan: ReplyPlan, frames: list[bytes], finish: str, role: bytes) -> Script:
        """A stream of `frames` that ends with the choice `finish`.

        The event that tells the role goes out with the first token, as vLLM does it, or before.
        """
        if not plan.role_first:
            frames[0] = role + frames[0]
        return Script(
            opening=role if plan.role_first else b"",
            frames=tuple(frames),
            finish=frame(self.event(finish), plan.chunked),
            usage_before=f'data: {self._before}],"usage":'.encode(),
            usage_after=b"}\n\n",
            usage_required=False,
            end=frame(b"data: [DONE]\n\n", plan.chunked),
            chunked=plan.chunked,
        )


def usage_json(usage: Usage) -> bytes:
    """Usage of chat and text completions."""
    prompt, cached, output, reasoning = usage
    return (
        b'{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d,'
        b'"prompt_tokens_details":{"cached_tokens":%d},'
        b'"completion_tokens_details":{"reasoning_tokens":%d}}'
    ) % (prompt, output, prompt + output, cached, reasoning)


class _Body(msgspec.Struct):
    prompt: str | list[str | int]
    model: str | None = None
    max_tokens: int | None = None
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    n: int | None = 1
    ignore_eos: bool = False


class CompletionsDialect:
    """Text completions.

    Args:
        created: The Unix time that replies carry.
    """

    def __init__(self, created: int) -> None:
        self._created = created
        self._decoder = msgspec.json.Decoder(_Body)

    def parse(self, body: bytes) -> Ask | Refusal:
        try:
            fields = self._decoder.decode(body)
        except msgspec.MsgspecError as error:
            return cannot_read(error)
        if fields.n not in (None, 1):
            return Refusal(400, "The simulated server makes one choice; leave 'n' at 1.", param="n")
        prompt = _prompt_tokens(fields.prompt)
        if isinstance(prompt, Refusal):
            return prompt
        return Ask(
            model=fields.model,
            prompt=prompt,
            max_tokens=fields.max_tokens,
            stream=bool(fields.stream),
            include_usage=bool(fields.stream_options and fields.stream_options.include_usage),
            ignore_eos=fields.ignore_eos,
            reasoning=False,
        )

    def script(self, plan: ReplyPlan) -> Script:
        envelope = self._envelope(plan)
        frames = [
            frame(envelope.event(_choice(part.text, None)), plan.chunked) if part else b""
            for part in pieces(plan)
        ]
        return envelope.script(plan, frames, _choice("", plan.finish_reason), role=b"")

    def whole(self, plan: ReplyPlan) -> tuple[bytes, bytes]:
        text = channel_text(pieces(plan), "content")
        return self._envelope(plan).whole(_choice(text, plan.finish_reason))

    def usage(self, usage: Usage) -> bytes:
        return usage_json(usage)

    def error_event(self) -> bytes:
        return ERROR_EVENT

    def _envelope(self, plan: ReplyPlan) -> Envelope:
        return Envelope("cmpl-", "text_completion", self._created, plan.model)


def _prompt_tokens(prompt: str | list[str | int]) -> list[str] | Refusal:
    if isinstance(prompt, str):
        return tokenize(prompt)
    if len(prompt) == 1 and isinstance(prompt[0], str):
        return tokenize(prompt[0])
    if prompt and all(isinstance(token, int) for token in prompt):
        return [str(token) for token in prompt]
    return Refusal(400, "'prompt' is one text, or one list of token numbers, here.", param="prompt")


def _choice(text: str, finish_reason: str | None) -> str:
    return (
        f'{{"index":0,"text":{encode(text)},"logprobs":null,'
        f'"finish_reason":{encode(finish_reason)}}}'
    )
