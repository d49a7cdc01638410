"""L10: exact prompt lengths, found by counting alone and checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headway.backends.backend import Call
from headway.core.errors import TargetError
from headway.load.inputs.calibration import BUDGETS, Calibrator
from headway.load.inputs.vocabulary import common_words
from headway.sim.messages import ChatMessage
from headway.sim.tokenizer import tokenize_chat

LENGTHS = [16, 40, 100, 256, 700, 1024, 2000, 5000]


def sim_chat_tokens(text: str) -> int:
    return len(tokenize_chat([ChatMessage(role="user", content=text)]))


@pytest.mark.parametrize("source", ["tokenize", "usage"])
async def test_prompts_are_exact_under_the_simulated_servers_chat_template(
    text_counter: Any, source: Any
) -> None:
    counter = text_counter(sim_chat_tokens, source=source)
    calibration = await Calibrator(counter, common_words()).calibrate(LENGTHS, seed=1)
    assert calibration.max_deviation_tokens == 0
    assert calibration.vocabulary.overhead_tokens == 7  # four a message, three open the reply
    assert calibration.vocabulary.tokens_per_word == 1


@pytest.mark.parametrize("source", ["tokenize", "usage", "tokenizer"])
async def test_prompts_are_exact_under_a_byte_pair_encoding(
    text_counter: Any, count_tokens: Callable[[str], int], source: Any
) -> None:
    counter = text_counter(count_tokens, overhead=11, source=source)
    calibration = await Calibrator(counter, common_words()).calibrate(LENGTHS, seed=1)
    assert calibration.max_deviation_tokens == 0
    assert calibration.vocabulary.overhead_tokens == 11
    assert {check.asked_tokens for check in calibration.checks} <= {*LENGTHS, 1024, 4096, 8192}


async def test_words_of_several_tokens_are_found_and_left_out(
    text_counter: Any, count_tokens: Callable[[str], int]
) -> None:
    candidates = [*common_words()[:200], "incomprehensibilities", "zyzzyva", "don't"]
    calibration = await Calibrator(text_counter(count_tokens), candidates).calibrate([64], seed=1)
    assert {"incomprehensibilities", "zyzzyva", "don't"}.isdisjoint(calibration.vocabulary.words)
    assert len(calibration.vocabulary.words) > 150
    assert all(count_tokens(f"a {word}") == 2 for word in calibration.vocabulary.words)


async def test_leads_cost_the_same_at_the_start_of_a_text(
    text_counter: Any, count_tokens: Callable[[str], int]
) -> None:
    calibration = await Calibrator(text_counter(count_tokens), common_words()).calibrate([9], 1)
    leads = calibration.vocabulary.leads
    assert len(leads) > 20
    assert len({count_tokens(lead) for lead in leads}) == 1


async def test_a_tokenizer_without_one_token_words_is_approximated_and_said_so(
    text_counter: Any,
) -> None:
    """Nothing is called exact that was not seen to be."""
    counter = text_counter(lambda text: len(text.encode()), overhead=5)
    calibration = await Calibrator(counter, common_words()).calibrate([500, 1000, 2000], seed=1)
    assert calibration.vocabulary.tokens_per_word > 3
    assert calibration.max_deviation_tokens > 0
    assert calibration.mean_deviation_tokens < 0.1 * 1000


async def test_words_that_merge_show_as_a_deviation(text_counter: Any) -> None:
    """A tokenizer that joins words is not additive; the check must find that out."""
    counter = text_counter(lambda text: len(text.split()) - len(text.split()) // 40)
    calibration = await Calibrator(counter, common_words()).calibrate([400], seed=1)
    assert calibration.max_deviation_tokens > 0


@pytest.mark.parametrize("source", ["tokenize", "usage"])
async def test_the_target_is_asked_no_more_than_the_budget(text_counter: Any, source: Any) -> None:
    """A count by usage is a real request that somebody pays for."""
    counter = text_counter(lambda text: len(text) // 3, source=source)
    await Calibrator(counter, common_words()).calibrate([256] * 50, seed=1)
    budget = BUDGETS[source]
    limit = 1 + budget.group_counts + max(budget.leads, 2) + budget.samples
    assert counter.calls <= limit
    assert source != "usage" or limit <= 40


async def test_a_refusal_of_the_target_is_passed_on() -> None:
    class Refusing:
        source = "tokenize"

        async def count(self, call: Call) -> int:
            raise TargetError("the target answered 404")

    with pytest.raises(TargetError, match="404"):
        await Calibrator(Refusing(), common_words()).calibrate([256], seed=1)


async def test_counts_that_do_not_grow_are_refused(text_counter: Any) -> None:
    with pytest.raises(TargetError, match="do not grow"):
        await Calibrator(text_counter(lambda _: 5), common_words()).calibrate([256], seed=1)
