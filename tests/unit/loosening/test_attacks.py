"""Each way to make the check accept more is reported; the way back is not reported as loosening."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from export_gate.config.load import parse_config
from export_gate.loosening.compare import arrow
from export_gate.loosening.configs import compare_configs
from export_gate.loosening.crowding import with_crowding
from export_gate.loosening.record import ConfigChange, Effect
from export_gate.wall.observation import ControlSetObservation, ModelObservation

BASE = """
version: 1
python: .venv/bin/python
relaxed: fail
fail-on: warning
models:
  encoder:
    factory: "net:make"
    cache: false
    paths: [data]
    dims:
      batch: {min: 2, max: 16, separate: [1]}
      side: {min: 16, max: 64, multiple-of: 8}
      seq: {min: 2, max: 9}
    inputs:
      x: {dtype: float32, shape: [batch, side], range: [0, 1], nonfinite: [nan], draws: [normal, zeros]}
      ids: {dtype: int64, shape: [batch, seq], range: [0, "seq-1"], values: [0, 1]}
      pair: {list: [{dtype: float32, shape: [batch, 2]}, {dtype: float32, shape: [side, 3]}]}
      keep: {dtype: bool, shape: [batch, seq], mask: any}
      pad: {dtype: bool, shape: [batch, seq], mask: drop}
    outputs:
      logits: {dtype: float32, shape: [batch, 3], nonfinite: forbid}
      loss: {dtype: float32}
    controls:
      random: 4
      sizes: {batch: [2, 8, 16]}
      affine-basis: always
      function: "controls:cases"
      budget: 200 GFLOP
      limit: 100
      data: [{path: data/test.npz, count: 12}]
      golden: [{path: data/golden.npz, tolerance: {atol: 1e-4}}]
    tolerance: {rtol: 1e-5}
    targets:
      exported-program: {}
      pt2: {budget: {size: 10 MB, growth: 10%}}
      onnx: {tolerance: {atol: 1e-5, axis: 1}, guards: require}
      aoti: {layouts: require}
      ship: {kind: pt2}
    waivers:
      - {rule: value-mismatch, target: onnx, reason: ties, until: 2027-01-31}
  other: {factory: "net:other", inputs: {x: {dtype: float32, shape: [2]}}}
