"""HTML and SVG built from elements: text is escaped because there is no other way to put it in.

Error bodies, model names and labels are somebody else's text. A template with placeholders needs
every author to remember that; here a plain string is always text, and only `Markup` is not.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

VOID = frozenset({"br", "hr", "img", "input", "meta", "link"})


class Markup(str):
    """A string that is already HTML."""

    __slots__ = ()


Child = str | int | None | Iterable["Child"]


def tag(name: str, /, *children: Child, **attributes: str | float | bool | None) -> Markup:
    """One element.

    Args:
        name: The element's name; a constant of the caller.
        children: Markup as it is, text to be escaped, None for nothing, or iterables of these.
        attributes: `class_` is `class`, other underscores are hyphens. None and False leave an
            attribute out, True gives it without a value.
    """
    opening = f"<{name}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    if name in VOID:
        return Markup(opening)
    return Markup(f"{opening}{fragment(*children)}</{name}>")


def fragment(*children: Child) -> Markup:
    """Several children without an element around them."""
    return Markup("".join(_rendered(child) for child in children))


def _rendered(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return child
    if isinstance(child, str | int):
        return html.escape(str(child))
    return "".join(_rendered(grandchild) for grandchild in child)


def _attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    if isinstance(value, float):
        value = f"{value:.2f}".rstrip("0").rstrip(".")
    return f' {name}="{html.escape(str(value))}"'
