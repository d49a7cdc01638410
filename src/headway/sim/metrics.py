"""`/metrics`: the server's own account, as Prometheus text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from headway.sim.answers import send_answer
from headway.sim.batching import BatchingStatistics
from headway.sim.exchange import Exchange
from headway.sim.truth import Truth

_TEXT = b"text/plain; version=0.0.4; charset=utf-8"


class SimMetrics:
    """Counts exchanges as they end.

    Args:
        statistics: Reads the engine's state.
        in_flight: Reads how many requests have not ended.
    """

    def __init__(
        self, statistics: Callable[[], BatchingStatistics], in_flight: Callable[[], int]
    ) -> None:
        self._statistics = statistics
        self._in_flight = in_flight
        self._ended: Counter[tuple[str, int, str]] = Counter()
        self._prompt_tokens = 0
        self._output_tokens = 0

    def count(self, truth: Truth) -> None:
        """Take an exchange that has ended into account."""
        self._ended[truth.path, truth.status, truth.outcome] += 1
        self._prompt_tokens += truth.prompt_tokens
        self._output_tokens += truth.output_tokens

    def answer(self, exchange: Exchange) -> None:
        """A route."""
        send_answer(exchange.connection, 200, self.render().encode(), _TEXT)

    def render(self) -> str:
        """Everything as Prometheus text."""
        lines: list[str] = []
        for name, kind, text, value in self._single_values():
            lines += _header(name, kind, text)
            lines.append(f"headway_sim_{name} {value}")
        lines += _header("requests_total", "counter", "Requests that have ended.")
        for (path, status, outcome), number in sorted(self._ended.items()):
            labels = f'path="{_escape(path)}",status="{status}",outcome="{outcome}"'
            lines.append(f"headway_sim_requests_total{{{labels}}} {number}")
        return "\n".join(lines) + "\n"

    def _single_values(self) -> Iterator[tuple[str, str, str, float]]:
        state = self._statistics()
        yield "requests_in_flight", "gauge", "Requests that have not ended.", self._in_flight()
        yield "requests_running", "gauge", "Sequences in the batch.", state.running
        yield "requests_waiting", "gauge", "Sequences in the queue.", state.waiting
        yield "kv_cache_usage_ratio", "gauge", "Held share of blocks.", state.kv_usage_ratio
        yield "preemptions_total", "counter", "Sequences preempted.", state.preemptions
        looked_up, found = state.prefix_queried_tokens, state.prefix_hit_tokens
        yield "prefix_cache_queries_tokens_total", "counter", "Prompt tokens looked up.", looked_up
        yield "prefix_cache_hits_tokens_total", "counter", "Prompt tokens found cached.", found
        yield "prompt_tokens_total", "counter", "Prompt tokens served.", self._prompt_tokens
        yield "generation_tokens_total", "counter", "Tokens sent.", self._output_tokens


def _header(name: str, kind: str, text: str) -> list[str]:
    return [f"# HELP headway_sim_{name} {text}", f"# TYPE headway_sim_{name} {kind}"]


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"')