"""
LOOSER = {
    "a model is taken out": (
        BASE[BASE.index("  other:") :],
        "",
        "`other`: removed, so that it is not checked any more",
    ),
    "a model is renamed": (
        "  other:",
        "  another:",
        "`other`: renamed to `another`, so that its lock, waivers and history no longer apply",
    ),
    "a tolerance that nothing exceeds": (
        "tolerance: {atol: 1e-5, axis: 1}",
        "tolerance: {atol: 1e9, axis: 1}",
        "`encoder`: onnx tolerance atol 1e+14x (1e-5 -> 1e9)",
    ),
    "a tolerance of the model": (
        "    tolerance: {rtol: 1e-5}",
        "    tolerance: {rtol: 1e-3}",
        "`encoder`: onnx tolerance rtol 100x (1e-5 -> 1e-3)",
    ),
    "a tolerance axis": ("atol: 1e-5, axis: 1}", "atol: 1e-5}", "`encoder`: onnx tolerance axis 1 -> none"),
    "an output's dtype, and with it the default tolerance": (
        "logits: {dtype: float32,",
        "logits: {dtype: float16,",
        "`encoder`: exported-program tolerance for float16 atol 100x (1e-6 -> 1e-4)",
    ),
    "a golden tolerance": (
        "{atol: 1e-4}",
        "{atol: 1}",
        "`encoder`: golden tolerance of data/golden.npz atol 1e+04x (1e-4 -> 1)",
    ),
    "the cases": ("limit: 100", "limit: 1", "`encoder`: controls.limit 100 -> 1"),
    "the work": ("200 GFLOP", "1 GFLOP", "`encoder`: controls.budget 2e+11 -> 1e+09"),
    "the draws per family": ("random: 4", "random: 0", "`encoder`: controls.random 4 -> 0"),
    "the sizes": ("[2, 8, 16]", "[2]", "`encoder`: controls.sizes.batch without 8, 16"),
    "the affine basis": ("always", "never", "`encoder`: controls.affine-basis always -> never"),
    "the project's own inputs": (
        '      function: "controls:cases"\n',
        "",
        "`encoder`: controls.function controls:cases -> none",
    ),
    "a data file": (
        "      data: [{path: data/test.npz, count: 12}]\n",
        "",
        "`encoder`: controls.data.data/test.npz removed",
    ),
    "the count of a data file": ("count: 12", "count: 1", "`encoder`: controls.data.data/test.npz.count 12 -> 1"),
    "a golden file": (
        "      golden: [{path: data/golden.npz, tolerance: {atol: 1e-4}}]\n",
        "",
        "`encoder`: controls.golden.data/golden.npz removed",
    ),
    "a target's kind": ("kind: pt2", "kind: onnx", "`encoder`: targets.ship.kind pt2 -> onnx"),
    "a target of another name": ("      ship: {kind: pt2}\n", "", "`encoder`: targets.ship removed"),
    "verdicts that are reused": ("cache: false", "cache: true", "`encoder`: cache false -> true"),
    "a dependency": ("paths: [data]", "paths: []", "`encoder`: paths without data"),
    "guards": ("guards: require", "guards: ignore", "`encoder`: targets.onnx.guards require -> ignore"),
    "inputs that the project draws": (
        "draws: [normal, zeros]}",
        'draws: [normal, zeros], make: "controls:ones"}',
        "`encoder`: inputs.x.make none -> controls:ones",
    ),
    "no draws of the gate's own": (
        "random: 4",
        "random: 4\n      generated: false",
        "`encoder`: controls.generated true -> false",
    ),
    "a mask that excuses what it switches off": ("mask: any", "mask: keep", "`encoder`: inputs.keep.mask any -> keep"),
    "what a mask leaves of an output": (
        "nonfinite: forbid}",
        "nonfinite: forbid, where: pad}",
        "`encoder`: outputs.logits.where none -> pad",
    ),
    "an output that is not compared": (
        "logits: {dtype: float32, shape: [batch, 3], nonfinite: forbid}",
        "logits: ignore",
        "`encoder`: outputs.logits.leaf compare -> ignore",
    ),
    "layouts": ("{layouts: require}", "{}", "`encoder`: targets.aoti.layouts require -> note"),
    "a target": ("      exported-program: {}\n", "", "`encoder`: targets.exported-program removed"),
    "a size budget": ("size: 10 MB", "size: 20 MB", "`encoder`: targets.pt2.budget.size 10000000 -> 20000000"),
    "growth": (", growth: 10%", "", "`encoder`: targets.pt2.budget.growth 0.1 -> none"),
    "a budget that only warns": (
        "growth: 10%",
        "growth: 10%, exceeded: warning",
        "`encoder`: targets.pt2.budget.exceeded violation -> warning",
    ),
    "non-finite outputs": (
        "nonfinite: forbid",
        "nonfinite: allow",
        "`encoder`: outputs.logits.nonfinite forbid -> allow",
    ),
    "an output": ("      loss: {dtype: float32}\n", "", "`encoder`: outputs.loss removed"),
    "an output that is renamed": ("loss:", "cost:", "`encoder`: outputs.loss removed"),
    "an output's promised dtype": (
        "loss: {dtype: float32}",
        "loss: {}",
        "`encoder`: outputs.loss.dtype float32 -> none",
    ),
    "the upper end of a dim": ("max: 9", "max: 3", "`encoder`: dims.seq.max 9 -> 3"),
    "the lower end of a dim": ("side: {min: 16,", "side: {min: 32,", "`encoder`: dims.side.min 16 -> 32"),
    "coarser steps": ("multiple-of: 8", "multiple-of: 16", "`encoder`: dims.side.multiple-of 8 -> 16"),
    "a separate size": (", separate: [1]", "", "`encoder`: dims.batch.separate without 1"),
    "a dim that may specialize": ("max: 9", "max: 9, mode: auto", "`encoder`: dims.seq.mode strict -> auto"),
    "an axis that is a number": (
        "shape: [batch, side]",
        "shape: [batch, 8]",
        "`encoder`: inputs.x.shape [batch, side] -> [batch, 8]",
    ),
    "a range of values": ("range: [0, 1], non", "range: [0, 0], non", "`encoder`: inputs.x.range [0, 1] -> [0, 0]"),
    "a range that is undeclared": ("range: [0, 1], non", "non", "`encoder`: inputs.x.range [0, 1] -> undeclared"),
    "a range by a dim": ('[0, "seq-1"]', "[0, 1]", "`encoder`: inputs.ids.range [0, seq-1] -> [0, 1]"),
    "values": ("values: [0, 1]", "values: [0]", "`encoder`: inputs.ids.values without 1"),
    "non-finite inputs": ("nonfinite: [nan], ", "", "`encoder`: inputs.x.nonfinite without nan"),
    "draws": ("[normal, zeros]", "[zeros]", "`encoder`: inputs.x.draws without normal"),
    "values in order": (
        "values: [0, 1]}",
        "values: [0, 1], order: increasing}",
        "`encoder`: inputs.ids.order any -> increasing",
    ),
    "an input's dtype": (
        "x: {dtype: float32, shape: [batch, side]",
        "x: {dtype: float16, shape: [batch, side]",
        "`encoder`: inputs.x.dtype float32 -> float16",
    ),
    "an input that is baked": (
        "pair: {list: [{dtype: float32, shape: [batch, 2]}, ",
        "pair: {list: [{constant: 1}, ",
        "`encoder`: inputs.pair.items[0] tensor -> constant",
    ),
    "train mode": ("    dims:", "    train-mode: force-eval\n    dims:", "`encoder`: train-mode refuse -> force-eval"),
    "a waiver that lasts longer": (
        "until: 2027-01-31",
        "until: 9999-12-31",
        "`encoder`: waivers value-mismatch (onnx) until 2027-01-31 -> 9999-12-31",
    ),
    "a wider waiver": (
        "{rule: value-mismatch, target: onnx,",
        "{rule: value-mismatch,",
        "`encoder`: waivers value-mismatch added, until 2027-01-31",
    ),
    "a further waiver": (
        "    waivers:\n",
        "    waivers:\n      - {rule: guard-missing, reason: r, until: 2027-01-31}\n",
        "`encoder`: waivers guard-missing added, until 2027-01-31",
    ),
    "the interpreter": ("python: .venv/bin/python", "python: other/python", "python .venv/bin/python -> other/python"),
    "warnings pass": ("fail-on: warning", "fail-on: violation", "fail-on warning -> violation"),
    "warnings pass by default": ("fail-on: warning\n", "", "fail-on warning -> violation"),
    "the policy itself": ("relaxed: fail", "relaxed: warn", "relaxed fail -> warn"),
    "how long waivers may last": (
        "relaxed: fail",
        "relaxed: fail\nwaivers-max-days: 3000",
        "waivers-max-days 90 -> 3000",
    ),
    "files that a push may change unverified": (
        "relaxed: fail",
        "relaxed: fail\nignore: ['**']",
        "ignore none -> [**]",
    ),
    "a default of all models": (
        "models:\n",
        "defaults: {targets: {onnx: {guards: ignore}}}\nmodels:\n",
        "`other`: targets.pt2 removed",
    ),
}
"""What is replaced by what, and the sentence that says so."""


def change(before: str, after: str) -> ConfigChange:
    """What the second config does to the check of the first."""
    path = Path("export-gate.yml")
    first, second = (parse_config(text.encode(), path, is_past=True) for text in (before, after))
    return compare_configs("the base", first, second)


def texts(found: ConfigChange, effect: Effect) -> list[str]:
    """The sentences with that effect."""
    return [alteration.text for alteration in found.of(effect)]


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOSER)
def test_a_loosened_check_is_said(name: str):
    """What a stranger might try is reported, whatever else the change does."""
    old, new, sentence = LOOSER[name]
    assert BASE.count(old) >= 1

    found = change(BASE, BASE.replace(old, new, 1))

    assert sentence in texts(found, "loosened")
    assert found.policy == "fail"


@pytest.mark.slow
@pytest.mark.parametrize("name", LOOSER)
def test_the_way_back_is_never_silent(name: str):
    """The reverse of an attack is reported too, perhaps as tightening."""
    old, new, _ = LOOSER[name]

    assert change(BASE.replace(old, new, 1), BASE).alterations


def test_tightening_is_not_called_loosening():
    """What tightens the check is reported separately."""
    tighter = BASE.replace("limit: 100", "limit: 120").replace("max: 16", "max: 32").replace("1e-5, axis", "1e-6, axis")

    found = change(BASE, tighter)

    assert texts(found, "loosened") == []
    assert texts(found, "tightened") == [
        "`encoder`: onnx tolerance atol lowered 10x (1e-5 -> 1e-6)",
        "`encoder`: dims.batch.max 16 -> 32",
        "`encoder`: controls.limit 100 -> 120",
    ]


SMALL = """
version: 1
models:
  m:
    factory: "net:make"
    kwargs: {scale: 1}
    dims: {batch: {min: 2, max: 8}, fixed: {min: 2, max: 9, mode: static, example: 8}}
    inputs:
      x: {dtype: float32, shape: [batch, 16], range: [0, 1]}
      y: {dtype: float32, shape: [fixed], values: [0, 255]}
      keep: {dtype: int64, shape: [batch, 3], range: [0, 1]}
      parts: {dict: {one: {dtype: float32, shape: [2]}, two: {dtype: float32, shape: [2]}}}
    outputs:
      logits: {}
      aux: ignore
      label: {dtype: int64}
    controls: {sizes: {batch: [2, 5, 8]}, data: [{path: real.npz}]}
    targets:
      onnx: {providers: [CUDAExecutionProvider, CPUExecutionProvider]}
      ship: {kind: onnx, artifact: dist/model.onnx}
    waivers: [{rule: value-mismatch, reason: r, until: 2026-12-01}]
