"""The official client is the judge of whether the simulated server speaks its API (L9)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI

from headway.sim.tokenizer import tokenize

MODEL = "headway-sim"
MESSAGES: Any = [{"role": "user", "content": "Say something about trains."}]
# 4 for the message, 3 that open the reply, and the text: "something" counts two, "." one.
PROMPT_TOKENS = 4 + 3 + 6
WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city", "days"],
        },
    },
}

Connect = Callable[..., OpenAI]


@pytest.fixture(scope="module")
def connect(module_sim: Any) -> Iterator[Connect]:
    """A client of a server with the given options; equal options share a server."""
    servers: dict[str, Any] = {}
    clients: list[OpenAI] = []

    def start(**options: Any) -> OpenAI:
        key = repr(sorted(options.items()))
        if key not in servers:
            servers[key] = module_sim(**options)
        server = servers[key]
        clients.append(OpenAI(base_url=f"{server.url}/v1", api_key="key", max_retries=0))
        return clients[-1]

    yield start
    for client in clients:
        client.close()


def test_lists_its_models(connect: Connect) -> None:
    client = connect(model=["one", "two"])
    assert [model.id for model in client.models.list()] == ["one", "two"]


def test_answers_a_chat_in_one_piece(connect: Connect) -> None:
    reply = connect().chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=7)
    text = reply.choices[0].message.content
    assert text is not None
    assert len(tokenize(text)) == 7
    assert reply.choices[0].finish_reason == "length"
    assert reply.usage is not None
    assert reply.usage.prompt_tokens == PROMPT_TOKENS
    assert reply.usage.completion_tokens == 7
    assert reply.usage.total_tokens == PROMPT_TOKENS + 7


def test_streams_a_chat_token_by_token(connect: Connect) -> None:
    client = connect(ttft=0.002, itl=0.001)
    stream = client.chat.completions.create(
        model=MODEL,
        messages=MESSAGES,
        max_completion_tokens=5,
        stream=True,
        stream_options={"include_usage": True},
    )
    events = list(stream)
    deltas = [event.choices[0].delta for event in events if event.choices]
    assert (deltas[0].role, deltas[0].content) == ("assistant", "")
    texts = [delta.content for delta in deltas if delta.content]
    assert len(texts) == 5
    assert events[-2].choices[0].finish_reason == "length"
    assert events[-1].usage is not None
    assert events[-1].usage.completion_tokens == 5
    assert len({event.id for event in events}) == 1


def test_sends_no_usage_that_was_not_asked_for(connect: Connect) -> None:
    stream = connect().chat.completions.create(
        model=MODEL, messages=MESSAGES, max_tokens=3, stream=True
    )
    assert [event.usage for event in stream] == [None] * 5


@pytest.mark.parametrize("stream", [False, True])
def test_calls_a_tool_with_valid_arguments(connect: Connect, stream: bool) -> None:
    client = connect()
    asked: Any = {"model": MODEL, "messages": MESSAGES, "max_tokens": 12, "tools": [WEATHER]}
    if stream:
        with client.chat.completions.stream(**asked) as events:
            reply = events.get_final_completion()
    else:
        reply = client.chat.completions.create(**asked)
    call = reply.choices[0].message.tool_calls[0]
    assert call.function.name == "weather"
    arguments = json.loads(call.function.arguments)
    assert isinstance(arguments["city"], str)
    assert isinstance(arguments["days"], int)
    assert reply.choices[0].finish_reason == "tool_calls"


def test_answers_in_words_once_it_has_a_tool_result(connect: Connect) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    history: Any = [
        *MESSAGES,
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    ]
    reply = connect().chat.completions.create(
        model=MODEL, messages=history, max_tokens=4, tools=[WEATHER]
    )
    assert reply.choices[0].message.content
    assert reply.choices[0].message.tool_calls is None


def test_streams_reasoning_before_content(connect: Connect) -> None:
    client = connect(reasoning_tokens=3, reasoning_field="reasoning")
    stream = client.chat.completions.create(
        model=MODEL,
        messages=MESSAGES,
        max_tokens=8,
        stream=True,
        stream_options={"include_usage": True},
    )
    events = list(stream)
    deltas = [event.choices[0].delta for event in events if event.choices]
    kinds = ["reasoning" if getattr(d, "reasoning", None) else "content" for d in deltas[1:-1]]
    assert kinds == ["reasoning"] * 3 + ["content"] * 5
    details = events[-1].usage.completion_tokens_details  # type: ignore[union-attr]
    assert details.reasoning_tokens == 3


def test_completes_a_text(connect: Connect) -> None:
    client = connect()
    whole = client.completions.create(model=MODEL, prompt="Once upon a time", max_tokens=6)
    assert whole.usage is not None
    assert (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (4, 6)
    stream = client.completions.create(
        model=MODEL, prompt="Once upon a time", max_tokens=6, stream=True
    )
    assert "".join(event.choices[0].text for event in stream) == whole.choices[0].text


@pytest.mark.parametrize("reasoning", [0, 2])
def test_speaks_the_responses_api(connect: Connect, reasoning: int) -> None:
    client = connect(reasoning_tokens=reasoning, stop_tokens=9)
    whole = client.responses.create(model=MODEL, input="Say something.", max_output_tokens=50)
    assert whole.status == "completed"
    assert len(tokenize(whole.output_text)) == 9 - reasoning
    assert whole.usage is not None
    assert whole.usage.output_tokens == 9
    assert whole.usage.output_tokens_details.reasoning_tokens == reasoning
    with client.responses.stream(model=MODEL, input="Say something.") as events:
        kinds = [event.type for event in events]
        final = events.get_final_response()
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds.count("response.output_text.delta") == 9 - reasoning
    assert kinds.count("response.reasoning_text.delta") == reasoning
    assert final.output_text == whole.output_text


def test_a_response_cut_by_its_limit_is_incomplete(connect: Connect) -> None:
    stream = connect().responses.create(
        model=MODEL, input="Say something.", max_output_tokens=4, stream=True
    )
    last = list(stream)[-1]
    assert last.type == "response.incomplete"
    assert last.response.incomplete_details.reason == "max_output_tokens"
    assert last.response.usage.output_tokens == 4


def test_numbers_the_events_of_a_response_without_gap(connect: Connect) -> None:
    stream = connect(reasoning_tokens=2).responses.create(
        model=MODEL, input="Hi.", max_output_tokens=5, stream=True
    )
    numbers = [event.sequence_number for event in stream]
    assert numbers == list(range(len(numbers)))


def test_calls_a_function_by_the_responses_api(connect: Connect) -> None:
    tool: Any = {"type": "function", **WEATHER["function"]}
    with connect().responses.stream(
        model=MODEL, input="The weather?", max_output_tokens=9, tools=[tool]
    ) as events:
        call = next(e for e in events if e.type == "response.output_item.done").item
    assert call.name == "weather"
    assert set(json.loads(call.arguments)) == {"city", "days"}


def test_embeds_equal_texts_equally(connect: Connect) -> None:
    client = connect()
    reply = client.embeddings.create(model=MODEL, input=["a train", "a plane", "a train"])
    vectors = [entry.embedding for entry in reply.data]
    assert vectors[0] == vectors[2] != vectors[1]
    assert sum(x * x for x in vectors[0]) == pytest.approx(1.0, abs=1e-5)
    assert reply.usage.prompt_tokens == 6
    plain = client.embeddings.create(
        model=MODEL, input="a train", encoding_format="float", dimensions=8
    )
    assert len(plain.data[0].embedding) == 8


def test_errors_reach_the_client_as_their_own_types(connect: Connect) -> None:
    client = connect(api_key="key")
    with pytest.raises(openai.NotFoundError, match="does not exist"):
        client.chat.completions.create(model="misspelt", messages=MESSAGES)
    with pytest.raises(openai.BadRequestError, match="max_tokens"):
        client.chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=0)
    with pytest.raises(openai.RateLimitError) as limited:
        _chat(client, "rate-limit:seconds=7")
    assert limited.value.response.headers["retry-after"] == "7"
    with pytest.raises(openai.InternalServerError):
        _chat(client, "error:status=503")
    stranger = client.with_options(api_key="other")
    with pytest.raises(openai.AuthenticationError):
        stranger.models.list()


def test_an_error_inside_a_stream_is_raised(connect: Connect) -> None:
    client = connect()
    with pytest.raises(openai.APIError, match="simulated engine failed"):
        list(_chat(client, "error-event:at=3", stream=True))


async def test_serves_async_clients_side_by_side(sim: Any) -> None:
    server = sim(ttft=0.005, itl=0.001)
    async with AsyncOpenAI(base_url=f"{server.url}/v1", api_key="key") as client:
        streams = [
            await client.chat.completions.create(
                model=MODEL, messages=MESSAGES, max_tokens=5, stream=True
            )
            for _ in range(8)
        ]
        counts = [
            sum(bool(e.choices[0].delta.content) for e in [e async for e in s]) for s in streams
        ]
    assert counts == [5] * 8
    assert len(server.truth(at_least=8)) == 8


def _chat(client: OpenAI, fault: str, stream: bool = False) -> Any:
    return client.chat.completions.create(
        model=MODEL,
        messages=MESSAGES,
        max_tokens=8,
        stream=stream,
        extra_headers={"x-sim-fault": fault},
    )
