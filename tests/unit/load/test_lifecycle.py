"""What a backend filled in arrives in the record under its own name."""

from __future__ import annotations

import msgspec

from headway.backends.backend import Progress
from headway.load.conversation import ConversationRun
from headway.load.lifecycle import Request, StageFrame
from headway.records.record import Failure, RequestRecord

START_NS = 1_000


def test_every_field_of_a_record_holds_what_it_is_named_for(listed_inputs):
    """Records are constructed by position: no two fields may change places."""
    conversation = ConversationRun(41, listed_inputs([3]).conversation(0))
    turn = conversation.turns_lost_with(conversation.begin(START_NS), START_NS + 7)[-1]
    request = Request(turn, StageFrame(stage=5, worker=3, start_ns=START_NS, capture_text=True))
    expected = {"stage": 5, "index": 41, "turn": 2, "worker": 3, "due_ns": 7, "status": "errored"}
    for number, name in enumerate(Progress.__slots__, 100):
        setattr(request.progress, name, f"{name} {number}")
        expected[name] = f"{name} {number}"
        if name.endswith("_ns") and name not in ("pool_wait_ns", "connect_ns", "tls_ns", "gaps_ns"):
            setattr(request.progress, name, START_NS + number)
            expected[name] = number
    failure = Failure(category="server", message="m")
    record = request.end("errored", START_NS + 999, failure)
    expected["partial_text"] = expected.pop("text")
    expected |= {"failure": failure, "asked_output_tokens": turn.call.output_tokens}
    assert {name: getattr(record, name) for name in RequestRecord.__struct_fields__} == expected


def test_the_text_of_what_completed_is_kept_only_where_it_was_asked_for(listed_inputs):
    turn = ConversationRun(0, listed_inputs().conversation(0)).begin(START_NS)
    for capture, status, kept in ((False, "completed", None), (False, "cancelled", "half")):
        request = Request(turn, StageFrame(0, 0, START_NS, capture))
        request.progress.text = "half"
        assert request.end(status, START_NS + 1).partial_text == kept


def test_a_request_never_sent_was_never_done(listed_inputs):
    turn = ConversationRun(0, listed_inputs().conversation(0)).begin(START_NS)
    record = Request(turn, StageFrame(0, 0, START_NS, False)).end("cancelled", START_NS + 5)
    assert record.sent_ns is None
    assert record.done_ns is None
    assert msgspec.json.decode(msgspec.json.encode(record), type=RequestRecord) == record
