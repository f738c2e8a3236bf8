"""What project code replaces, and what the gate finds in place when that code has returned."""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from export_gate.worker.leaves import compare, totals, values
from export_gate.worker.model.reference import module_runner
from export_gate.worker.process import integrity
from export_gate.worker.process.integrity import guarded, watched
from export_gate.worker.study import engine

assert engine  # imports what the worker imports before any project code


def replace_functions() -> None:
    """Functions of others, in all the ways that they are held."""
    np.array_equal = lambda *_, **__: True
    json.dumps = lambda *_, **__: "{}"
    torch.Tensor.numpy = lambda *_: np.zeros(1)  # type: ignore[method-assign]
    builtins.sorted = lambda values, **_: list(values)  # type: ignore[assignment]


@pytest.mark.slow
def test_functions_of_others_are_the_projects_while_it_runs():
    """A project finds its replacements at its next call; in between, and at the end, the originals are in place."""
    before = np.array_equal, json.dumps, builtins.sorted
    with watched() as replaced:
        guarded(replace_functions)()
        assert (np.array_equal, json.dumps, builtins.sorted) == before
        assert torch.ones(1).numpy().tolist() == [1.0]
        assert guarded(lambda: (np.array_equal([1], [2]), torch.ones(1).numpy().tolist()))() == (True, [0.0])
        assert not np.array_equal([1], [2])
        assert replaced() == ()
    assert "numpy" not in vars(torch.Tensor)


@pytest.mark.slow
def test_a_project_may_undo_what_it_replaced():
    """A replacement that the project itself undid is not restored."""
    true = np.array_equal

    def undo() -> None:
        np.array_equal = true

    with watched():
        guarded(replace_functions)()
        guarded(undo)()
        assert guarded(lambda: np.array_equal([1], [2]))() is False


@pytest.mark.slow
def test_replaced_builtins_hide_no_other_change():
    """The comparing functions are bound in advance: a project's own zip and vars do not look for changes."""
    before = builtins.zip, builtins.vars, np.array_equal

    def replace() -> None:
        builtins.zip = lambda *_, **__: iter(())  # type: ignore[assignment,misc]
        builtins.vars = lambda *_: {}  # type: ignore[assignment]
        np.array_equal = lambda *_, **__: True

    with watched():
        guarded(replace)()
        assert (builtins.zip, builtins.vars, np.array_equal) == before


@pytest.mark.slow
def test_inner_calls_leave_outer_ones_their_functions():
    """A guarded call within another one ends with the gate's functions, and the next call has the project's."""
    with watched():
        guarded(replace_functions)()
        inner = guarded(lambda: np.array_equal([1], [2]))
        outer = guarded(lambda: (inner(), np.array_equal([1], [2])))
        assert outer() == (True, False)
        assert inner() is True


def _replace_attribute() -> None:
    compare.compare_leaf = None  # type: ignore[assignment]


def _replace_code() -> None:
    compare.flat_reals.__code__ = (lambda array: array * 0).__code__


def _replace_defaults() -> None:
    compare.compare_case.__defaults__ = (1,)


def _delete_defaults() -> None:
    del values.flatten.__defaults__


def _replace_code_unwatched() -> None:
    integrity._CURRENT = None
    _replace_code()


def _replace_method() -> None:
    totals.Totals.of = None  # type: ignore[assignment,method-assign]


def _shadow_builtin() -> None:
    compare.max = min  # type: ignore[attr-defined]


def _replace_module() -> None:
    compare.np = None  # type: ignore[assignment]


def _forget_watch() -> None:
    integrity._CURRENT = None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("replace", "name"),
    [
        (_replace_attribute, "leaves.compare.compare_leaf"),
        (_replace_code, "leaves.compare.flat_reals"),
        (_replace_defaults, "leaves.compare.compare_case"),
        (_delete_defaults, "leaves.values.flatten"),
        (_replace_code_unwatched, "leaves.compare.flat_reals process.integrity._CURRENT"),
        (_replace_method, "leaves.totals.Totals.of"),
        (_shadow_builtin, "leaves.compare.max"),
        (_replace_module, "leaves.compare.np"),
        (_forget_watch, "process.integrity._CURRENT"),
    ],
)
@pytest.mark.parametrize("is_guarded", [True, False])
def test_the_gates_own_code_is_put_back_and_named(replace: Callable[[], None], name: str, is_guarded: bool):
    """Whatever part of the gate is replaced, and by whom, is restored on request, and its name is known."""
    expected = compare.compare_case("c", (), ())
    with watched() as replaced:
        (guarded(replace) if is_guarded else replace)()
        assert replaced() == tuple(f"export_gate.worker.{each}" for each in name.split())
        assert compare.compare_case("c", (), ()) == expected
        assert not hasattr(compare, "max")
    assert integrity._CURRENT is None


def test_without_a_watch_functions_are_called_as_they_are():
    """Without an observed model nothing is checked."""
    assert guarded(lambda x: x + 1)(1) == 2


@pytest.mark.slow
def test_an_exception_passes_and_all_is_put_back():
    """A call that raises leaves nothing replaced either."""

    def fail() -> Any:
        _replace_attribute()
        raise ValueError("on purpose")

    with watched() as replaced:
        with pytest.raises(ValueError, match="on purpose"):
            guarded(fail)()
        assert callable(compare.compare_leaf)
        assert replaced() == ("export_gate.worker.leaves.compare.compare_leaf",)


class _Flattened:
    """A container that replaces a function of the gate while torch flattens it."""


@pytest.mark.slow
def test_a_container_of_the_projects_flattens_itself_under_guard():
    """Flattening a registered container runs the project's code, so what it replaces is put back like after a call."""
    real = compare.compare_leaf

    def children(_: _Flattened) -> tuple[list[Any], None]:
        _replace_attribute()
        return [torch.ones(1)], None

    torch.utils._pytree.register_pytree_node(_Flattened, children, lambda _, __: _Flattened())
    try:
        with watched() as replaced:
            leaves = module_runner(lambda: {"y": _Flattened()}, {})(values.Call())
            assert [leaf.name for leaf in leaves] == ["y.0"]
            assert compare.compare_leaf is real
            assert replaced() == ("export_gate.worker.leaves.compare.compare_leaf",)
    finally:
        torch.utils._pytree._deregister_pytree_node(_Flattened)
