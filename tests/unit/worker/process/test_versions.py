"""Versions of dicts: every change of a module or class is seen, and reading changes nothing."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable

import pytest

from export_gate.worker.process import versions
from export_gate.worker.process.versions import Versions


class Plain:
    """A class with a method."""

    kept = 1

    def method(self) -> int:
        """Return its own."""
        return self.kept


def made() -> tuple[types.ModuleType, type]:
    """Return a module and a class, both with a name that they hold."""
    module = types.ModuleType("made")
    module.__dict__.update(kept=1)
    return module, type("Made", (Plain,), {"kept": 1})


def test_reading_and_calling_change_nothing() -> None:
    """As long as nothing is set, all readings are equal."""
    module, cls = made()
    watched = Versions([module, cls, Plain])
    before = watched.read()
    assert module.kept == cls.kept == cls().method() == 1
    assert watched.read() == before


CHANGES: dict[str, Callable[[types.ModuleType, type], object]] = {
    "set in a module": lambda module, _: setattr(module, "kept", 2),
    "set in a module's dict": lambda module, _: vars(module).update(kept=2),
    "new in a module": lambda module, _: setattr(module, "other", 2),
    "deleted from a module": lambda module, _: delattr(module, "kept"),
    "set in a class": lambda _, cls: setattr(cls, "kept", 2),
    "set behind a metaclass": lambda _, cls: type.__setattr__(cls, "kept", 2),
    "new in a class": lambda _, cls: setattr(cls, "other", 2),
    "deleted from a class": lambda _, cls: delattr(cls, "kept"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_is_another_version(change: Callable[[types.ModuleType, type], object]) -> None:
    """Whatever way a name is set or deleted, the reading differs from those before."""
    module, cls = made()
    watched = Versions([module, cls])
    before = watched.read()
    change(module, cls)
    assert watched.read() != before


def test_a_name_set_back_is_another_version_too() -> None:
    """What was replaced and put back between two readings did change."""
    module, cls = made()
    watched = Versions([module, cls])
    before = watched.read()
    module.__dict__["kept"] = 2
    module.__dict__["kept"] = 1
    assert watched.read() != before


def test_without_versions_every_reading_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then everything is compared after every call, as nothing says that it need not be."""
    monkeypatch.setattr(versions, "_has_versions", lambda: False)
    watched = Versions(made())
    assert watched.read() != watched.read()


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="CPython 3.14 does not number the changes of dicts")
def test_this_interpreter_has_versions() -> None:
    """Otherwise the gate pays for a full comparison after every call."""
    assert versions._has_versions()
