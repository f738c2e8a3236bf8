"""What a config becomes."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from config_samples import Project, config, documented_configs

from export_gate.config import Position, load_config
from export_gate.config.document import read_document
from export_gate.config.nodes import Allowance
from export_gate.config.problems import Problems
from export_gate.wall.codec import decode, encode
from export_gate.wall.contract import (
    Budget,
    ConstantSpec,
    Controls,
    DataSource,
    DictSpec,
    Dim,
    GoldenSource,
    ModelContract,
    Output,
    SequenceSpec,
    Size,
    TensorSpec,
    Tolerance,
    Waiver,
    make_target,
)

BATCH, SEQ, SIDE = Size(factors={"batch": 1}), Size(factors={"seq": 1}), Size(factors={"side": 1})
CLOSE = Tolerance(atol=1e-5, rtol=1e-5)


def test_the_full_example_reaches_the_contract(project: Project):
    """Every key of the documented full config ends up in the model's contract."""
    loaded = project.load(documented_configs()[1])
    floats = {"kind": "tensor", "dtype": "float32"}
    assert loaded.models == (
        ModelContract(
            name="glyph-head",
            factory="glyphlab.model:make_model",
            kwargs={"classes": 3},
            dims=(
                Dim(name="batch", min=2, max=16, separate=(1,)),
                Dim(name="side", min=8, max=64, multiple_of=8, example=24),
                Dim(name="seq", min=1, max=128),
            ),
            inputs={
                "x": TensorSpec(**floats, shape=(BATCH, Size(offset=1), SIDE, SIDE), range=(0.0, 1.0)),
                "ids": TensorSpec(dtype="int64", shape=(BATCH, Size(factors={"seq": 2}, offset=1)), range=(0, 30521)),
                "mask": TensorSpec(dtype="bool", shape=(BATCH, SEQ), draws=("random", "right-padded")),
                "scale": ConstantSpec(value=0.1),
                "pyramid": SequenceSpec(
                    kind="list",
                    items=(
                        TensorSpec(**floats, shape=(BATCH, Size(offset=8))),
                        TensorSpec(**floats, shape=(BATCH, Size(offset=4))),
                    ),
                ),
                "state": DictSpec(
                    items={
                        "hidden": TensorSpec(
                            **floats, shape=(BATCH, Size(offset=8)), range=(-1.0, 1.0), nonfinite=("nan",)
                        )
                    }
                ),
            },
            outputs=(Output(name="logits", dtype="float32", shape=(BATCH, Size(offset=3)), nonfinite="forbid"),),
            controls=Controls(
                seed=20261020,
                random=4,
                sizes={"batch": (2, 8, 16)},
                data=(
                    DataSource(
                        path="data/test_split.npz", inputs={"x": "images"}, count=12, stratify="label", group="scene"
                    ),
                ),
                golden=(GoldenSource(path="data/golden.npz", outputs={"logits": "expected"}, tolerance=CLOSE),),
                function="glyphlab.controls:cases",
            ),
            tolerance=CLOSE,
            targets=(
                make_target("exported-program", tolerance=Tolerance(atol=1e-6, rtol=1e-6)),
                make_target("pt2"),
                make_target("onnx", opset=20, artifact="dist/model.onnx"),
                make_target("aoti", budget=Budget(max_bytes=200_000_000, growth=0.1, exceeded="warning")),
            ),
            timeout_s=600.0,
            waivers=(
                Waiver(
                    rule="value-mismatch",
                    target="onnx",
                    case="halves-*",
                    reason="ties round apart, fix is under way",
                    until="2027-01-31",
                ),
            ),
        ),
    )
    assert (loaded.python, loaded.pythonpath) == (".venv/bin/python", (str(project.folder / "src"),))
    assert loaded.sha256 == hashlib.sha256(Path("export-gate.yml").read_bytes()).hexdigest()
    assert loaded.path == Path("export-gate.yml")


def test_the_small_example_takes_every_default(project: Project):
    """Only a factory, an input and the dims that it names are needed."""
    (model,) = project.load(documented_configs()[0]).models
    assert model.targets == (make_target("exported-program"), make_target("pt2"), make_target("onnx"))
    assert (model.controls, model.tolerance, model.outputs, model.timeout_s) == (Controls(), Tolerance(), (), 600.0)


