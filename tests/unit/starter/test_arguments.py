"""`--kwargs key=value` is read as arguments."""

from __future__ import annotations

import pytest

from export_gate.starter.arguments import keyword_arguments
from export_gate.wall.errors import UserError


def test_values_are_read_as_the_config_reads_them():
    """Numbers, switches, null, lists, mappings and text, also text with `=`."""
    given = ["a=3", "b=1e-3", "c=true", "d=on", "e=null", "f=[1, x]", "g={h: 2}", "i=x=y", "j=", 'k="7"']
    assert keyword_arguments(given) == {
        "a": 3, "b": 1e-3, "c": True, "d": "on", "e": None, "f": [1, "x"], "g": {"h": 2}, "i": "x=y", "j": "", "k": "7",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("classes", "--kwargs: expected key=value, got 'classes'"),
        ("a-b=1", "--kwargs: expected key=value, got 'a-b=1'"),
        ("a=[1", "--kwargs a: expected YAML, got a syntax error"),
        ("a=!!python/object x", "--kwargs a: expected a number, text, a switch, null, a list or a mapping"),
    ],
)
def test_what_is_no_argument_is_refused(text: str, message: str):
    """The message names the argument."""
    with pytest.raises(UserError) as refused:
        keyword_arguments([text])
    assert str(refused.value).startswith(message)
