from __future__ import annotations

from headway.report.html.markup import Markup, fragment, tag


def test_text_is_escaped_and_markup_is_not() -> None:
    inner = tag("b", "a < b")
    assert tag("p", "x & y ", inner) == "<p>x &amp; y <b>a &lt; b</b></p>"


def test_attributes_cannot_be_broken_out_of() -> None:
    assert tag("a", "x", title='"><script>') == '<a title="&quot;&gt;&lt;script&gt;">x</a>'
    assert tag("a", "x", title="it's") == '<a title="it&#x27;s">x</a>'


def test_none_leaves_children_and_attributes_out() -> None:
    assert tag("p", None, ["a", None], id=None, hidden=False, open=True) == "<p open>a</p>"


def test_names_of_attributes_are_those_of_html() -> None:
    assert tag("i", class_="x", aria_label="y") == '<i class="x" aria-label="y"></i>'


def test_joining_markup_with_text_gives_text_again() -> None:
    """Concatenation must not smuggle text in as markup."""
    joined = Markup("<b>") + "<script>"
    assert not isinstance(joined, Markup)
    assert fragment(joined) == "&lt;b&gt;&lt;script&gt;"


def test_floats_are_short() -> None:
    assert tag("rect", x=1.0, y=2.3456) == '<rect x="1" y="2.35"></rect>'
