"""What every verdict depends on, on any system."""

from __future__ import annotations

import os

import pytest

from export_gate.cache import circumstances


@pytest.mark.parametrize(
    "error", [None, OSError(22, "Invalid argument"), ValueError("unrecognized configuration name")]
)
def test_a_system_without_glibc_has_circumstances_too(error: Exception | None, monkeypatch: pytest.MonkeyPatch):
    """Musl knows the name of glibc's version and has no value, and macOS does not know the name."""

    def confstr(_name: str) -> None:
        if error:
            raise error

    monkeypatch.setattr(os, "confstr", confstr, raising=False)
    assert circumstances._library() == ""
