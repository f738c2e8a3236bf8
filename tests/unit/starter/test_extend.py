"""Further models are added to an existing config."""

from __future__ import annotations

import pytest

from export_gate.starter.extend import extended
from export_gate.wall.errors import UserError

FURTHER = "  second:\n    factory: a:b\n\n    inputs: {}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "version: 1\nmodels:\n  first: {factory: c:d}  # mine\n",
            "version: 1\nmodels:\n  first: {factory: c:d}  # mine\n  second:\n    factory: a:b\n\n    inputs: {}\n",
            id="at the end",
        ),
        pytest.param(
            "models:\n    first:\n        factory: c:d\n# about the version\nversion: 1",
            "models:\n    first:\n        factory: c:d\n"
            "    second:\n      factory: a:b\n\n      inputs: {}\n\n# about the version\nversion: 1",
            id="before the next key and its comment, as far in as the others",
        ),
        pytest.param(
            "version: 1\nmodels:\n  first: {factory: c:d}\n\n\n",
            "version: 1\nmodels:\n  first: {factory: c:d}\n  second:\n    factory: a:b\n\n    inputs: {}\n",
            id="without empty lines between",
        ),
        pytest.param(
            "version: 1\r\nmodels:\r\n  first: {factory: c:d}\r\n",
            "version: 1\r\nmodels:\r\n  first: {factory: c:d}\r\n"
            "  second:\r\n    factory: a:b\r\n\r\n    inputs: {}\r\n",
            id="with the line ends of Windows",
        ),
    ],
)
def test_what_is_there_keeps_its_lines(text: str, expected: str):
    """Comments, order and indentation stay unchanged; the models are added after the last one."""
    assert extended(text, FURTHER, "export-gate.yml") == expected


def test_models_in_one_line_are_refused():
    """There is no line after which the model could be added."""
    with pytest.raises(UserError) as refused:
        extended("version: 1\nmodels: {first: {factory: c:d}}\n", FURTHER, "gate.yml")
    assert str(refused.value) == "gate.yml: `models` is written in one line, which cannot be extended"
