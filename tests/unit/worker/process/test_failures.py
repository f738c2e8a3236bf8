"""Exceptions of the project's code become records."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import pytest

from export_gate.wall.source import SourceLine
from export_gate.worker.process.failures import (
    MESSAGE_LIMIT,
    TRACE_LINES,
    describe,
    failure_of,
    lines_of_trace,
    source_line,
)
from export_gate.worker.targets.signature import Names, require_names


class Rude(Exception):
    """Its text ends the process of whoever asks."""

    def __str__(self) -> str:
        raise SystemExit(3)


def raised_by(code: str, path: Path) -> BaseException:
    """The exception that a project's source file raises."""
    path.write_text(code)
    try:
        exec(compile(code, str(path), "exec"), {})
    except Exception as error:  # noqa: BLE001 - whatever the source raises
        return error
    raise AssertionError


def test_message_is_bounded_and_plain():
    """Colour codes are removed, and a megabyte of text is cut."""
    assert describe(ValueError("\x1b[31mred\x1b[0m ")) == "red"
    long = describe(ValueError("x" * 1_000_000))
    assert (len(long), long[-4:]) == (MESSAGE_LIMIT, "x...")


def test_text_that_cannot_be_made():
    """An exception class that raises, or even exits, when it is shown."""
    assert describe(Rude()) == "(its text cannot be shown: SystemExit)"
    failure = failure_of(Rude(), "run", ())
    assert (failure.type, failure.message) == ("Rude", "(its text cannot be shown: SystemExit)")


def test_source_is_the_innermost_line_of_the_project(tmp_path: Path):
    """Library frames below it do not hide the project's own line; nor do installed packages in its folder."""
    error = raised_by("import json\n\n\ndef act():\n    json.loads('{')\n\n\nact()\n", tmp_path / "mine.py")
    found = source_line(error, (tmp_path,))
    assert found is not None
    assert (found.path, found.line, found.text) == (str(tmp_path / "mine.py"), 5, "json.loads('{')")
    installed = tmp_path / ".venv" / "lib" / "site-packages"
    installed.mkdir(parents=True)
    assert source_line(raised_by("1 / 0\n", installed / "lib.py"), (tmp_path,)) is None
    assert source_line(error, (tmp_path / "elsewhere",)) is None


def test_source_quoted_in_the_text(tmp_path: Path):
    """If torch quotes the user's line in its message, that line is the source."""
    (tmp_path / "net.py").write_text("a\nb = x.item()\n")
    error = RuntimeError(f'Could not guard\n  File "{tmp_path}/net.py", line 2, in forward\n    b = x.item()')
    found = source_line(error, (tmp_path,))
    assert found is not None
    assert (found.line, found.text) == (2, "b = x.item()")


def test_chained_exceptions_end(tmp_path: Path):
    """A cycle of causes is followed once."""
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert failure_of(first, "run", (tmp_path,)).message == "a"


def test_trace_is_short(tmp_path: Path):
    """A deep recursion leaves a few lines."""
    error = raised_by("def f():\n    f()\n\n\nf()\n", tmp_path / "deep.py")
    assert len(failure_of(error, "eager", (tmp_path,)).trace.splitlines()) <= TRACE_LINES


def test_what_the_gate_raises_on_purpose_has_no_traceback():
    """Its message says what is wrong; the gate's own frames would not help anybody."""
    names = Names(inputs=("x",), outputs=("y",), graph_inputs=("other",), graph_outputs=("y",))
    with pytest.raises(ValueError, match="lacks") as raised:
        require_names(names)
    failure = failure_of(raised.value, "load", ())
    assert failure.message.startswith("the graph has input 'other'")
    assert not failure.trace


def test_a_line_of_the_gate_that_fails_has_its_frames():
    """An error that nobody meant to raise is explained by where it happened."""
    with pytest.raises(AttributeError) as raised:
        require_names(None)  # type: ignore[arg-type] # a fault of the caller
    assert "signature.py" in failure_of(raised.value, "load", ()).trace


def test_torchs_suggestions_are_kept():
    """The lines below `Suggested fixes:`, without what follows."""
    message = "Constraints violated (batch)!\n\nSuggested fixes:\n  batch = Dim('batch', max=8)\n  seq = 4\n\nmore"
    assert failure_of(ValueError(message), "export", ()).suggestions == ("batch = Dim('batch', max=8)", "seq = 4")


@pytest.mark.parametrize("stage", ["convert", "load"])
def test_missing_package_of_a_target(stage: str):
    """The record has the interpreter and the command, also if the missing package was only the cause."""
    try:
        try:
            import_module("onnxscript.not_there")
        except ModuleNotFoundError as cause:
            raise RuntimeError("exporter not available") from cause
    except RuntimeError as error:
        failure = failure_of(error, stage, ())  # type: ignore[arg-type] # one of the stages
    assert failure.kind == "missing-package"
    assert failure.message == (
        f"{sys.executable} (the project's interpreter) cannot import onnxscript: install with `{sys.executable} "
        "-m pip install onnxscript`, or name another interpreter with `--python`, EXPORT_GATE_PYTHON or `python:` in "
        "the config"
    )


def test_missing_module_of_the_project_is_an_exception():
    """A model that lacks a module of its own does not lack a target's package."""
    assert failure_of(ModuleNotFoundError("No module named 'mine'", name="mine"), "load", ()).kind == "exception"
    assert failure_of(ModuleNotFoundError("No module named 'onnx'", name="onnx"), "run", ()).kind == "exception"


TRACE = """File "models/net.py", line 2, in forward
    return self.layer(x)
  File "layers/block.py", line 7, in forward
    return attend(x)
  File "torch/nn/modules/linear.py", line 3, in forward
    return F.linear(x)
"""


def test_a_quoted_stack_names_the_own_line_and_the_packages_line_below(tmp_path: Path):
    """Paths are relative, as in an exported program; torch itself is not a foreign package."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "net.py").write_text("def forward(self, x):\n    return self.layer(x)\n", encoding="utf-8")
    source, foreign = lines_of_trace(TRACE, (tmp_path,))

    assert source == SourceLine(path=str(tmp_path / "models" / "net.py"), line=2, text="return self.layer(x)")
    assert foreign == SourceLine(path="layers/block.py", line=7, text="return attend(x)")
    assert lines_of_trace("", (tmp_path,)) == (None, None)
    assert lines_of_trace(TRACE.splitlines()[0], (tmp_path,))[1] is None