def test_the_contract_survives_the_wall(project: Project):
    """What the driver read is what the worker gets."""
    (model,) = project.load(documented_configs()[1]).models
    assert decode(ModelContract, encode(model)) == model


def test_defaults_go_under_each_model(project: Project):
    """The model's own value wins; tolerance, controls and target options merge; listed targets are the only ones."""
    loaded = project.load("""\
version: 1
defaults:
  timeout: 90s
  kwargs: {a: 1}
  tolerance: {atol: 1e-3, rtol: 1e-3}
  controls: {random: 7, sizes: {n: [2]}}
  targets: {pt2: {decompose: true}, onnx: {opset: 20, tolerance: {atol: 1e-2}}}
models:
  own:
    factory: p:m
    dims: {n: {max: 4}}
    inputs: {x: {dtype: float32, shape: [n]}}
    kwargs: {b: 2}
    tolerance: {rtol: 1e-4}
    controls: {seed: 3}
    targets: {onnx: {guards: ignore, tolerance: {rtol: 0}}, aoti: }
  none:
    factory: p:m
    dims: {n: {max: 4}}
    inputs: {x: {dtype: float32, shape: [n]}}
    timeout: 1h30m
  empty:
    factory: p:m
    dims: {n: {max: 4}}
    inputs: {x: {dtype: float32, shape: [n]}}
    targets: {pt2: }
""")
    own, none, empty = loaded.models
    assert own.tolerance == Tolerance(atol=1e-3, rtol=1e-4)
    assert own.controls == Controls(seed=3, random=7, sizes={"n": (2,)})
    assert own.kwargs == {"b": 2}
    onnx = make_target("onnx", opset=20, guards="ignore", tolerance=Tolerance(atol=1e-2, rtol=0))
    assert own.targets == (onnx, make_target("aoti"))
    assert none.targets == (
        make_target("pt2", decompose=True),
        make_target("onnx", opset=20, tolerance=Tolerance(atol=1e-2)),
    )
    assert empty.targets == (make_target("pt2", decompose=True),)
    assert [model.timeout_s for model in loaded.models] == [90.0, 5400.0, 90.0]
    assert none.kwargs == {"a": 1}


@pytest.mark.parametrize(
    ("own", "defaults", "listed"),
    [
        ("targets: {pt2: {}}", "targets: {onnx: {}}", "model"),
        ("targets: {pt2: {}}", "timeout: 1m", "model"),
        ("timeout: 1m", "targets: {onnx: {}}", "defaults"),
        ("timeout: 1m", "timeout: 2m", "nowhere"),
    ],
)
def test_it_is_known_where_targets_are_listed(project: Project, own: str, defaults: str, listed: str):
    """Advice must not make a model list one of several targets, because it would then lose the others."""
    text = (
        f"version: 1\ndefaults: {{{defaults}}}\nmodels:\n"
        f"  m: {{factory: 'models:make', inputs: {{x: {{dtype: float32, shape: [2]}}}}, {own}}}\n"
    )
    assert project.load(text).models[0].targets_listed == listed


