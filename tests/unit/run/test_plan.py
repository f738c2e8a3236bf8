"""Which models and targets a run selects."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from export_gate.config import Config
from export_gate.run.plan import Selection, make_plan
from export_gate.wall.contract import ModelContract, make_target
from export_gate.wall.errors import UserError


def model(name: str, *targets: object) -> ModelContract:
    """A contract without inputs."""
    return ModelContract(name=name, factory="m:f", inputs={}, targets=targets)  # type: ignore[arg-type] # three kinds of targets


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Two models with different targets."""
    models = (
        model("head", make_target("exported-program"), make_target("onnx", opset=18)),
        model("body", make_target("pt2")),
    )
    return Config(path=tmp_path / "export-gate.yml", sha256="0", python=None, pythonpath=("/src",), models=models)


def planned(config: Config, **selection: tuple[str, ...]) -> dict[str, list[str]]:
    """Model -> targets."""
    jobs = make_plan(config, Selection(**selection), Path("out"))
    return {job.contract.name: [target.name for target in job.contract.targets] for job in jobs}


def test_everything_is_planned_by_default(config: Config):
    """All models with all targets, in the config's order."""
    assert planned(config) == {"head": ["exported-program", "onnx"], "body": ["pt2"]}


def test_selection_cuts_models_and_targets(config: Config):
    """A model without the selected target is left out; options of a kept target stay."""
    assert planned(config, models=("head",)) == {"head": ["exported-program", "onnx"]}
    assert planned(config, targets=("onnx",)) == {"head": ["onnx"]}
    (job,) = make_plan(config, Selection(targets=("onnx",)), Path("out"))
    assert job.contract.targets == (make_target("onnx", opset=18),)


def test_skipped_targets_need_not_be_planned(config: Config):
    """Skipping is for scripts that do not know the config: a target may be unplanned, and a model may lose all."""
    assert planned(config, skipped=("pt2", "aoti")) == {"head": ["exported-program", "onnx"]}


def test_a_skipped_target_that_no_model_has(config: Config):
    """A mistyped name must not verify what was meant to be skipped."""
    with pytest.raises(UserError, match=r"no model has the target 'onx' to skip; did you mean 'onnx'\?$"):
        planned(config, skipped=("onx",))


@pytest.mark.parametrize(
    ("selection", "wanted"),
    [
        ({"models": ("body",), "skipped": ("pt2", "aoti")}, "pt2"),
        ({"targets": ("onnx",), "skipped": ("onnx",)}, "onnx"),
        ({"skipped": ("exported-program", "onnx", "pt2")}, "exported-program, onnx, pt2"),
    ],
)
def test_nothing_left_to_compare(config: Config, selection: dict[str, tuple[str, ...]], wanted: str):
    """Zero comparisons are never a pass: a selection without any target is a mistake."""
    with pytest.raises(UserError) as raised:
        planned(config, **selection)
    assert str(raised.value) == (
        f"{config.path}: nothing to compare: --skip-target excludes every selected target ({wanted}), "
        "expected at least one to be left"
    )
    assert raised.value.hint == "Skip fewer targets, or select models that have others."


def test_job_says_where_everything_is(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Folders are absolute, for a worker that is started elsewhere; the cases are those of the selection."""
    monkeypatch.chdir(tmp_path)
    job = make_plan(config, Selection(models=("body",), cases=("normal-*",)), Path("out"))[0]
    assert (job.base, job.pythonpath, job.cases) == (str(tmp_path), ("/src",), ("normal-*",))
    assert job.artifacts == str(tmp_path / "out" / "artifacts" / "body")


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        ({"models": ("haed",)}, "there is no model 'haed'; did you mean 'head'?"),
        ({"models": ("xyz",)}, "there is no model 'xyz'; it has body, head"),
        ({"models": ("body",), "targets": ("onnx",)}, "no selected model has the target 'onnx'; it has pt2"),
    ],
)
def test_unknown_names(config: Config, selection: dict[str, tuple[str, ...]], message: str):
    """The message has the nearest name, or all names."""
    with pytest.raises(UserError) as raised:
        planned(config, **selection)
    assert str(raised.value) == f"{config.path}: {message}"


def test_paths_of_a_linked_config_start_where_the_link_is(config: Config, tmp_path: Path):
    """There they were looked for when the config was read; a linked folder is the folder behind the link."""
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "gate.yml").touch()
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "export-gate.yml").symlink_to("../shared/gate.yml")
    (tmp_path / "also").symlink_to("app")
    for place in ("app", "also"):
        job = make_plan(replace(config, path=tmp_path / place / "export-gate.yml"), Selection(), Path("out"))[0]
        assert job.base == str(tmp_path.resolve() / "app")