"""
TOGETHER = {
    "sizes are drawn in the order of the dims": (
        "batch: {min: 2, max: 8}, fixed: {min: 2, max: 9, mode: static, example: 8}",
        "fixed: {min: 2, max: 9, mode: static, example: 8}, batch: {min: 2, max: 8}",
        "`m`: dims order [batch, fixed] -> [fixed, batch]",
    ),
    "outputs are named by position, so an ignored one can be another": (
        "      logits: {}\n      aux: ignore\n",
        "      aux: ignore\n      logits: {}\n",
        "`m`: outputs order [logits, aux, label] -> [aux, logits, label]",
    ),
    "inputs are forward's by position": (
        (
            "      x: {dtype: float32, shape: [batch, 16], range: [0, 1]}\n"
            "      y: {dtype: float32, shape: [fixed], values: [0, 255]}\n"
        ),
        (
            "      y: {dtype: float32, shape: [fixed], values: [0, 255]}\n"
            "      x: {dtype: float32, shape: [batch, 16], range: [0, 1]}\n"
        ),
        "`m`: inputs order [x, y, keep, parts] -> [y, x, keep, parts]",
    ),
    "the parts of an input": (
        "one: {dtype: float32, shape: [2]}, two: {dtype: float32, shape: [2]}",
        "two: {dtype: float32, shape: [2]}, one: {dtype: float32, shape: [2]}",
        "`m`: inputs.parts.items order [one, two] -> [two, one]",
    ),
    "the first execution provider is the one that is verified": (
        "[CUDAExecutionProvider, CPUExecutionProvider]",
        "[CPUExecutionProvider, CUDAExecutionProvider]",
        (
            "`m`: targets.onnx.providers [CUDAExecutionProvider, CPUExecutionProvider] -> "
            "[CPUExecutionProvider, CUDAExecutionProvider]"
        ),
    ),
    "an execution provider before the others": (
        "[CUDAExecutionProvider, CPUExecutionProvider]",
        "[OwnExecutionProvider, CUDAExecutionProvider, CPUExecutionProvider]",
        (
            "`m`: targets.onnx.providers [CUDAExecutionProvider, CPUExecutionProvider] -> "
            "[OwnExecutionProvider, CUDAExecutionProvider, CPUExecutionProvider]"
        ),
    ),
    "the file that is shipped": (
        ", artifact: dist/model.onnx",
        "",
        "`m`: targets.ship.artifact dist/model.onnx -> none",
    ),
    "a second waiver of the same findings that lasts longer": (
        "waivers: [",
        "waivers: [{rule: value-mismatch, reason: r, until: 2027-01-31}, ",
        "`m`: waivers value-mismatch until 2026-12-01 -> 2027-01-31",
    ),
    "inputs that the project draws together": (
        "controls: {sizes",
        'controls: {make: "controls:ones", sizes',
        "`m`: controls.make none -> controls:ones",
    ),
    "a length that varies with another axis": (
        "x: {dtype: float32, shape: [batch, 16]",
        "x: {dtype: float32, shape: [batch, 2*batch]",
        "`m`: inputs.x.shape axis 1 16 -> 2*batch, which varies with axis 0 of inputs.x",
    ),
    "sizes of which the old ones are a corner": (
        "batch: {min: 2, max: 8}",
        "batch: {min: 2, max: 5000}",
        "`m`: dims.batch.max 8 -> 5000, so that sizes of the old range are rarely tried",
    ),
    "integers of which the old ones are a corner": (
        "keep: {dtype: int64, shape: [batch, 3], range: [0, 1]}",
        "keep: {dtype: int64, shape: [batch, 3], range: [0, 1000]}",
        "`m`: inputs.keep.range [0, 1] -> [0, 1000], so that values of the old range are rarely drawn",
    ),
    "another choice of the inputs of a file": (
        "[{path: real.npz}]",
        "[{path: real.npz, stratify: easy}]",
        "`m`: controls.data.real.npz.stratify none -> easy",
    ),
    "default sizes in place of a list": (
        "controls: {sizes: {batch: [2, 5, 8]}, ",
        "controls: {",
        "`m`: controls.sizes.batch without 5",
    ),
    "a size that only an export of its own has to be right at": (
        "batch: {min: 2, max: 8}",
        "batch: {min: 2, max: 8, separate: [2, 8]}",
        "`m`: dims.batch.separate 2, 8 are no longer verified in the main export",
    ),
    "the one size of a static dim": (
        "mode: static, example: 8",
        "mode: static, example: 2",
        "`m`: dims.fixed.example 8 -> 2, so that another size may be the one verified",
    ),
    "an axis that no longer has its length": (
        "shape: [batch, 16]",
        "shape: [batch, batch]",
        "`m`: inputs.x.shape [batch, 16] -> [batch, batch], which 16 is no size of",
    ),
    "a mask that is not found out but declared": (
        "range: [0, 1]}\n      parts",
        "range: [0, 1], mask: keep}\n      parts",
        "`m`: inputs.keep.mask none -> keep",
    ),
    "values of an input without a range": (
        ", values: [0, 255]",
        "",
        "`m`: inputs.y.values [0, 255] -> all, without a range",
    ),
    "an output that was compared exactly": (
        "label: {dtype: int64}",
        "label: {dtype: float32}",
        "`m`: outputs.label.dtype int64 -> float32",
    ),
}
"""As `LOOSER`, where one key alone does not show it."""


@pytest.mark.parametrize("name", TOGETHER)
def test_what_several_keys_loosen_together_is_said(name: str):
    """Order, positions and keys that depend on other keys count like single keys."""
    old, new, sentence = TOGETHER[name]
    assert SMALL.count(old) == 1

    found = change(SMALL, SMALL.replace(old, new))

    assert sentence in texts(found, "loosened")
    assert change(SMALL.replace(old, new), SMALL).alterations


@pytest.mark.parametrize("value", ["true", "1.0"])
def test_a_value_of_another_type_is_another_value(value: str):
    """1, 1.0 and true are equal in Python, but not for a model."""
    found = change(SMALL, SMALL.replace("{scale: 1}", f"{{scale: {value}}}"))

    (said,) = texts(found, "loosened")
    assert value in said


def test_a_tolerance_beside_a_new_dtype_is_said():
    """If all outputs were compared exactly, any tolerance accepts more."""
    base = SMALL.replace("      logits: {}\n      aux: ignore\n", "").replace("targets:", "targets:\n      pt2: {}")
    other = base.replace("label: {dtype: int64}", "label: {dtype: float32}")
    other = other.replace("    targets:", "    tolerance: {atol: 1e9, rtol: 0}\n    targets:")

    assert "`m`: pt2 tolerance atol (0 -> 1e9)" in texts(change(base, other), "loosened")


def test_what_applies_to_all_models_is_not_buried():
    """A report shows only the first of many, and a change can loosen a hundred models a little."""
    found = change(BASE, BASE.replace("relaxed: fail", "relaxed: warn").replace("random: 4", "random: 3"))

    assert texts(found, "loosened")[0] == "relaxed fail -> warn"


def test_further_sizes_and_providers_are_no_loosening():
    """An addition at the end changes nothing about what was there."""
    other = SMALL.replace("max: 8}", "max: 8, separate: [1]}").replace(
        "CPUExecutionProvider]", "CPUExecutionProvider, OwnExecutionProvider]"
    )
    other = other.replace("shape: [batch, 16]", "shape: [batch, wide]").replace(
        "dims: {", "dims: {wide: {min: 8, max: 32}, "
    )

    found = change(SMALL, other)

    assert texts(found, "loosened") == []
    assert len(found.alterations) == 4


def test_the_same_check_in_other_words_is_no_change():
    """Effective contracts are compared, not text: defaults, comments and the order of keys do not matter."""
    base = BASE[: BASE.index("  other:")]
    other = base.replace("    tolerance: {rtol: 1e-5}\n", "")
    other = other.replace("models:\n", "# words\ndefaults: {tolerance: {rtol: 1e-5}}\nmodels:\n")
    other = other.replace("min: 16, max: 64", "max: 64, min: 16")

    assert other != base
    assert change(base, other).alterations == ()


def test_a_default_tolerance_that_is_written_out_is_no_change():
    """The tolerance that applies is compared with the default, for the dtypes that the outputs have."""
    base = BASE.replace('"net:other",', '"net:other", outputs: {y: {dtype: float32}}, targets: {onnx: {}},')
    written = base.replace("targets: {onnx: {}}", "targets: {onnx: {tolerance: {atol: 1e-5}}}")

    assert written != base
    assert change(base, written).alterations == ()


SWAPPED = """
version: 1
pythonpath: [., src]
models:
  m:
    factory: "net:make"
    kwargs: {layers: {conv: 3, pool: 2}}
    env: {CKPT: a.pt}
    dims:
      batch: {min: 2, max: 8}
      fixed: {min: 2, max: 9, mode: static}
      set: {min: 2, max: 9, mode: static, example: 4}
    inputs:
      x: {dtype: float32, shape: [batch, fixed], range: [0, 1], make: "draws:x"}
      y: {dtype: float32, shape: [set], range: [0, 1]}
      flag: {constant: true}
    controls:
      seed: 1
      function: "controls:cases"
      make: "draws:joint"
      data: [{path: real.npz, inputs: {x: images}}]
      golden: [{path: golden.npz, outputs: {logits: expected}}, {path: golden.npz}]
    targets:
      onnx: {artifact: dist/a.onnx}
      own: {kind: onnx, optimization: all}
