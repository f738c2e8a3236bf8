"""A model's description becomes the text of a starter config, and a factory's name becomes its place."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from export_gate.config import load_config
from export_gate.config.document import read_document
from export_gate.config.nodes import Allowance
from export_gate.config.problems import Problems
from export_gate.run.order import Order
from export_gate.starter.names import beside, check_reference, model_name, needed_pythonpath
from export_gate.starter.text import comment, flow, spec_text
from export_gate.starter.write import (
    Starter,
    Wish,
    check_names,
    check_place,
    check_text,
    render_config,
    render_starter,
    starter_config,
    trial_lines,
)
from export_gate.wall.contract import ConstantSpec, DictSpec, Dim, SequenceSpec, Size, TensorSpec
from export_gate.wall.description import Description, Found, Guess, LeftOut
from export_gate.wall.errors import UserError

BATCH = Size(factors={"batch": 1})
IMAGE = TensorSpec(dtype="float32", shape=(BATCH, Size(offset=3)), range=(0.0, 1.0))
WORKS = Description(
    signature="forward(x, state, scale=0.5, mask=None, *rest, **more)",
    inputs=(
        Guess(name="x", spec=IMAGE, reason="conv: Conv2d(3, 4)"),
        Guess(
            name="state",
            spec=DictSpec(items={"on": SequenceSpec(kind="tuple", items=(IMAGE, ConstantSpec(value="# c")))}),
            reason="its\nname",
        ),
    ),
    left_out=(
        LeftOut(name="scale", kind="positional_or_keyword", default="0.5", spec=ConstantSpec(value=0.5)),
        LeftOut(name="mask", kind="positional_or_keyword", default="None"),
        LeftOut(name="rest", kind="var_positional"),
        LeftOut(name="more", kind="var_keyword"),
    ),
    dims=(Dim(name="batch", min=1, max=16),),
    verdict="works",
    tried=1,
    sizes=("batch 1, 2, 3, 16",),
    outputs=(
        Found(name="logits", dtype="float32", shape=(BATCH, Size(offset=3))),
        Found(name="aux", dtype="int64", shape=None, nonfinite=True),
        Found(name="cache", dtype="DynamicCache", shape=None),
    ),
    training=3,
)
TEXT = """\
# Every key is explained in docs/config.md. Next: review the lines with comments, then run `export-gate run`.
version: 1
pythonpath: [".."]

defaults:
  timeout: 10m
  targets: {exported-program: {}, pt2: {}, onnx: {}}  # add aoti: {} for AOTInductor

models:
  glyph-head:
    factory: glyphlab.model:make_model
    # The factory returns the model in train mode, which is a violation: call .eval() in it, or uncomment this line.
    # train-mode: force-eval
    dims:  # sizes that vary: set min and max to the sizes that callers send
      batch: {min: 1, max: 16}
    # forward(x, state, scale=0.5, mask=None, *rest, **more)
    # These inputs were tested: forward runs at batch 1, 2, 3, 16.
    # Ranges are guesses: replace them with those of your data.
    # NaN or infinity was returned in aux: is a range too wide?
    inputs:
      x: {dtype: float32, shape: [batch, 3], range: [0, 1]}  # conv: Conv2d(3, 4)
      state: {dict: {on: {tuple: [{dtype: float32, shape: [batch, 3], range: [0, 1]}, {constant: "# c"}]}}}  # its name
      # scale: {constant: 0.5}  # optional, 0.5 by default
      # mask: optional, None by default
      # *rest: further inputs can be declared here, in order, under names of your choice
      # **more: further inputs can be declared here, by name
    # outputs:  # uncomment to name the artifact's outputs and to check their dtypes and shapes in eager too
    #   logits: {dtype: float32, shape: [batch, 3]}
    #   aux: {dtype: int64}
