"""References beyond a budget of memory wait in a file, with the same values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from export_gate.worker.leaves.values import Leaf
from export_gate.worker.model.reference import Reference
from export_gate.worker.model.reference_file import LEAST, ReferenceFile

ROWS = LEAST // 8


def answer(dtype: str, seed: int = 0) -> tuple[Leaf, ...]:
    """Outputs of every kind: large, small, empty, transposed, and no number at all."""
    rng = np.random.default_rng(seed)
    large = (rng.standard_normal((8, ROWS)) * 9).astype(dtype)
    values = (large, large.T, large[:, :3], np.zeros((0, 4), dtype))
    leaves = tuple(Leaf(name=f"y{n}", dtype=dtype, value=value) for n, value in enumerate(values))
    return (*leaves, Leaf(name="text", dtype="str", value=None, constant="'a'"))


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096


def same(one: tuple[Leaf, ...], other: tuple[Leaf, ...]) -> bool:
    """Whether names, dtypes, shapes and bits are the same."""
    return [(a.name, a.dtype, a.constant) for a in one] == [(b.name, b.dtype, b.constant) for b in other] and all(
        a.value is b.value is None
        or (
            (a.value is not None and b.value is not None and a.value.dtype == b.value.dtype)
            and a.value.shape == b.value.shape
            and np.ascontiguousarray(a.value).tobytes() == np.ascontiguousarray(b.value).tobytes()
        )
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "uint8", "bool", "complex64"])
def test_a_reference_from_the_file_has_the_values_that_eager_returned(dtype: str, tmp_path: Path):
    """To the bit, in any order, and more than once; the file has no name that a run could leave behind."""
    file = ReferenceFile(folder=tmp_path / "new", left=0)
    said = [answer(dtype, seed) for seed in range(3)]
    kept = [file.reference(f"case-{seed}", leaves) for seed, leaves in enumerate(said)]
    assert [reference.case for reference in kept] == ["case-0", "case-1", "case-2"]
    for at in (2, 0, 1, 0):
        assert same(kept[at].leaves, said[at])
    assert not list((tmp_path / "new").iterdir())


def test_writing_to_what_was_read_changes_nothing(tmp_path: Path):
    """A comparison that writes into eager's outputs does not change them for the next target."""
    file, said = ReferenceFile(folder=tmp_path, left=0), answer("float32")
    kept = file.reference("case", said)
    value = kept.leaves[0].value
    assert value is not None
    value[:] = 0
    assert same(kept.leaves, said)


def test_the_first_references_stay_in_memory(tmp_path: Path):
    """Up to the budget, so that most models never write to the disk."""
    said = answer("float32")
    held = sum(leaf.value.nbytes for leaf in said if leaf.value is not None)
    file = ReferenceFile(folder=tmp_path, left=2 * held)
    first, second, third = (file.reference(name, said) for name in "abc")
    assert [each.leaves[0].value is said[0].value for each in (first, second, third)] == [True, True, False]


def test_where_no_file_can_be_written_references_stay_in_memory(tmp_path: Path):
    """A full disk costs memory, not the verdict."""
    (tmp_path / "taken").write_text("a file", encoding="utf-8")
    file, said = ReferenceFile(folder=tmp_path / "taken", left=0), answer("float32")
    assert file.reference("case", said).leaves is said


def test_many_large_references_take_the_memory_of_one(tmp_path: Path):
    """Of 256 MiB that eager returned, less than a quarter is in memory afterwards, and while they are read in turn."""
    count, each = 32, 8 << 20
    file = ReferenceFile(folder=tmp_path, left=0)
    before = resident()
    kept: list[Reference] = []
    for number in range(count):
        value = np.full(each // 4, number, np.float32)
        kept.append(file.reference(str(number), (Leaf(name="y", dtype="float32", value=value),)))
    for number, reference in enumerate(kept):
        value = reference.leaves[0].value
        assert value is not None
        assert value.min() == value.max() == number
        assert resident() - before < count * each / 4