"""
OTHERS = {
    "another model by the order of an argument's keys": (
        "layers: {conv: 3, pool: 2}",
        "layers: {pool: 2, conv: 3}",
        "kwargs {layers: {conv: 3, pool: 2}} -> {layers: {pool: 2, conv: 3}}, so that another model is verified",
    ),
    "an input that the artifact takes for another": (
        "y: {dtype: float32,",
        "y: {name: z, dtype: float32,",
        "inputs.y.name none -> z, so that another call is verified",
    ),
    "the tolerance of the first entry of a file": (
        "outputs: {logits: expected}}",
        "outputs: {logits: expected}, tolerance: {atol: 1e9}}",
        "golden tolerance of golden.npz for float32 atol 1e+14x (1e-5 -> 1e9)",
    ),
    "another model": ("net:make", "net:mock", "factory net:make -> net:mock, so that another model is verified"),
    "another model by an argument": (
        "kwargs: {layers",
        "kwargs: {tiny: true, layers",
        (
            "kwargs {layers: {conv: 3, pool: 2}} -> {tiny: true, layers: {conv: 3, pool: 2}}, so that another model is "
            "verified"
        ),
    ),
    "another model by a variable": ("a.pt", "b.pt", "env.CKPT a.pt -> b.pt"),
    "no variable": ("    env: {CKPT: a.pt}\n", "", "env.CKPT removed"),
    "another argument": (
        "constant: true",
        "constant: false",
        "inputs.flag.value true -> false, so that another call is verified",
    ),
    "another file": (
        "dist/a.onnx",
        "dist/b.onnx",
        "targets.onnx.artifact dist/a.onnx -> dist/b.onnx, so that another file is verified",
    ),
    "a file in place of the export": (
        "optimization: all}",
        "optimization: all, artifact: b.onnx}",
        "targets.own.artifact none -> b.onnx, so that another file is verified",
    ),
    "a runtime that leaves its faults out": (
        "optimization: all",
        "optimization: disable",
        "targets.own.optimization all -> disable",
    ),
    "other draws": ("seed: 1", "seed: 2", "controls.seed 1 -> 2"),
    "another function": ("controls:cases", "controls:none", "controls.function controls:cases -> controls:none"),
    "other draws of the project": ("draws:x", "draws:ones", "inputs.x.make draws:x -> draws:ones"),
    "other joint draws": ("draws:joint", "draws:ones", "controls.make draws:joint -> draws:ones"),
    "another array of the file": ("x: images", "x: blank", "controls.data.real.npz.inputs {x: images} -> {x: blank}"),
    "other expectations": (
        "expected",
        "zeros",
        "controls.golden.golden.npz.outputs {logits: expected} -> {logits: zeros}",
    ),
    "the range that chooses the one size": (
        "fixed: {min: 2, max: 9",
        "fixed: {min: 1, max: 9",
        "dims.fixed.min 2 -> 1, so that another size may be the one verified",
    ),
}
"""What passes after such a change is something else than what passed before it."""


@pytest.mark.parametrize("name", OTHERS)
def test_another_thing_that_is_verified_is_said(name: str):
    """A reviewer who sees green must see as well that it is said of another model, file, call or input."""
    old, new, sentence = OTHERS[name]
    assert SWAPPED.count(old) == 1

    assert f"`m`: {sentence}" in texts(change(SWAPPED, SWAPPED.replace(old, new)), "loosened")


BARE = """
version: 1
models:
  m:
    factory: "net:make"
    dims: {batch: {min: 2, max: 8}}
    inputs:
      x: {dtype: float32, shape: [batch, 4], range: [0, 1]}
      keep: {dtype: bool, shape: [batch, 4], mask: keep}
      other: {dtype: bool, shape: [batch, 4], mask: drop}
      cache: {build: "net:Cache", tuple: [{dtype: float32, shape: [batch]}]}
