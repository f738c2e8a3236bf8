"""Turn a config and a selection into the jobs of one run."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from export_gate.config import Config
from export_gate.wall.contract import CASE_FILE, Job, ModelContract, Target
from export_gate.wall.errors import UserError
from export_gate.wall.repository import config_folder
from export_gate.wall.targets import KIND_NAMES


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What the command line picks from the config; empty means all."""

    models: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    """Targets to skip: any that the config has, or the name of a kind even if no model has it."""
    cases: tuple[str, ...] = ()
    """Glob patterns of control input names."""

    @property
    def is_narrow(self) -> bool:
        """Whether it leaves out parts of the models that it picks."""
        return bool(self.targets or self.skipped or self.cases)


def from_config(cases: Sequence[str], config: Path) -> tuple[str, ...]:
    """Patterns of control inputs, with those that are .npz files written from the config's folder.

    Raises:
        UserError: a pattern is an .npz file that does not exist.
    """
    return tuple(_from_folder(case, config_folder(config)) if case.endswith(CASE_FILE) else case for case in cases)


def _from_folder(case: str, folder: Path) -> str:
    path = Path(case)
    if not path.is_file():
        raise UserError(
            f"--case {case}: expected a pattern of control inputs or an .npz file, there is no such file",
            "`export-gate run --save-case FILE` writes one; `export-gate controls MODEL` lists the patterns' names",
        )
    return Path(os.path.relpath(path.resolve(), folder)).as_posix()


def make_plan(config: Config, selection: Selection, folder: Path) -> tuple[Job, ...]:
    """One job per selected model; artifacts go below `folder`.

    Raises:
        UserError: a model or target that the config does not have, or no target is left of any model.
    """
    contracts = select(config, selection)
    return tuple(
        Job(
            contract=contract,
            base=str(config_folder(config.path)),
            pythonpath=config.pythonpath,
            artifacts=str(folder.resolve() / "artifacts" / contract.name),
            cases=selection.cases,
        )
        for contract in contracts
    )


def select(config: Config, selection: Selection) -> tuple[ModelContract, ...]:
    """The selected contracts, each cut to the selected targets.

    Raises:
        UserError: a model or target that the config does not have, or no target is left of any model.
    """
    known = [contract.name for contract in config.models]
    for name in selection.models:
        if name not in known:
            raise UserError(f"{config.path}: there is no model {name!r}; {_nearest(name, known)}")
    chosen = [c for c in config.models if not selection.models or c.name in selection.models]
    planned = {target.name for contract in chosen for target in contract.targets}
    _require_known(config, selection, planned)
    cut = [replace(c, targets=_cut(c, selection)) for c in chosen]
    kept = tuple(contract for contract in cut if contract.targets)
    if not kept:
        wanted = sorted(set(selection.targets or planned))
        raise UserError(
            f"{config.path}: nothing to compare: --skip-target excludes every selected target ({', '.join(wanted)}), "
            "expected at least one to be left",
            "Skip fewer targets, or select models that have others.",
        )
    return kept


def onnx_target(contract: ModelContract) -> Target:
    """The first target of the contract that is an ONNX file.

    Raises:
        UserError: there is none.
    """
    found = next((target for target in contract.targets if target.kind == "onnx"), None)
    if found is None:
        names = ", ".join(target.name for target in contract.targets)
        raise UserError(
            f"models.{contract.name}.targets: expected an ONNX file among them, got {names}",
            "Add `onnx: {}` to the model's targets.",
        )
    return found


def _require_known(config: Config, selection: Selection, planned: Collection[str]) -> None:
    for name in selection.targets:
        if name not in planned:
            raise UserError(f"{config.path}: no selected model has the target {name!r}; {_nearest(name, planned)}")
    # Kinds too: the pre-push hook skips `aoti` in every repository, whether or not it has such a target.
    known = {*KIND_NAMES, *(target.name for contract in config.models for target in contract.targets)}
    for name in selection.skipped:
        if name not in known:
            raise UserError(f"{config.path}: no model has the target {name!r} to skip; {_nearest(name, known)}")


def unselected_targets(config: Config, planned: Sequence[ModelContract]) -> int:
    """How many targets of the planned models the selection leaves out."""
    whole = {contract.name: len(contract.targets) for contract in config.models}
    return sum(whole[contract.name] - len(contract.targets) for contract in planned)


def _cut(contract: ModelContract, selection: Selection) -> tuple[Target, ...]:
    picked = selection.targets or tuple(target.name for target in contract.targets)
    return tuple(t for t in contract.targets if t.name in picked and t.name not in selection.skipped)


def _nearest(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"it has {', '.join(names)}"
