"""A report for other people has no path of the machine that ran."""

from __future__ import annotations

from dataclasses import replace

import pytest
import report_samples as samples

from export_gate.github.shown import INTERPRETER_ELSEWHERE
from export_gate.report.build import build_report
from export_gate.report.places import near_the_config, places, relocated
from export_gate.report.render import render
from export_gate.run.checkout import Checkout

CHECKOUT = Checkout(root="/ci/work/shop", config="vision/export-gate.yml")
PLACES = places(CHECKOUT, ["/pool/venvs/7/bin/python", ""])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at /home/me/shop/model.py:12 `x`", "at model.py:12 `x`"),
        (
            'File "/env/lib/python3.12/site-packages/torch/a.py", line 3',
            'File "torch/a.py", line 3',
        ),
        ("/home/me/shopping/model.py and /tmp/a.onnx", "/home/me/shopping/model.py and /tmp/a.onnx"),
        ("export-gate run --config /home/me/shop/gate.yml", "export-gate run --config /home/me/shop/gate.yml"),
        ("/layer1/conv/MatMul", "/layer1/conv/MatMul"),
    ],
)
def test_without_a_checkout_paths_begin_at_the_config(text: str, shown: str):
    """Only what belongs to the project or to a package is shortened where a report is read on its own machine."""
    assert near_the_config(text, Checkout(folder="/home/me/shop")) == shown
    assert near_the_config(text, Checkout(root="/home/me/shop", folder="/home/me/shop/sub")) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/ci/work/shop/src/model.py:12: x", "src/model.py:12: x"),
        ('File "/ci/work/shop/src/model.py", line 3', 'File "src/model.py", line 3'),
        ("with /pool/venvs/7/bin/python (python on PATH)", "with .../python (python on PATH)"),
        ("/pool/venvs/7/lib/python3.12/site-packages/torch/nn/x.py:9", "torch/nn/x.py:9"),
        ("/usr/lib/python3.12/json/decoder.py", "json/decoder.py"),
        ("/home/runner/work/_temp/export-gate-x1/results.json: not JSON", ".../results.json: not JSON"),
        ("cannot open file:///tmp/a/b.onnx", "cannot open .../b.onnx"),
        ("C:\\agents\\7\\shop\\model.py and D:/a/shop/x.py", ".../model.py and .../x.py"),
        ("`/tmp/x/y`, (/var/a/b)", "`.../y`, (.../b)"),
        ("https://example.org/home/x and a/tmp/b, ../tmp/c", "https://example.org/home/x and a/tmp/b, ../tmp/c"),
        ("Name:'/encoder/layer.0/Add_1' 3e-4/2.5 1/2", "Name:'/encoder/layer.0/Add_1' 3e-4/2.5 1/2"),
        ("/ci/work/shop", "."),
        ("models.a.dims.batch: 2..16", "models.a.dims.batch: 2..16"),
    ],
)
def test_paths_are_shortened(text: str, shown: str):
    """Files of the repository keep their path in it; addresses and names of nodes stay as they are."""
    assert PLACES.shown(text) == shown


def test_a_whole_report_has_none():
    """Every text of a report is shortened, wherever it is."""
    secret = "/pool/venvs/7/secret/file.bin"
    results = samples.red()
    findings = tuple(
        replace(finding, message=f"{finding.message} {secret}", hint=secret, details=(secret,))
        for finding in results.findings
    )
    report = build_report(replace(results, findings=findings, config_path=secret))
    assert "secret" in render(report, "markdown")
    here = relocated(report, PLACES.shown)
    for format_ in ("markdown", "comment", "summary", "terminal"):
        text = render(here, format_)  # type: ignore[arg-type] # each is a format
        assert "secret" not in text
        assert "file.bin" in text


def test_a_published_command_has_no_interpreter_of_another_machine():
    """The config keeps its path in the repository; an interpreter in the repository stays, any other is left out."""
    typed = "export-gate run --config /ci/work/shop/ml/gate.yml --python /opt/py/3.11/bin/python m --case 'a'"
    shown = INTERPRETER_ELSEWHERE.sub("", PLACES.shown(typed))
    assert shown == "export-gate run --config ml/gate.yml m --case 'a'"
    own = PLACES.shown("export-gate run --python /ci/work/shop/.venv/bin/python m")
    assert INTERPRETER_ELSEWHERE.sub("", own) == "export-gate run --python .venv/bin/python m"