"""
GAINED = {
    "many other values": (
        BARE.replace("range: [0, 1]", "values: [0, 9]"),
        BARE.replace("range: [0, 1]", f"values: {[0, 9, *range(10, 40)]}"),
        (
            "inputs.x.values also 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 2..., "
            "so that the old ones are rarely drawn"
        ),
    ),
    "all values of a range": (
        BARE.replace("range: [0, 1]", "range: [0, 9], values: [0, 5]"),
        BARE.replace("range: [0, 1]", "range: [0, 9]"),
        "inputs.x.values [0, 5] -> all, so that the old ones are rarely drawn",
    ),
    "all values at each position": (
        BARE.replace("range: [0, 1]", "values: [[0, 1], [1, 2], [2, 3], [3, 4]]"),
        BARE.replace(", range: [0, 1]", ""),
        "inputs.x.values [[0, 1], [1, 2], [2, 3], [3, 4]] -> all, without a range",
    ),
    "sizes between many others": (
        BARE.replace("min: 2, max: 8", "max: 4096, multiple-of: 64"),
        BARE.replace("min: 2, max: 8", "max: 4096, multiple-of: 1, min: 64"),
        "dims.batch.multiple-of 64 -> 1, so that sizes of the old range are rarely tried",
    ),
    "an output is named to be ignored": (
        BARE,
        BARE + "    outputs: {y: {}, z: ignore}\n",
        "outputs.z.leaf compare -> ignore",
    ),
    "an output is named to have any infinity": (
        BARE,
        BARE + "    outputs: {y: {nonfinite: allow}}\n",
        "outputs.y.nonfinite match -> allow",
    ),
    "an output is named to be compared in part": (
        BARE,
        BARE + "    outputs: {y: {where: keep}}\n",
        "outputs.y.where none -> keep",
    ),
    "a part of another mask": (
        BARE + "    outputs: {y: {where: keep}}\n",
        BARE + "    outputs: {y: {where: other}}\n",
        "outputs.y.where keep -> other",
    ),
    "a mask the other way round": (BARE, BARE.replace("mask: keep", "mask: drop"), "inputs.keep.mask keep -> drop"),
    "an argument that switches something off": (
        BARE,
        BARE.replace("    inputs:\n", "    inputs:\n      skip: {constant: true}\n"),
        "inputs.skip added, so that another call is verified",
    ),
    "another object": (
        BARE,
        BARE.replace("net:Cache", "net:Empty"),
        "inputs.cache.build net:Cache -> net:Empty, so that another call is verified",
    ),
    "a range in which the old one is a corner": (
        BARE,
        BARE.replace("range: [0, 1]", "range: [-1e6, 1e6]"),
        "inputs.x.range [0, 1] -> [-1e+06, 1e+06], so that values of the old range are rarely drawn",
    ),
}
"""What looks like a further check and takes something away."""


@pytest.mark.parametrize("name", GAINED)
def test_what_is_added_may_loosen(name: str):
    """A key that the base does not have is compared with what applies without it."""
    before, after, sentence = GAINED[name]

    assert f"`m`: {sentence}" in texts(change(before, after), "loosened")


def test_what_is_added_may_tighten():
    """Outputs with promises, some real inputs, a separate size and a wider range check more."""
    after = BARE.replace("max: 8}", "max: 8, separate: [1]}").replace("range: [0, 1]", "range: [-1, 2]")
    after += "    outputs: {y: {dtype: float32, nonfinite: forbid}, loss: none}\n"
    after += "    controls: {random: 3, data: [{path: real.npz, count: 12}]}\n"

    assert texts(change(BARE, after), "loosened") == []


def test_another_example_is_said():
    """It is the size that torch.export sees, and the middle of those that are tried."""
    found = change(BASE, BASE.replace("max: 9}", "max: 9, example: 9}"))
    assert texts(found, "changed") == ["`encoder`: dims.seq.example none -> 9"]
    assert texts(found, "loosened") == []


CROWD = {
    "larger inputs, which take more of the budget": ("max: 9}", "max: 60}", "dims.seq.max 9 -> 60"),
    "rows that a mask switches off": ("mask: drop", "mask: any", "inputs.pad.mask drop -> any"),
    "draws of one family": ("random: 4", "random: 1000", "controls.random 4 -> 1000"),
    "separate sizes": ("separate: [1]", "separate: [1, 20, 21, 22]", "dims.batch.separate also 20, 21, 22"),
    "sizes": ("[2, 8, 16]", "[2, 8, 9, 16]", "controls.sizes.batch also 9"),
    "inputs of a file": ("count: 12", "count: 1200", "controls.data.data/test.npz.count 12 -> 1200"),
    "all inputs of a file": (", count: 12", "", "controls.data.data/test.npz.count 12 -> all"),
    "another file": ("count: 12}]", "count: 12}, {path: b.npz}]", "controls.data.b.npz added"),
    "another file first": (
        "[{path: data/test.npz, count: 12}]",
        "[{path: b.npz}, {path: data/test.npz, count: 12}]",
        "controls.data.b.npz added",
    ),
    "golden inputs": (
        "golden: [",
        "golden: [{path: c.npz}, ",
        "controls.golden.c.npz added",
    ),
}


@pytest.mark.parametrize("name", CROWD)
def test_inputs_for_which_others_are_left_out_are_said(name: str):
    """What looks like more inputs may take the places of others; the run knows whether it did."""
    old, new, what = CROWD[name]
    found = change(BASE, BASE.replace(old, new, 1))
    room, crowd = (
        ModelObservation(model="encoder", controls=ControlSetObservation(sha256="", inputs=(), left_out=n))
        for n in (0, 7)
    )
    crowd = replace(crowd, controls=replace(crowd.controls, left_out_reason="beyond controls.limit"))

    assert texts(with_crowding(found, [room]), "loosened") == []
    said = with_crowding(found, [crowd])
    assert texts(said, "loosened") == [f"`encoder`: {what}, which leaves out other inputs: 7 beyond controls.limit"]
    assert with_crowding(said, [crowd]) == said


def test_files_in_another_order_are_said():
    """What comes first stays within the limit."""
    two = BASE.replace("count: 12}]", "count: 12}, {path: b.npz}]")
    found = change(
        two, BASE.replace("[{path: data/test.npz, count: 12}]", "[{path: b.npz}, {path: data/test.npz, count: 12}]")
    )
    assert texts(found, "changed") == [
        "`encoder`: controls.data order [data/test.npz, b.npz] -> [b.npz, data/test.npz]"
    ]


@pytest.mark.parametrize("names", ["mock, ., src", "., src, tools", "."])
def test_other_folders_of_modules_are_said(names: str):
    """They may have another module of the factory's name, and all of them come before what is installed."""
    found = change(SWAPPED, SWAPPED.replace("[., src]", f"[{names}]"))

    assert [each.key for each in found.of("loosened")] == ["pythonpath"]


