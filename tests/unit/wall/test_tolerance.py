from __future__ import annotations

from dataclasses import replace

import pytest
from rule_samples import contract, golden, leaf

from export_gate.rules.measure import measure
from export_gate.wall.contract import Controls, GoldenSource, TargetName, Tolerance, make_target
from export_gate.wall.tolerance import resolve_golden_tolerance, resolve_tolerance

# The design's table, written out once more: a change of a default must be made twice, on purpose.
TABLE = [
    ("float64", (1e-12, 1e-12), (1e-12, 1e-10)),
    ("float32", (1e-6, 1e-6), (1e-5, 1e-5)),
    ("float16", (1e-4, 1e-3), (1e-3, 5e-3)),
    ("bfloat16", (1e-3, 8e-3), (1e-2, 2e-2)),
    ("complex64", (1e-6, 1e-6), (1e-5, 1e-5)),
    ("complex128", (1e-12, 1e-12), (1e-12, 1e-10)),
    ("int64", (0, 0), (0, 0)),
    ("uint8", (0, 0), (0, 0)),
    ("bool", (0, 0), (0, 0)),
    ("float8_e4m3fn", (0, 0), (0, 0)),
]
ALL = (make_target("exported-program"), make_target("pt2"), make_target("onnx"), make_target("aoti"))


@pytest.mark.parametrize(("dtype", "same", "other"), TABLE)
def test_defaults_follow_the_reference_dtype_and_the_target(
    dtype: str, same: tuple[float, float], other: tuple[float, float]
):
    """The defaults are those of the documented table."""
    model = contract(targets=ALL)

    found = {target.name: resolve_tolerance(model, target.name, dtype) for target in ALL}

    for name, (atol, rtol) in {"exported-program": same, "pt2": same, "onnx": other, "aoti": other}.items():
        assert found[name] == Tolerance(atol=atol, rtol=rtol)


@pytest.mark.parametrize("name", ["onnx", "aoti"])
def test_each_field_comes_from_the_narrowest_declaration(name: TargetName):
    """A target's atol is used with the model's rtol and axis; nothing declared is lost."""
    model = contract(
        tolerance=Tolerance(atol=1e-2, rtol=1e-3, axis=1),
        targets=(make_target("onnx", tolerance=Tolerance(atol=5e-4)), make_target("aoti", tolerance=Tolerance(axis=0))),
    )
    expected = {
        "onnx": Tolerance(atol=5e-4, rtol=1e-3, axis=1),
        "aoti": Tolerance(atol=1e-2, rtol=1e-3, axis=0),
    }

    assert resolve_tolerance(model, name, "float32") == expected[name]


def test_a_declared_zero_is_a_declaration():
    """`atol: 0` means zero, not the default."""
    model = contract(tolerance=Tolerance(atol=0.0), targets=(make_target("onnx", tolerance=Tolerance(rtol=0.0)),))

    assert resolve_tolerance(model, "onnx", "float32") == Tolerance(atol=0.0, rtol=0.0)


def test_integers_stay_exact_under_a_declared_tolerance():
    """A tolerance for floats never loosens integers and bools."""
    model = contract(tolerance=Tolerance(atol=1.0, rtol=1.0, axis=0))

    assert resolve_tolerance(model, "onnx", "int64") == Tolerance(atol=0.0, rtol=0.0)


def test_goldens_take_their_own_tolerance_then_the_models_then_that_of_onnx():
    """A golden from another machine is judged like another runtime, unless the contract says otherwise."""
    source = GoldenSource(path="golden.npz", tolerance=Tolerance(atol=1e-3))
    declared = contract(tolerance=Tolerance(rtol=2e-3), targets=(make_target("pt2"),))

    assert resolve_golden_tolerance(contract(), [], "float32") == Tolerance(atol=1e-5, rtol=1e-5)
    assert resolve_golden_tolerance(declared, [source], "float32") == Tolerance(atol=1e-3, rtol=2e-3)


def test_of_several_possible_goldens_the_strictest_tolerance_holds():
    """Two files with the same name cannot loosen each other."""
    sources = [
        GoldenSource(path="a/golden.npz", tolerance=Tolerance(atol=1e-3, rtol=0.0)),
        GoldenSource(path="b/golden.npz", tolerance=Tolerance(atol=0.0, rtol=1e-3)),
    ]

    assert resolve_golden_tolerance(contract(), sources, "float32") == Tolerance(atol=0.0, rtol=0.0)


@pytest.mark.parametrize(
    ("source", "atol"),
    [(0, 1e-3), (1, 1e-1), (None, 1e-3), (2, 1e-3)],
)
def test_a_golden_is_judged_by_its_own_source(source: int | None, atol: float):
    """The observation says which source it is from; if an older version did not, the strictest applies."""
    sources = tuple(GoldenSource(path="golden.npz", tolerance=Tolerance(atol=atol)) for atol in (1e-3, 1e-1))
    seen = golden(leaf(max_abs_diff=1e-2))
    assert seen.controls is not None
    (member,) = seen.controls.inputs
    seen = replace(seen, controls=replace(seen.controls, inputs=(replace(member, golden=source),)))

    (measurement,) = measure(contract(controls=Controls(golden=sources)), seen).goldens

    assert measurement.tolerance == Tolerance(atol=atol, rtol=1e-5)