"""


def starter(model: Description, **changes: object) -> Starter:
    """A starter of the glyph head."""
    fields = {
        "name": "glyph-head",
        "factory": "glyphlab.model:make_model",
        "kwargs": {},
        "trial": trial_lines(model),
        "outputs": model.outputs[:2],
    }
    return Starter(**{**fields, **changes})  # type: ignore[arg-type] # fields of the record


def test_text_is_for_people():
    """Lines are short, comments mark what to review, and further possible keys are comments."""
    assert render_config(render_starter(starter(WORKS), WORKS), ("..",)) == TEXT


def test_text_is_valid_with_each_comment_enabled(tmp_path: Path):
    """The commented keys are valid: without the `# `, the config still loads."""
    text = render_config(render_starter(starter(WORKS), WORKS))
    for line in ("# train-mode", "# scale", "# outputs", "#   logits", "#   aux"):
        assert f"    {line}" in text
        text = text.replace(line, line[2:])
    path = tmp_path / "export-gate.yml"
    path.write_text(text)
    (model,) = load_config(path).models
    assert (model.train_mode, list(model.inputs)) == ("force-eval", ["x", "state", "scale"])
    assert [output.name for output in model.outputs] == ["logits", "aux"]


def test_outputs_are_declared_as_they_were_seen(tmp_path: Path):
    """Each output of forward is a promise, also one that is None and one without a dtype."""
    seen = replace(WORKS, outputs=(*WORKS.outputs, Found(name="loss", dtype="None", shape=None)))
    text = render_config(render_starter(starter(seen, outputs=seen.outputs, declares_outputs=True), seen))
    assert text.partition("    outputs:")[2].splitlines() == [
        "  # as forward returned them: one that is dropped or changed is a violation",
        "      logits: {dtype: float32, shape: [batch, 3]}",
        "      aux: {dtype: int64}",
        "      cache: {}",
        "      loss: none",
    ]
    path = tmp_path / "export-gate.yml"
    path.write_text(text)
    assert [output.leaf for output in load_config(path).models[0].outputs] == ["compare", "compare", "compare", "none"]


@pytest.mark.parametrize(
    ("tried", "expected"),
    [
        (1, "CORRECT THESE INPUTS: 1 guess was tested and forward accepted none; the first one raised"),
        (24, "CORRECT THESE INPUTS: 24 guesses were tested and forward accepted none; the first one raised"),
    ],
)
def test_failed_trial_asks_for_correction(tried: int, expected: str):
    """Guesses that failed are marked, with what forward raised."""
    failed = Description(
        signature="forward(x)", inputs=WORKS.inputs, verdict="fails", tried=tried, problem="ValueError: no"
    )
    assert trial_lines(failed) == (expected, "ValueError: no")


def test_sizes_are_left_out_where_none_varies():
    """A model without dims ran at its one size; the notes of the trial follow."""
    only = Description(signature="forward(x)", inputs=WORKS.inputs, verdict="works", tried=1, notes=("A note.",))
    assert trial_lines(only) == (
        "These inputs were tested: forward runs.",
        "Ranges are guesses: replace them with those of your data.",
        "A note.",
    )


@pytest.mark.parametrize(
    ("factory", "expected"),
    [
        ("glyphlab.model:make_glyph_head", "glyph-head"),
        ("glyphlab.model:make_model", "glyphlab"),
        ("pkg.nets.resnet:build", "resnet"),
        ("pkg.nets:TinyResNet18", "tiny-res-net18"),
        ("models/net.py:Net.create", "model"),
        ("model.py:make_model", "model"),
        ("_x:_", "x"),
    ],
)
def test_model_is_named_after_what_says_something(factory: str, expected: str):
    """The name is the attribute's, else the module's, else the package's; `make_model` is too general."""
    assert model_name(factory) == expected


def test_name_that_is_taken_gets_a_number():
    """Factories with the same name are separate models."""
    assert model_name("pkg.nets:make_resnet", {"resnet", "resnet-2"}) == "resnet-3"


def test_arguments_and_an_artifact_are_written(tmp_path: Path):
    """They are keys of the model, and the config loads with them."""
    written = starter(WORKS, kwargs={"classes": 3, "sizes": [1, 2], "mode": "a: b"}, artifact="dist/model.onnx")
    text = render_config(render_starter(written, WORKS))
    assert '    kwargs: {classes: 3, sizes: [1, 2], mode: "a: b"}\n' in text
    path = tmp_path / "export-gate.yml"
    path.write_text(text)
    (model,) = load_config(path).models
    assert model.kwargs == {"classes": 3, "sizes": [1, 2], "mode": "a: b"}
    assert [(target.name, target.artifact) for target in model.targets] == [("onnx", "dist/model.onnx")]


def test_reference_that_is_not_exported_says_so(tmp_path: Path):
    """Its config verifies only files, and asks for their names."""
    model = replace(WORKS, is_exportable=False)
    text = render_config(render_starter(starter(model), model))
    assert "    # torch.export does not take what the factory returns: nothing is exported;" in text
    assert "    # NAME THE FILES that are shipped; each is verified against it.\n" in text
    path = tmp_path / "export-gate.yml"
    path.write_text(text)
    (loaded,) = load_config(path).models
    assert [(target.name, target.artifact) for target in loaded.targets] == [("onnx", "model.onnx")]


@given(st.text())
def test_any_text_survives_yaml(text: str):
    """Names and values reach the config unchanged, whatever characters they have, if a file can hold them."""
    if any("\ud800" <= character <= "\udfff" for character in text):
        return
    document = f"{{a: [{flow(text)}], b: {flow([text, 1, None, True])}}}"
    problems = Problems()
    root = read_document(document, problems, Allowance())
    assert not problems
    first, second = root.child("a"), root.child("b")
    assert first is not None
    assert second is not None
    assert [item.value for item in (*first.children, *second.children)] == [text, text, 1, None, True]