def test_positions_hold_every_key(project: Project):
    """An annotation can point at any key of a model, also at one that came from `defaults`."""
    loaded = project.load("""\
version: 1
defaults:
  timeout: 90s
models:
  a.b:
    factory: p:m
    dims: {n: {max: 4, separate: [1]}}
    inputs:
      x: {dtype: float32, shape: [n, 3]}
""")
    places = {key: (place.line, place.column) for key, place in loaded.positions.items()}
    assert places == {
        "version": (1, 1),
        "defaults": (2, 1),
        "defaults.timeout": (3, 3),
        "models": (4, 1),
        "models.a.b": (5, 3),
        "models.a.b.timeout": (3, 3),
        "models.a.b.factory": (6, 5),
        "models.a.b.dims": (7, 5),
        "models.a.b.dims.n": (7, 12),
        "models.a.b.dims.n.max": (7, 16),
        "models.a.b.dims.n.separate": (7, 24),
        "models.a.b.dims.n.separate[0]": (7, 35),
        "models.a.b.inputs": (8, 5),
        "models.a.b.inputs.x": (9, 7),
        "models.a.b.inputs.x.dtype": (9, 11),
        "models.a.b.inputs.x.shape": (9, 27),
        "models.a.b.inputs.x.shape[0]": (9, 35),
        "models.a.b.inputs.x.shape[1]": (9, 38),
    }
    assert loaded.positions["version"] == Position(line=1, column=1)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", 1e-5), ("-1.5E+3", -1500.0), (".5", 0.5), ("0o17", 15), ("017", 17), ("0x1f", 31), ("+3", 3),
        ("10:30", "10:30"), ("1_000", "1_000"), ("on", "on"), ("off", "off"), ("yes", "yes"), ("no", "no"), ("y", "y"),
        ("true", True), ("false", False), ("~", None), ("null", None), ("2026-10-20", "2026-10-20"), ("'1'", "1"),
        ('"true"', "true"), ("0o8", "0o8"), ("e5", "e5"), ("=", "="), ("|\n          a\n", "a\n"),
    ],
)  # fmt: skip
def test_scalars_are_read_by_yaml_1_2(text: str, value: object, project: Project):
    """Numbers, switches and texts follow YAML 1.2, not YAML 1.1."""
    (model,) = project.load(config(more=f"    kwargs:\n      a: {text}")).models
    assert model.kwargs == {"a": value}
    assert type(model.kwargs["a"]) is type(value)


def test_anchors_and_merge_keys_work(project: Project):
    """A block can be written once and used again; a key next to `<<` overrides what is merged."""
    loaded = project.load("""\
version: 1
models:
  a: &base
    factory: p:m
    dims: &dims {n: {max: 4}}
    inputs: {x: &x {dtype: float32, shape: [n]}, y: *x}
    timeout: 90s
  b:
    <<: *base
    timeout: 30s
  c:
    <<: [{dims: *dims}, {dims: {k: {max: 2}}, timeout: 5}]
    factory: p:n
    inputs: {z: {<<: *x, range: [0, 1]}}
""")
    a, b, c = loaded.models
    assert a.inputs["x"] == a.inputs["y"] == b.inputs["x"]
    assert (b.factory, b.dims, b.timeout_s) == ("p:m", a.dims, 30.0)
    assert (c.dims, c.timeout_s) == (a.dims, 5.0)
    assert c.inputs["z"] == TensorSpec(dtype="float32", shape=(Size(factors={"n": 1}),), range=(0.0, 1.0))


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("n", Size(factors={"n": 1})), ("3", Size(offset=3)), ("0", Size(offset=0)), ("'4'", Size(offset=4)),
        ("2*n+1", Size(factors={"n": 2}, offset=1)), ("n*2", Size(factors={"n": 2})),
        ("n - 1", Size(factors={"n": 1}, offset=-1)), ("1+n", Size(factors={"n": 1}, offset=1)),
        (" -1 + 3 * n ", Size(factors={"n": 3}, offset=-1)),
        ("n+n", Size(factors={"n": 2})), ("2*3*n-2*2", Size(factors={"n": 6}, offset=-4)),
    ],
)  # fmt: skip
def test_shape_entries_are_linear_in_one_dim(text: str, size: Size, project: Project):
    """A shape entry is a whole number, a dim, or a linear expression in one dim."""
    (model,) = project.load(config(x=f"{{dtype: float32, shape: [n, {text}]}}")).models
    assert model.inputs["x"].shape[1] == size


def test_numbers_keep_their_kind(project: Project):
    """Bounds of integer inputs stay exact integers, those of float inputs are floats."""
    x = "{dtype: int64, shape: [n], range: [-9223372036854775808, 9223372036854775807], values: [9223372036854775807]}"
    (exact,) = project.load(config(x=x)).models
    assert exact.inputs["x"].range == (-(2**63), 2**63 - 1)
    assert exact.inputs["x"].values == (2**63 - 1,)
    (floats,) = project.load(config(x="{dtype: float16, shape: [n], range: [0, 65504], values: [1]}")).models
    assert [type(bound) for bound in (*floats.inputs["x"].range, *floats.inputs["x"].values)] == [float] * 3


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ("    timeout: 5", 5.0),
        ("    timeout: 0.5", 0.5),
        ("    timeout: 1h30m5s", 5405.0),
        ("    timeout: 168h", 604800.0),
    ],
)
def test_times_have_units_or_are_seconds(more: str, expected: float, project: Project):
    """`1h30m5s` and a plain number of seconds both work."""
    assert project.load(config(more=more)).models[0].timeout_s == expected


