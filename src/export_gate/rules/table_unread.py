"""A table of an artifact is not the program's, and rows of it were never read."""

from __future__ import annotations

from collections.abc import Iterator

from export_gate.rules.base import Finding, Rule
from export_gate.rules.measure import Measured


def check(measured: Measured) -> Iterator[Finding]:
    """One warning for each table."""
    contract = measured.contract
    for target in measured.observation.targets:
        for table in target.tables:
            share = f"{table.read} of {table.rows} rows ({100 * table.read / table.rows:.2g}%)"
            yield RULE.finding(
                contract.name,
                (
                    f"the table {table.table!r} is not the program's in every "
                    f"bit, and input {table.input} read {share}: any other row may be wrong"
                ),
                hint=(
                    f"Read all rows: return an input with every row's number from `models.{contract.name}.controls."
                    "function`, or make the file from the weights that the factory loads."
                ),
                target=target.target,
                key=f"inputs.{table.input.partition('.')[0]}",
            )


RULE = Rule(
    name="table-unread",
    severity="warning",
    summary="A table of the artifact is not the program's, and not all of its rows were read.",
    stage="compare",
    waivable=(),
    owner="contract",
    check=check,
)
