"""What one run says of itself."""

from __future__ import annotations

import os
from pathlib import Path

from harness.repositories import git

from export_gate import pipeline
from export_gate.run.order import Order

CONFIG = """
version: 1
models:
  m: {factory: "net:make", inputs: {x: {dtype: float32, shape: [2]}}}
"""
WORKER = """#!/bin/sh
git -C "$(dirname "$0")" -c user.name=tester -c user.email=tester@example.invalid commit --allow-empty -qm later
echo '0 {"op": "set", "field": "environment", "value": {"python": "3", "executable": "p", "platform": "p", "cpu": "c"}}'
echo '1 {"op": "started", "model": "m", "value": '$$'}'
echo '2 {"op": "set", "model": "m", "field": "problem", "value": {"message": "m", "hint": "h"}}'
echo '3 {"op": "ended", "model": "m"}'
"""
"""Stands in for an interpreter: somebody commits while it runs, and the model cannot be checked."""


def test_the_commit_of_a_run_is_the_one_at_its_beginning(tmp_path: Path):
    """A commit that is made while the models run was not verified."""
    git(tmp_path, "init", "--quiet")
    (tmp_path / "export-gate.yml").write_text(CONFIG)
    (tmp_path / "python").write_text(WORKER)
    (tmp_path / "python").chmod(0o755)
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--quiet", "--message", "first")
    first = git(tmp_path, "rev-parse", "HEAD")
    order = Order(
        config=tmp_path / "export-gate.yml",
        python=str(tmp_path / "python"),
        folder=tmp_path / "report",
        environment=dict(os.environ),
    )

    outcome, _ = pipeline.verify(order, lambda _python, _jobs: lambda _event: None)

    assert git(tmp_path, "rev-parse", "HEAD") != first
    assert outcome.results.head == first
    assert outcome.judgement.verdict == "problem"
