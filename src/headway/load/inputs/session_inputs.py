"""The sessions of a trace: recorded turns; where these have no text, one of the recorded length."""

from __future__ import annotations

import random

import msgspec

from headway.core.distributions import draw_int
from headway.load.inputs.conversation import Conversation, Turn, links_of
from headway.load.inputs.keys import derive_key
from headway.load.inputs.recipe import Recipe
from headway.load.inputs.row_file import RowReader
from headway.load.inputs.session_trace import Session, new_tokens
from headway.load.inputs.trace_inputs import TraceText
from headway.load.spec import TraceInputSpec

_TURN_STEP = 1 << 32
"""Between the numbers of two turns of one session: no other session's number lies there."""


class SessionInputs:
    """Makes the conversations of a trace of sessions."""

    def __init__(self, recipe: Recipe, spec: TraceInputSpec, seed: int, stage: int) -> None:
        if recipe.rows is None:
            raise ValueError("a trace's recipe has rows")
        self._spec = spec
        self._seed = seed
        self._stage = stage
        self._rows = RowReader(recipe.rows)
        self._decoder = msgspec.json.Decoder(Session)
        self._text = TraceText(recipe, spec, seed, stage)
        self._random = random.Random()

    def conversation(self, index: int) -> Conversation | None:
        if index >= self._rows.count:
            return None
        session = self._decoder.decode(self._rows[index])
        self._random.seed(derive_key(self._seed, self._stage, "conversation", index))
        asked = [self._asked(one.turn.call.output_tokens) for one in session]
        drawn = [draw_int(self._spec.prompt_tokens, self._random, 1) for _ in session]
        lengths = new_tokens(
            session,
            [one or 0 for one in asked],
            lambda number: session[number].words or drawn[number],
        )
        turns = []
        for number, one in enumerate(session):
            call = msgspec.structs.replace(one.turn.call, output_tokens=asked[number])
            if not one.has_text:
                prompt = self._prompt(session, number, max(1, lengths[number]), index)
                call = msgspec.structs.replace(call, prompt=prompt)
            turns.append(Turn(call, one.turn.think_time_s or 0.0, one.turn.links))
        return Conversation(tuple(turns))

    def close(self) -> None:
        self._rows.close()

    def _asked(self, recorded: int | None) -> int | None:
        output = self._spec.output_tokens
        if recorded is not None or output is None:
            return recorded
        return draw_int(output, self._random, 1)

    def _prompt(self, session: Session, number: int, tokens: int, index: int) -> str:
        key = derive_key(self._seed, self._stage, f"turn {number}", index)
        if links_of(number, session[number].turn.links).sources:
            return self._text.later(tokens, key)
        blocks = session[number].blocks
        return self._text.first(tokens, blocks, index + number * _TURN_STEP, key)
