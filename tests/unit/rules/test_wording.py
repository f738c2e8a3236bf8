"""Words that messages share."""

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
    """A model that lists targets of its own has no others: whoever follows advice must not lose them unawares."""
    promised = contract(targets_listed=listed, targets=(make_target("exported-program"), make_target("onnx")))
    assert targets_key(promised, "onnx", "guards") == key
