"""`/v1/embeddings`."""

from __future__ import annotations

import base64
import random
import zlib
from array import array
from typing import Literal

import msgspec

from headway.sim.dialect import Ask, cannot_read, encode
from headway.sim.messages import Refusal
from headway.sim.reply import ReplyPlan
from headway.sim.script import Script, Usage
from headway.sim.tokenizer import tokenize


class _Body(msgspec.Struct):
    input: str | list[str | int | list[int]]
    model: str | None = None
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: int | None = None


class EmbeddingsDialect:
    """Embeddings: the same text has the same vector, of length 1.

    Args:
        dimensions: Of a vector, where the request does not say.
    """

    def __init__(self, dimensions: int) -> None:
        self._dimensions = dimensions
        self._decoder = msgspec.json.Decoder(_Body)

    def parse(self, body: bytes) -> Ask | Refusal:
        try:
            fields = self._decoder.decode(body)
        except msgspec.MsgspecError as error:
            return cannot_read(error)
        dimensions = self._dimensions if fields.dimensions is None else fields.dimensions
        if dimensions < 1:
            return Refusal(400, "'dimensions' must be at least 1.", param="dimensions")
        texts = _texts(fields.input)
        if not texts:
            return Refusal(400, "'input' is empty; give at least one text.", param="input")
        vectors = [_vector(text, dimensions) for text in texts]
        return Ask(
            model=fields.model,
            prompt=[token for text in texts for token in text],
            max_tokens=1,
            stream=False,
            reasoning=False,
            payload=_render(vectors, fields.encoding_format == "base64"),
        )

    def script(self, plan: ReplyPlan) -> Script:
        raise NotImplementedError("embeddings are not streamed")

    def whole(self, plan: ReplyPlan) -> tuple[bytes, bytes]:
        before = b'{"object":"list","data":%b,"model":%b,"usage":'
        return before % (plan.payload, encode(plan.model).encode()), b"}"

    def usage(self, usage: Usage) -> bytes:
        return b'{"prompt_tokens":%d,"total_tokens":%d}' % (usage[0], usage[0])

    def error_event(self) -> bytes:
        raise NotImplementedError("embeddings are not streamed")


def _texts(given: str | list[str | int | list[int]]) -> list[list[str]]:
    """Each input's tokens."""
    if isinstance(given, str):
        return [tokenize(given)]
    if given and all(isinstance(one, int) for one in given):
        return [[str(one) for one in given]]
    return [
        tokenize(one) if isinstance(one, str) else [str(one)] if isinstance(one, int) else
        [str(token) for token in one]
        for one in given
    ]  # fmt: skip


def _vector(tokens: list[str], dimensions: int) -> array[float]:
    rng = random.Random(zlib.crc32(" ".join(tokens).encode()))
    values = [rng.gauss(0, 1) for _ in range(dimensions)]
    norm = sum(value * value for value in values) ** 0.5 or 1.0
    return array("f", [value / norm for value in values])


def _render(vectors: list[array[float]], as_base64: bool) -> bytes:
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": base64.b64encode(vector.tobytes()).decode()
            if as_base64
            else vector.tolist(),
        }
        for index, vector in enumerate(vectors)
    ]
    return msgspec.json.encode(data)
