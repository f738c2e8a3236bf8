"""A relation that the contract lacks is said with what is declared beside what eager takes."""

from __future__ import annotations

from rule_samples import contract

from export_gate.rules.relation_advice import relation_hint, relation_words
from export_gate.wall.contract import Dim, Size, TensorSpec
from export_gate.wall.observation import MissingRelation
from export_gate.wall.source import SourceLine

IDS = TensorSpec(dtype="int64", shape=(Size(factors={"T": 1}),), range=(0, 8))
OF = contract(inputs={"ids": IDS}, dims=(Dim(name="T", min=2, max=9),))


def _found(words: str, declare: str, key: str, refused: int = 37, tried: int = 12) -> MissingRelation:
    return MissingRelation(words=words, declare=declare, key=key, refused=refused, accepted=9, tried=tried)


def test_an_index_is_said_with_its_range_and_with_what_takes_it():
    """The range does not know the size, and the operator is the user's own."""
    found = _found("`ids` >= `T`", "`range: [0, T-1]`", "inputs.ids")
    line = SourceLine(path="m.py", line=8, text="return torch.gather(x, 1, ids)")
    assert (
        relation_words(OF, found, line)
        == "`ids` is declared 0..8 whatever `T` is, but `torch.gather` takes at most `T-1`"
    )
    table = SourceLine(path="m.py", line=8, text="return self.table[ids]")
    assert "the index of `self.table` takes at most" in relation_words(OF, found, table)
    assert relation_hint(OF, found) == (
        "Declare `range: [0, T-1]` at `models.glyph-head.inputs.ids`, or clamp it in the model. This was tried: 12 of "
        "the 37 refused inputs (no more are tried) were drawn again like that, and eager takes all 12."
    )


def test_a_dim_is_said_with_its_range():
    """So that nobody has to look it up."""
    found = _found("`T` > 6, a length of `pos.weight`", "`max: 6`", "dims.T", refused=4, tried=4)
    assert relation_words(OF, found, None) == (
        "the contract allows what eager refuses: `T` > 6, a length of `pos.weight` (`T` is declared 2..9)"
    )
    assert relation_hint(OF, found).endswith("all refused inputs were drawn again like that, and eager takes them.")
