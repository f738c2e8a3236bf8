"""What the worker imports before it starts a model's process."""

from __future__ import annotations

from pathlib import Path

import pytest

from export_gate.worker.process.preload import load


def test_a_function_of_a_module_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each time it is named, and a module alone is only imported."""
    (tmp_path / "preload_sample.py").write_text("calls = []\ndef fill():\n    calls.append('filled')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    load("preload_sample")
    load("preload_sample:fill")
    import preload_sample

    assert preload_sample.calls == ["filled"]
