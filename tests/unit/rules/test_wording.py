"""Words that several messages share."""

from __future__ import annotations

import pytest
from rule_samples import contract

from export_gate.rules.wording import targets_key
from export_gate.wall.contract import make_target


@pytest.mark.parametrize(
    ("listed", "key"),
    [
        ("model", "`models.glyph-head.targets.onnx.guards`"),
        ("defaults", "`defaults.targets.onnx.guards`"),
        (
            "nowhere",
            "`models.glyph-head.targets.onnx.guards` (which must then list all targets: exported-program, onnx)",
        ),
    ],
)
def test_advice_names_the_key_that_drops_no_target(listed: str, key: str):
    """A model that lists its own targets has no others: advice must not make users lose them."""
    promised = contract(targets_listed=listed, targets=(make_target("exported-program"), make_target("onnx")))
    assert targets_key(promised, "onnx", "guards") == key
