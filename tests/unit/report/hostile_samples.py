"""Runs in which a stranger chose every string that strangers can choose."""

from __future__ import annotations

from export_gate.report.results import Results
from export_gate.wall.codec import decode, encode
from export_gate.wall.targets import KIND_NAMES

PAYLOAD = (
    "\u202e`|<script>x</script> @octocat #12 GH-1 https://evil.example [x](y) ![i](z) **b** <!-- \n::error::x\n"
    "</details></sub> \x1b[31m$x$ ``` ~~~ \\| ##[group]y "
)
NOT_FREE = {
    "severity", "owner", "cause", "stage", "reached", "kind", "target", "guards", "answer", "checks", "verdict",
    "fail_on", "dtype", "mode", "train_mode", "optimization", "group", "affine_basis", "started", "expected_dtype",
    "actual_dtype", "beside", "origin",
}  # fmt: skip
"""Keys whose values come from closed sets of ours."""


def _tainted(value: object, key: str = "") -> object:
    """Every string that a stranger can choose, made hostile."""
    if isinstance(value, dict):
        free = key in ("versions", "sizes", "facts")
        return {(PAYLOAD + name if free else name): _tainted(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [_tainted(item, key) for item in value]
    # An empty recipe has no block, so that it would change the layout.
    closed = key in NOT_FREE or value in KIND_NAMES or not isinstance(value, str) or (key == "recipe" and not value)
    return value if closed else f"{PAYLOAD}{value}"


def hostile(results: Results) -> Results:
    """The same run with every free string made hostile."""
    encoded = encode(results)
    return decode(Results, _tainted({**encoded, "contracts": []}) | {"contracts": _contracts(encoded["contracts"])})


def _contracts(encoded: list[dict[str, object]]) -> list[dict[str, object]]:
    """Contracts with hostile names and dims; what the report does not show stays."""
    return [
        {**contract, "name": f"{PAYLOAD}{contract['name']}", "dims": _tainted(contract["dims"])} for contract in encoded
    ]
