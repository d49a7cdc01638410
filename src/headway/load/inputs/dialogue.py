"""Reads what a row says: a prompt, a list of messages, or turns; in the field's usual spellings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from headway.backends.backend import Call, Message
from headway.load.inputs.fields import (
    ANSWER_NAMES,
    OUTPUT_TOKENS_NAMES,
    PROMPT_NAMES,
    FieldNames,
    body_of,
    field_name,
    prompt_text,
    whole_number,
)
from headway.load.inputs.listed_turns import StoredTurn, read_turns
from headway.load.inputs.messages import every_turn, one_request, parse_messages
from headway.load.inputs.problems import RowError

_MESSAGES_NAMES = ("messages", "conversations", "conversation")


class RowPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How rows are to be read."""

    prompt_column: str | None = None
    output_tokens_column: str | None = None
    every_turn: bool = False
    """Each user message of a conversation is a request; else the row is one."""
    keep_fields: bool = False
    """Keep the row's fields for templates and callables, and let rows have no prompt."""
    single_turn: bool = False
    """The backend has no conversations: a row of several turns cannot be used."""
    count_answer: Callable[[str], int] | None = None
    """Counts a recorded answer, whose length becomes the one asked for."""


class RowParser:
    """Turns a row's fields into turns."""

    def __init__(self, policy: RowPolicy) -> None:
        self._policy = policy

    def turns(self, fields: dict[str, Any]) -> tuple[StoredTurn, ...]:
        """The row's turns, at least one.

        Raises:
            RowError: the row cannot be used.
        """
        names = FieldNames(fields)
        turns = self._explicit_turns(fields) or self._message_turns(names)
        if not turns:
            turns = (self._prompt_turn(fields, names),)
        if len(turns) > 1 and self._policy.single_turn:
            raise RowError("several turns, and the backend has no conversations")
        output_tokens = self._row_output_tokens(names)
        variables = _plain(fields) if self._policy.keep_fields else None
        return tuple(_completed(turn, output_tokens, variables) for turn in turns)

    def _explicit_turns(self, fields: dict[str, Any]) -> tuple[StoredTurn, ...]:
        entries = fields.get("turns")
        if not isinstance(entries, list) or self._policy.prompt_column == "turns":
            return ()
        return tuple(one.turn for one in read_turns(entries))

    def _message_turns(self, names: FieldNames) -> tuple[StoredTurn, ...]:
        recorded = self._recorded_messages(names)
        if recorded is None:
            return ()
        messages = parse_messages(recorded)
        split = every_turn if self._policy.every_turn else one_request
        return tuple(self._recorded_turn(one.messages, one.answer) for one in split(messages))

    def _recorded_messages(self, names: FieldNames) -> Any:
        column = self._policy.prompt_column
        if column is None and (recorded := names.first(_MESSAGES_NAMES)) is not None:
            return recorded
        prompt = names.first(PROMPT_NAMES if column is None else (field_name(column),))
        return prompt if isinstance(prompt, list) else None

    def _recorded_turn(self, messages: tuple[Message, ...], answer: Message | None) -> StoredTurn:
        output_tokens = self._answer_tokens(answer.as_text() if answer else None)
        return StoredTurn(Call(messages=messages, output_tokens=output_tokens))

    def _prompt_turn(self, fields: dict[str, Any], names: FieldNames) -> StoredTurn:
        column = self._policy.prompt_column
        prompt = names.first(PROMPT_NAMES if column is None else (field_name(column),))
        answer = names.first(ANSWER_NAMES)
        output_tokens = self._answer_tokens(answer if isinstance(answer, str) else None)
        if prompt is None and self._policy.keep_fields and column is None:
            return StoredTurn(Call(output_tokens=output_tokens, body=body_of(fields)))
        if prompt is None:
            raise RowError(_no_prompt(column, fields))
        call = Call(prompt=prompt_text(prompt, "the row"), output_tokens=output_tokens)
        return StoredTurn(msgspec.structs.replace(call, body=body_of(fields)))

    def _answer_tokens(self, answer: str | None) -> int | None:
        if not answer or self._policy.count_answer is None:
            return None
        return max(1, self._policy.count_answer(answer))

    def _row_output_tokens(self, names: FieldNames) -> int | None:
        column = self._policy.output_tokens_column
        if column is None:
            return whole_number(names.first(OUTPUT_TOKENS_NAMES), "output_tokens")
        value = names.first((field_name(column),))
        if value is None:
            raise RowError(f"no column {column!r}")
        return whole_number(value, column)


def _no_prompt(column: str | None, fields: dict[str, Any]) -> str:
    columns = ", ".join(list(fields)[:12]) or "none"
    if column is not None:
        return f"no column {column!r} (columns: {columns})"
    return f"no prompt found; name its column with prompt_column (columns: {columns})"


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    # Parquet has dates, decimals and bytes; templates and callables get what JSON can say.
    plain: dict[str, Any] = msgspec.to_builtins(fields, str_keys=True, enc_hook=str)
    return plain


def _completed(
    turn: StoredTurn, output_tokens: int | None, variables: dict[str, Any] | None
) -> StoredTurn:
    call = turn.call
    if call.output_tokens is None and output_tokens is not None:
        call = msgspec.structs.replace(call, output_tokens=output_tokens)
    if variables is not None:
        call = msgspec.structs.replace(call, variables=variables)
    return msgspec.structs.replace(turn, call=call)