@given(st.text())
def test_any_text_is_a_comment(text: str):
    """A comment stays on its line and comments out nothing else."""
    line = comment(text)
    assert line.isprintable()
    assert len(line) <= 112


def test_numbers_are_short():
    """Whole bounds have no fraction, other bounds keep their digits."""
    assert spec_text(TensorSpec(dtype="float32", shape=(), range=(-3.0, 0.1))) == (
        "{dtype: float32, shape: [], range: [-3, 0.1]}"
    )


def test_reference_without_attribute_is_refused():
    """A module alone is not a factory."""
    with pytest.raises(UserError) as refused:
        check_reference("mypkg.model")
    assert str(refused.value) == "factory 'mypkg.model': expected module:attribute or path/to/file.py:attribute"
    assert refused.value.hint == "name the function or class that creates the model, such as `mypkg.model:make_model`"


def test_parameter_that_no_key_can_name_is_refused():
    """A config's keys are ASCII, and so are the names of an artifact's inputs."""
    chinese = Description(
        signature="forward(输入)", inputs=(Guess(name="输入", spec=IMAGE, reason=""),), verdict="works", tried=1
    )
    with pytest.raises(UserError) as refused:
        check_names(chinese)
    assert str(refused.value) == "parameter '输入' of forward(输入): expected a name of ASCII letters, digits and '_'"
    assert refused.value.hint == "rename the parameter: exported artifacts name their inputs after it"


def test_output_in_a_missing_folder_is_refused(tmp_path: Path):
    """Nothing is started if the file could not be written."""
    output = tmp_path / "ci" / "export-gate.yml"
    with pytest.raises(UserError) as refused:
        starter_config(Wish(factories=("a:b",)), output, Order(config=output))
    assert str(refused.value) == f"{output}: the folder {output.parent} does not exist"
    assert refused.value.hint == "create it, or name another file with `-c`"


def test_output_in_a_folder_without_permission_is_refused(tmp_path: Path):
    """The reason is the system's."""
    gone = tmp_path / "gone"
    with pytest.raises(UserError) as refused:
        check_text("version: 1", gone / "export-gate.yml", gone)
    assert str(refused.value) == f"{gone / 'export-gate.yml'}: cannot be written: No such file or directory"


def test_what_does_not_fit_the_config_that_exists_is_the_users_to_mend(tmp_path: Path):
    """It is not a bug of ours: the existing file is the reason."""
    output = tmp_path / "export-gate.yml"
    output.touch()
    with pytest.raises(UserError) as refused:
        check_text("version: 2", output, tmp_path)
    assert str(refused.value).startswith(f"{output}: with the further models, the config would not be valid: ")


def test_file_elsewhere_cannot_be_named(tmp_path: Path):
    """Configs can name only files of their repository."""
    (tmp_path / "project" / ".git").mkdir(parents=True)
    check_place(str(tmp_path / "project" / "dist" / "model.onnx"), tmp_path / "project")
    with pytest.raises(UserError) as refused:
        check_place(str(tmp_path / "model.onnx"), tmp_path / "project")
    assert str(refused.value) == f"--artifact {tmp_path / 'model.onnx'}: expected a file in {tmp_path / 'project'}"


def test_check_leaves_nothing_behind(tmp_path: Path):
    """The text is checked in the folder that it is for, and only the caller writes the config."""
    check_text(render_config(render_starter(starter(WORKS), WORKS)), tmp_path / "export-gate.yml", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_pythonpath_is_written_only_where_the_default_does_not_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The config's folder, its src/ and an installed package are found anyway; another folder is declared."""
    for folder in (".git", "src/inner", "top", "ci"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "top" / "model.py").touch()
    monkeypatch.chdir(tmp_path)
    assert needed_pythonpath("top.model:make", tmp_path) == ()
    assert needed_pythonpath("inner:make", tmp_path) == ()
    assert needed_pythonpath("installed.model:make", tmp_path / "ci") == ()
    assert needed_pythonpath("top/model.py:make", tmp_path / "ci") == ()
    assert needed_pythonpath("top.model:make", tmp_path / "ci") == (str(tmp_path),)
    assert needed_pythonpath("inner:make", tmp_path / "ci") == (str(tmp_path / "src"),)


def test_file_is_named_from_the_configs_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A path relative to the current folder is written relative to the config."""
    (tmp_path / "ci").mkdir()
    (tmp_path / "net.py").touch()
    monkeypatch.chdir(tmp_path)
    assert beside("net.py:make", tmp_path) == "net.py:make"
    assert beside("net.py:make", tmp_path / "ci") == "../net.py:make"
    assert beside("missing.py:make", tmp_path / "ci") == "missing.py:make"
    assert beside("net:make", tmp_path / "ci") == "net:make"