@pytest.mark.parametrize(
    ("budget", "expected"), [("200 GFLOP", 2e11), ("1.5TFLOP", 1.5e12), ("3 MFLOP", 3e6), ("200", 200.0), ("1e9", 1e9)]
)
def test_work_has_units_or_is_operations(budget: str, expected: float, project: Project):
    """`200 GFLOP` and a plain number of operations both work."""
    assert project.load(config(more=f"    controls: {{budget: {budget}}}")).models[0].controls.budget_flops == expected


def test_min_is_the_smallest_multiple_by_default(project: Project):
    """A dim needs only its maximum."""
    dims = "{n: {max: 8}, k: {max: 64, multiple-of: 16}}"
    (model,) = project.load(config(dims=dims, x="{dtype: float32, shape: [n, k]}")).models
    assert [(dim.min, dim.max) for dim in model.dims] == [(1, 8), (16, 64)]


def test_a_folder_of_images_and_nested_inputs_are_data(project: Project):
    """Data may be a folder of images, and may feed a tensor inside a list."""
    x = "{list: [{dtype: float32, shape: [n]}, {dict: {hidden: {dtype: float32, shape: [2]}}}]}"
    data = "[{path: images}, {path: a.npz, inputs: {x.0: a, x.1.hidden: b}}]"
    (model,) = project.load(config(x=x, more=f"    controls: {{data: {data}}}")).models
    images, nested = model.controls.data
    assert images == DataSource(path="images")
    assert nested == DataSource(path="a.npz", inputs={"x.0": "a", "x.1.hidden": "b"})


def test_pythonpath_is_the_folder_and_its_src_by_default(project: Project):
    """A plain and a src layout both import without a declared `pythonpath`."""
    assert project.load(config()).pythonpath == (str(project.folder), str(project.folder / "src"))
    assert project.load(config(more="pythonpath: []")).pythonpath == ()
    (project.folder / "src").rmdir()
    assert project.load(config()).pythonpath == (str(project.folder),)


def test_paths_may_climb_within_the_repository(project: Project):
    """A config in a subfolder reaches the repository's other folders, and links are followed."""
    text = config(more="    controls: {data: [{path: ../a.npz}, {path: link.npz}]}\npythonpath: [../src]")
    (project.folder / "data" / "link.npz").symlink_to(project.folder / "a.npz")
    (project.folder / "data" / "gate.yml").write_text(text, encoding="utf-8")
    loaded = load_config(Path("data/gate.yml"))
    assert [source.path for source in loaded.models[0].controls.data] == ["../a.npz", "link.npz"]
    assert loaded.pythonpath == (str(project.folder / "src"),)


def test_without_a_repository_the_folder_is_the_wall(project: Project):
    """Outside a repository, paths stay below the config's own folder."""
    (project.folder / ".git").rmdir()
    (project.folder / "data" / "gate.yml").write_text(config(more="pythonpath: [..]"), encoding="utf-8")
    with pytest.raises(Exception, match=r"expected a path inside the repository, got '\.\.'"):
        load_config(Path("data/gate.yml"))


def test_both_yaml_parsers_read_the_same(project: Project):
    """A machine whose PyYAML lacks libyaml reads the same config."""
    text = documented_configs()[1]
    slow, fast = (
        read_document(text, Problems(), Allowance(), loader)
        for loader in (yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    )
    assert slow == fast


def test_reading_a_config_imports_nothing_heavy(project: Project):
    """`export-gate validate` answers at once: it imports nothing numeric and no other command's library."""
    project.load(config())
    heavy = ("numpy", "torch", "jinja2", "rich", "click", "urllib3", "jsonschema")
    code = (
        "import sys; from pathlib import Path; from export_gate.config import load_config;"
        f"load_config(Path('export-gate.yml')); print([name for name in {heavy} if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"
