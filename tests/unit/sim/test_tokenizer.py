from __future__ import annotations

from headway.sim.messages import ChatMessage, ContentPart
from headway.sim.reply import WORDS, word_texts
from headway.sim.tokenizer import MEDIA_PART_TOKENS, token_ids, tokenize, tokenize_chat


def test_words_are_cut_after_eight_characters_and_marks_stand_alone() -> None:
    assert tokenize("Hello, internationally!") == ["Hello", ",", "internat", "ionally", "!"]


def test_white_space_costs_nothing() -> None:
    assert tokenize("a  b\n\tc") == tokenize("a b c")


def test_a_chat_costs_four_tokens_a_message_and_three_at_its_end() -> None:
    messages = [ChatMessage("system", "Be brief"), ChatMessage("user", "Hi")]
    assert len(tokenize_chat(messages)) == (2 + 4) + (1 + 4) + 3
    assert len(tokenize_chat(messages, open_reply=False)) == (2 + 4) + (1 + 4)


def test_parts_count_by_their_text_and_media_at_a_fixed_price() -> None:
    parts = [ContentPart("text", "two words"), ContentPart("image_url")]
    assert len(tokenize_chat([ChatMessage("user", parts)])) == 2 + MEDIA_PART_TOKENS + 4 + 3


def test_every_reply_word_is_one_token_also_as_history() -> None:
    count = 3 * len(WORDS)
    assert len(tokenize("".join(word_texts(count)))) == count


def test_a_reply_as_history_continues_the_prompt_that_led_to_it() -> None:
    """The prefix cache can hit across turns only if this holds."""
    first = [ChatMessage("user", "Hi")]
    reply = "".join(word_texts(5))
    later = tokenize_chat([*first, ChatMessage("assistant", reply), ChatMessage("user", "More")])
    assert later[: len(tokenize_chat(first)) + 5] == tokenize_chat(first) + tokenize(reply)


def test_token_numbers_are_stable() -> None:
    assert token_ids(["train"]) == token_ids(["train"])
    assert token_ids(["train"]) != token_ids(["plane"])
