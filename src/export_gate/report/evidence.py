"""Describe the evidence behind a verdict, in one sentence per model and one for the run; never call it a proof."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from export_gate.report.record import Ladder, Row
from export_gate.wall.contract import Dim, ModelContract
from export_gate.wall.observation import ControlSetObservation, Reused
from export_gate.wall.words import count, unchanged_words

NOT_A_PROOF = "evidence at those points, not a proof"
AFFINE = "affine in its input: the d+1 basis points stand for every input, up to rounding"
SHOWN_FAMILIES = 6
SHOWN_SIZES = 5
SHOWN_HASH = 12
"""Number of characters of a sha256 that reports show."""


def model_evidence(
    controls: ControlSetObservation | None,
    kinds: Collection[str],
    compared: int,
    *,
    verified: bool,
    ignored: Sequence[str] = (),
) -> str:
    """`verified at 48 control inputs (normal, halves, ...; batch 2, 8, 16), sha256 ab12...; evidence at ...`."""
    if controls is None or not compared:
        return "nothing was compared"
    inputs = max((len(controls.run_on(kind)) for kind in kinds), default=len(controls.inputs))
    points = count(inputs, "control input")
    if compared < inputs:
        points = f"{compared} of {points}"
    about = "; ".join([_families(controls), *_sizes(controls)])
    verb = "verified" if verified else "checked"
    # Chosen after the export, so they are no part of the set that the digest is of.
    further = f", and at {compared - inputs} more for the program's own conditions and constants"
    digest = f"sha256 `{controls.sha256[:SHOWN_HASH]}`{further if compared > inputs else ''}"
    names = ", ".join(f"`{name}`" for name in ignored)
    apart = f"; {names} {'is' if len(ignored) == 1 else 'are'} not compared" if ignored else ""
    return f"{verb} at {points} ({about}), {digest}{apart}; {NOT_A_PROOF}"


def run_evidence(rows: Sequence[Row]) -> str:
    """One sentence for the whole run; with one model, that model's."""
    checked = [row for row in rows if row.compared]
    if not checked:
        return "Nothing was compared."
    if len(rows) == 1:
        return f"{rows[0].evidence[0].upper()}{rows[0].evidence[1:]}."
    verb = "Verified" if all(row.state in ("ok", "warned") for row in rows) else "Checked"
    points = count(sum(row.compared for row in checked), "control input")
    return f"{verb} at {points} over {count(len(checked), 'model')}; {NOT_A_PROOF}."


def affine_line(ladders: Sequence[Ladder], controls: ControlSetObservation | None) -> str:
    """The one exception that is a proof up to rounding, with the targets to which it applies."""
    # Where something is wrong the claim would read as praise.
    covered = [ladder.label for ladder in ladders if ladder.affine and ladder.state in ("ok", "warned")]
    # Without the basis among the control inputs, affinity alone covers nothing.
    if not covered or controls is None or not any(entry.group == "affine" for entry in controls.inputs):
        return ""
    return AFFINE if len(covered) == len(ladders) else f"{AFFINE} (in {', '.join(covered)})"


def dims_line(contract: ModelContract) -> str:
    """`batch 2..16 and 1 separately, side 8..64 in steps of 8`."""
    return ", ".join(map(_dim, contract.dims))


def _dim(dim: Dim) -> str:
    apart = f" and {', '.join(map(str, dim.separate))} separately" if dim.separate else ""
    mode = "" if dim.mode == "strict" else f" ({dim.mode})"
    return f"{dim.name} {dim.text}{apart}{mode}"


def dropped_line(controls: ControlSetObservation | None) -> str:
    """`73 control inputs left out: 70 over the limit of 50; 3 over the FLOP budget`; empty for none."""
    if controls is None or not controls.left_out:
        return ""
    because = f": {controls.left_out_reason}" if controls.left_out_reason else ""
    return f"{count(controls.left_out, 'control input')} left out{because}"


def unchanged_line(reused: Reused | None) -> str:
    """`unchanged since 1a2b3c4d5e, verified 2026-11-30`; empty if the model was verified in this run."""
    return "" if reused is None else unchanged_words(reused.commit, reused.day)


def left_out_lines(controls: ControlSetObservation | None) -> tuple[str, ...]:
    """What the control set does not cover, so that nobody assumes that it does."""
    if controls is None:
        return ()
    lines = [line for line in (dropped_line(controls),) if line]
    lines += [f"input {name} has no declared range: wide values were not tried" for name in controls.undeclared_range]
    return (*lines, *controls.notes)


def _families(controls: ControlSetObservation) -> str:
    names = list(dict.fromkeys(entry.family for entry in controls.inputs))
    return ", ".join(names if len(names) <= SHOWN_FAMILIES else [*names[: SHOWN_FAMILIES - 1], "..."])


def _sizes(controls: ControlSetObservation) -> list[str]:
    tried: dict[str, set[int]] = {}
    for entry in controls.inputs:
        for dim, size in entry.sizes.items():
            tried.setdefault(dim, set()).add(size)
    return [f"{dim} {_shortened(sorted(sizes))}" for dim, sizes in tried.items()]


def _shortened(sizes: list[int]) -> str:
    if len(sizes) > SHOWN_SIZES:
        return f"{', '.join(map(str, sizes[: SHOWN_SIZES - 2]))}, ..., {sizes[-1]}"
    return ", ".join(map(str, sizes))