def test_the_range_of_a_static_dim_with_an_example_means_nothing():
    """The example is the size, before and after."""
    assert change(SWAPPED, SWAPPED.replace("set: {min: 2, max: 9", "set: {min: 3, max: 5")).alterations == ()


def test_another_variable_of_the_factory_is_said():
    """Each variable by its name: it may make another model, as `kwargs` may. One that is passed on as well is not."""
    base = BASE.replace('    factory: "net:make"', '    factory: "net:make"\n    env: {CKPT: a.pt, OLD: x}')
    other = base.replace("{CKPT: a.pt, OLD: x}", "{CKPT: b.pt}").replace("version: 1", "version: 1\nenv: [HOME_OF]")

    found = change(base, other)

    assert texts(found, "loosened") == ["`encoder`: env.CKPT a.pt -> b.pt", "`encoder`: env.OLD removed"]
    assert texts(found, "changed") == [
        "`encoder`: env.HOME_OF added",
        "`other`: env.HOME_OF added",
    ]


def test_a_difference_far_inside_of_a_value_is_shown():
    """A long value must not look the same on both sides."""
    before, after = (f"{'x' * 500} --config {name}.yml {'y' * 500}" for name in ("strict", "lax"))

    assert arrow(before, after) == (
        f"...{'x' * 10} --config strict.yml {'y' * 43}... -> ...{'x' * 10} --config lax.yml {'y' * 46}..."
    )
    assert arrow((1, 2), (1, 3)) == "[1, 2] -> [1, 3]"
