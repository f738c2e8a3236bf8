"""Write a kit: verify the model's artifacts, let the worker write the data, move the whole folder into place."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from export_gate import pipeline
from export_gate.config import load_config
from export_gate.kit.files import list_files
from export_gate.kit.manifest import describe_kit, write_manifest
from export_gate.kit.read import read_manifest
from export_gate.outcome.judging import Outcome
from export_gate.run.checkout import described_revision
from export_gate.run.interpreter import Interpreter
from export_gate.run.launch import Listener
from export_gate.run.order import Order
from export_gate.run.plan import select
from export_gate.wall.codec import decode
from export_gate.wall.conformance import MANIFEST, Kit, KitData
from export_gate.wall.contract import Job, ModelContract, Target, TargetName
from export_gate.wall.digest import digest_file
from export_gate.wall.errors import GateError, UserError
from export_gate.wall.repository import config_folder
from export_gate.wall.request import WriteKit
from export_gate.wall.targets import KIND_NAMES, KINDS, kind_named
from export_gate.wall.words import count

ONNX = "onnx"
"""The kind of target that is replayed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The result of an order for a kit."""

    outcome: Outcome
    kit: Kit | None
    """None if the model is not verified and `force` was not given, or if there is no ONNX file."""
    sha256: str = ""
    """Of kit.json, which has the digest of every other file."""
    why_not: str = ""
    """Why there is no kit, or why its model is not verified."""


def make_kit(
    order: Order,
    output: Path,
    announce: Callable[[Interpreter, tuple[Job, ...]], Listener],
    *,
    force: bool,
) -> Made:
    """Verify the order's one model and write its kit to `output`, completely or not at all.

    Args:
        order: its selection names the model and the targets whose files the kit includes; of a model with one ONNX
            file, or one called `onnx`, that one is included unless another is named.
        output: replaced if it is a kit; with `force`, replaced in any case.
        announce: as for `pipeline.run`.
        force: write the kit even if the model is not verified; the kit records this.

    Raises:
        UserError: the model does not have the target or an ONNX file, the kit has no place for it, or `output`
            contains something else.
        GateError: the gate broke down, or the kit cannot be written.
    """
    order = replace(order, selection=replace(order.selection, targets=_targets(order)))
    place = output.resolve()
    _require_free(place, output, order.config, force=force)
    # Not the plain commit: `-dirty` after it says that no commit contains this model. Asked before the model runs.
    revision = described_revision(config_folder(order.config))
    with _staging(place, output) as stage:
        staged = replace(order, folder=stage / "report")
        outcome, answers = pipeline.verify(staged, announce, WriteKit(folder=str(stage / "kit")))
        written = tuple(decode(KitData, answer) for answer in answers)
        why_not = _why_unverified(outcome)
        if not written:
            return Made(outcome=outcome, kit=None, why_not=why_not or "there is no ONNX file")
        if why_not and not force:
            return Made(outcome=outcome, kit=None, why_not=why_not)
        results = replace(outcome.results, head=revision)
        kit = describe_kit(replace(outcome, results=results), written, stage / "kit", verified=not why_not)
        write_manifest(kit, stage / "kit")
        sha256 = digest_file(stage / "kit" / MANIFEST)
        _put(stage, place)
    return Made(outcome=outcome, kit=kit, sha256=sha256, why_not=why_not)


def _targets(order: Order) -> tuple[TargetName, ...]:
    """The targets of the kit: one ONNX file, which is replayed, and others beside it."""
    config = load_config(order.config)
    (contract,) = select(config, replace(order.selection, targets=()))
    named = [_planned(contract, name, order.config) for name in dict.fromkeys(order.selection.targets)]
    for target in named:
        if not kind_named(target.kind).is_in_kit:
            kinds = " or ".join(kind.name for kind in KINDS if kind.is_in_kit)
            raise UserError(f"{order.config}: {target.name} is of kind {target.kind}; a kit has files of kind {kinds}")
    onnx = [target for target in named if target.kind == ONNX]
    if len(onnx) > 1:
        names = " and ".join(target.name for target in onnx)
        raise UserError(f"{order.config}: {names} are ONNX files, expected one for a kit", "write a kit for each")
    first = onnx[0] if onnx else _default(contract, order.config)
    return (first.name, *(target.name for target in named if target is not first))


def _default(contract: ModelContract, config: Path) -> Target:
    """The model's ONNX file, or of several the one called `onnx`."""
    found = [target for target in contract.targets if target.kind == ONNX]
    if len(found) > 1 and contract.target(ONNX) is None:
        names = ", ".join(target.name for target in found)
        raise UserError(
            f"{config}: models.{contract.name} has {len(found)} ONNX files ({names}), expected one for the kit",
            "name it with `--target`",
        )
    return found[0] if len(found) == 1 else _planned(contract, ONNX, config)


def _planned(contract: ModelContract, name: TargetName, config: Path) -> Target:
    found = contract.target(name)
    if found is None:
        raise UserError(
            f"{config}: models.{contract.name} has no target {name}, expected one for the kit; "
            f"it has {', '.join(target.name for target in contract.targets)}",
            f"add `{name}: {{}}` to `models.{contract.name}.targets`" if name in KIND_NAMES else "name one of these",
        )
    return found


def _why_unverified(outcome: Outcome) -> str:
    """The reason; empty if the model is verified without a waiver."""
    (contract,) = outcome.results.contracts
    if outcome.judgement.verdict != "verified":
        return f"{contract.name} is not verified"
    waived = sum(finding.waiver is not None for finding in outcome.judgement.findings)
    return f"{contract.name} is verified except for {count(waived, 'waived violation')}" if waived else ""


def _require_free(place: Path, shown: Path, config: Path, *, force: bool) -> None:
    """Refuse to replace anything but a kit without `force`, and never replace the project itself."""
    if not place.exists():
        return
    if any(kept.is_relative_to(place) for kept in (Path.cwd(), config.resolve(), Path.home())):
        raise UserError(
            f"{shown}: contains the project or the current folder, so a kit cannot replace it", "name another one"
        )
    if not force and not _is_kit(place):
        raise UserError(
            f"{shown}: already exists and is not only a kit", "name another folder, or use --force to replace it"
        )


def _is_kit(place: Path) -> bool:
    """Whether every file in the folder is one that its kit.json lists; in an empty one, there is none to lose."""
    try:
        found = set(list_files(place))
        return not found or found <= {MANIFEST, *read_manifest(place).files}
    except UserError:
        return False


@contextmanager
def _staging(place: Path, shown: Path) -> Iterator[Path]:
    """A temporary folder next to the kit's place, on the same file system, so that it can be renamed."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        # rename() is atomic only within a file system, which the system's temporary folder may not share.
        stage = Path(tempfile.mkdtemp(prefix=f".{place.name}.", suffix=".partial", dir=place.parent))
    except OSError as error:
        raise GateError(f"{shown}: cannot be written: {error.strerror or error}") from error
    try:
        yield stage
    except OSError as error:
        raise GateError(f"{error.filename or shown}: cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _put(stage: Path, place: Path) -> None:
    """Move the new kit into place; the old folder is kept until then, and restored if the move fails."""
    # In the staging folder, which is removed in the end: rename() does not replace a folder that has files.
    old = stage / "old"
    if place.exists():
        place.rename(old)
    try:
        (stage / "kit").rename(place)
    # Ctrl-C must not leave the place empty either.
    except BaseException:
        if old.exists():
            old.rename(place)
        raise
