"""Routes that ask the model: from a request's body to a generation under way."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

from headway.core.clock import monotonic_ns
from headway.core.distributions import draw_int
from headway.sim.answers import send_refusal
from headway.sim.delivery import Delivery, Parcel, StreamDelivery, WholeDelivery, deliver_at_once
from headway.sim.dialect import Ask, Dialect, Memoized
from headway.sim.exchange import Exchange, Route
from headway.sim.faults import NO_FAULTS
from headway.sim.generation import Engine, Generation
from headway.sim.messages import Refusal
from headway.sim.options import ReplyOptions
from headway.sim.precise_timer import PreciseTimer
from headway.sim.reply import FinishReason, ReplyPlan, tool_reply
from headway.sim.script import IDENT
from headway.sim.truth import Truth


class ReplyPlanner:
    """Decides how long a reply is and what it consists of.

    Args:
        options: What the model answers.
        seed: The same seed gives the same lengths to the same order of requests.
    """

    def __init__(self, options: ReplyOptions, seed: int) -> None:
        self._options = options
        self._served = frozenset(options.models)
        self._reasons = options.reasoning_tokens.mean > 0
        self._rng = random.Random(seed)

    def plan(self, ask: Ask) -> ReplyPlan | Refusal:
        """The reply to `ask`, or why there is none."""
        options = self._options
        if ask.model is not None and ask.model not in self._served:
            return Refusal(
                404,
                f"The model `{ask.model}` does not exist.",
                param="model",
                code="model_not_found",
            )
        limit = options.default_output_tokens if ask.max_tokens is None else ask.max_tokens
        if limit < 1:
            return Refusal(400, f"max_tokens must be at least 1, not {limit}.", param="max_tokens")
        if len(ask.prompt) + limit > options.max_model_len:
            return Refusal(
                400,
                f"This model's maximum context length is {options.max_model_len} tokens, but "
                f"{len(ask.prompt)} of the prompt and {limit} of the reply were asked for.",
                code="context_length_exceeded",
            )
        return self._shape(ask, limit)

    def _shape(self, ask: Ask, limit: int) -> ReplyPlan:
        options = self._options
        tokens = limit
        finish: FinishReason = "stop" if ask.max_tokens is None else "length"
        if options.stop_tokens is not None and not ask.ignore_eos:
            stop = draw_int(options.stop_tokens, self._rng, minimum=1)
            tokens, finish = (stop, "stop") if stop <= limit else (limit, "length")
        reasoning = 0
        if self._reasons and ask.reasoning:
            reasoning = min(tokens, draw_int(options.reasoning_tokens, self._rng))
        tool = tool_reply(ask.tool) if ask.tool else None
        if tool is not None and tokens - reasoning > 1:
            finish = "tool_calls"
        model = ask.model or options.models[0]
        return ReplyPlan(model, reasoning, tokens, tool, finish, payload=ask.payload)


class Generating:
    """Starts generations and keeps those that are under way.

    Args:
        planner: Decides the replies.
        engine: Makes the tokens.
        timer: For what faults delay.
        account: Told of every exchange once it has ended.
        first_request: Told once, when the first request arrived.
    """

    def __init__(
        self,
        planner: ReplyPlanner,
        engine: Engine,
        timer: PreciseTimer,
        account: Callable[[Truth], None],
        first_request: Callable[[int], None],
    ) -> None:
        self._planner = planner
        self._engine = engine
        self._timer = timer
        self._account = account
        self._first_request = first_request
        self._count = 0
        self._under_way: dict[Delivery, Generation] = {}

    def route(self, dialect: Dialect, shapes: int = 512) -> Route:
        """A route that answers in `dialect`, which keeps `shapes` rendered replies."""
        return partial(self._answer, Memoized(dialect, shapes))

    def in_flight(self) -> int:
        """How many generations are under way."""
        return len(self._under_way)

    def abandon_all(self) -> None:
        """End the account of every generation under way."""
        for delivery in list(self._under_way):
            delivery.abandon()

    def _answer(self, dialect: Memoized, exchange: Exchange) -> None:
        self._count += 1
        if self._count == 1:
            self._first_request(exchange.request.arrival_ns)
        request = exchange.request
        sent_id = request.headers.get(b"x-request-id")
        truth = Truth(
            ident=str(self._count).zfill(len(IDENT)),
            request_id=None if sent_id is None else sent_id.decode("latin-1"),
            path=request.path.decode("latin-1"),
            status=200,
            arrival_ns=request.arrival_ns,
        )
        if exchange.faults is not NO_FAULTS and exchange.faults.replaces_head:
            exchange.after_stall(self._timer, lambda: self._send_broken(exchange, truth))
        else:
            self._generate(dialect, exchange, truth)

    def _generate(self, dialect: Memoized, exchange: Exchange, truth: Truth) -> None:
        ask = dialect.parse(exchange.request.body)
        if isinstance(ask, Refusal):
            self._refuse(exchange, truth, ask)
            return
        plan = self._planner.plan(ask)
        if isinstance(plan, Refusal):
            self._refuse(exchange, truth, plan)
            return
        truth.prompt_tokens = len(ask.prompt)
        parcel = Parcel(exchange, dialect, plan, ask.include_usage, truth)
        if self._engine.immediate and exchange.faults is NO_FAULTS and exchange.request.chunked:
            deliver_at_once(parcel, ask.stream)
            self._account(truth)
            exchange.connection.finish()
        else:
            self._start(ask, parcel)

    def _refuse(self, exchange: Exchange, truth: Truth, refusal: Refusal) -> None:
        truth.status = refusal.status
        send_refusal(exchange.connection, refusal)
        self._close(truth, "refused")

    def _start(self, ask: Ask, parcel: Parcel) -> None:
        exchange, truth = parcel.exchange, parcel.truth
        too_big = self._engine.refusal(truth.prompt_tokens, parcel.plan.output_tokens)
        if too_big is not None:
            self._refuse(exchange, truth, Refusal(400, too_big, code="context_length_exceeded"))
            return
        parcel.plan = _adapt(parcel.plan, exchange)
        delivery_type = StreamDelivery if ask.stream else WholeDelivery
        delivery = delivery_type(parcel, self._timer, self._ended)
        generation = Generation(
            delivery=delivery,
            arrival_ns=truth.arrival_ns,
            prompt=ask.prompt,
            output_tokens=parcel.plan.output_tokens,
        )
        self._under_way[delivery] = generation
        self._engine.start(generation)
        if isinstance(delivery, StreamDelivery) and delivery.open:
            delivery.open_early()

    def _ended(self, delivery: Delivery) -> None:
        generation = self._under_way.pop(delivery)
        if delivery.truth.outcome != "completed":
            self._engine.cancel(generation)
        self._account(delivery.truth)

    def _send_broken(self, exchange: Exchange, truth: Truth) -> None:
        status = exchange.send_broken()
        truth.status = status or 0
        self._close(truth, "cut" if status is None else "injected")

    def _close(self, truth: Truth, outcome: str) -> None:
        truth.end_ns = monotonic_ns()
        truth.outcome = outcome
        self._account(truth)


def _adapt(plan: ReplyPlan, exchange: Exchange) -> ReplyPlan:
    faults, chunked = exchange.faults, exchange.request.chunked
    if faults is NO_FAULTS and chunked:
        return plan
    return plan._replace(
        tokens_per_chunk=faults.tokens_per_chunk, role_first=faults.role_first, chunked=chunked
    )
