"""Who can count the tokens of a request."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from headway.backends.backend import Call
from headway.core.errors import ConfigError

if TYPE_CHECKING:
    from tokenizers import Tokenizer


class TokenCounter(Protocol):
    """Asks the target how many input tokens a request would have."""

    @property
    def source(self) -> Literal["tokenize", "usage", "tokenizer"]:
        """How it finds out; the report names it."""
        ...

    async def count(self, call: Call) -> int:
        """Input tokens of the call sent by itself, all that the backend adds included.

        Raises:
            TargetError: the target did not say.
        """
        ...


class LocalTokenizer:
    """Counts by a `tokenizer.json` on this machine; nothing is ever fetched (trap 51)."""

    source: Literal["tokenizer"] = "tokenizer"

    def __init__(self, path: Path) -> None:
        """Load the file.

        Raises:
            ConfigError: the extra is not installed, or the file is no tokenizer.
        """
        self._tokenizer = _load_tokenizer(path)

    def count_text(self, text: str, special_tokens: bool = True) -> int:
        """Tokens of the text, with or without those that the tokenizer puts around each input."""
        return len(self._tokenizer.encode(text, add_special_tokens=special_tokens).ids)

    async def count(self, call: Call) -> int:
        """Tokens of the call's text; the target's chat template is not known here."""
        return self.count_text(call.as_text())


def require_tokenizer_file(path: Path) -> None:
    """Refuse a path that leads nowhere, also when the file may turn out not to be needed.

    Raises:
        ConfigError: there is no such file.
    """
    if not path.is_file():
        raise ConfigError(f"there is no tokenizer file {path}; give the path of a tokenizer.json")


def _load_tokenizer(path: Path) -> Tokenizer:
    require_tokenizer_file(path)
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise ConfigError(
            f"counting by {path} needs the tokenizers extra: pip install 'headway[tokenizers]'"
        ) from error
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises bare Exception
        raise ConfigError(f"{path} is not a tokenizer.json: {error}") from error
