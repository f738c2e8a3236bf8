"""Compare the config with the one at the base of the change, which the change cannot edit."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from export_gate.config import Config
from export_gate.config.load import parse_config
from export_gate.config.source import MAX_BYTES
from export_gate.loosening.configs import compare_configs
from export_gate.loosening.record import CONFIG, Alteration, Checked, ConfigChange, Effect, Policy
from export_gate.run.base import FETCH, SHOWN_SHA, Base, Wanted, file_at, find_commit
from export_gate.run.committed import interpreter_alterations
from export_gate.run.contents import content_alterations
from export_gate.run.git import UnreadableError
from export_gate.run.left import unreadable_alterations
from export_gate.run.moved import SIBLINGS, configs_at, gone_configs, moved_from, require_read, stands_in
from export_gate.run.pushing import few
from export_gate.run.same_file import with_moved_files
from export_gate.run.workflows import workflow_alterations
from export_gate.wall.errors import UserError

SECOND = "export-gate.yaml"
"""The config that is read by default if there is no `export-gate.yml`."""


def base_of(base: str | None, environment: Mapping[str, str]) -> str | None:
    """The base of the change: the named one, or before a push (run by pre-commit) what the remote has."""
    return base or environment.get("PRE_COMMIT_FROM_REF") or None


def find_change(
    config: Config, base: str | None, environment: Mapping[str, str], python: str | None = None
) -> tuple[ConfigChange | None, Config]:
    """What the change does to the check, and the config whose `waivers-max-days` counts.

    Args:
        config: the config as it is now.
        base: a commit; None means that there is nothing to compare with.
        environment: for git.
        python: the interpreter that the caller names.

    Raises:
        UserError: `base` cannot be a commit, or it cannot be read although the config has `relaxed: fail`.
    """
    if base is None:
        return None, config
    path = config.place
    try:
        # Resolved once: a branch could move between two reads.
        commit = find_commit(base, path.parent, environment)
    except UnreadableError as error:
        return _unreadable(config, str(error), error), config
    around: tuple[Alteration, ...] = ()
    try:
        # With a config that nobody compares, a workflow that chose it is all there is to see.
        around = (
            *interpreter_alterations(config, commit, environment, python),
            *workflow_alterations(commit, environment),
        )
        is_certain = not any(each.effect == "loosened" for each in around)
        change, terms = _own(config, commit, path, environment)
    except UnreadableError as error:
        change, terms, is_certain = _unreadable(config, commit.commit[:SHOWN_SHA], error), config, False
    if not is_certain:
        others: list[Config] = []
        with suppress(UnreadableError):
            others = [other for _, other in configs_at(config, commit, environment)]
        change, terms = _strictest(others, change, terms)
    return replace(change, alterations=(*around, *change.alterations)), terms


def _strictest(others: Collection[Config], change: ConfigChange, terms: Config) -> tuple[ConfigChange, Config]:
    """The same with the policies of the other configs: a change must not choose whose counts by choosing its config."""
    return (
        replace(change, policy="fail" if any(o.relaxed == "fail" for o in others) else change.policy),
        replace(terms, fail_on="warning" if any(o.fail_on == "warning" for o in others) else terms.fail_on),
    )


def _unreadable(config: Config, origin: str, error: UnreadableError) -> ConfigChange:
    """A base that is not here: what the config itself says about it counts, since nothing else is known.

    Raises:
        UserError: it says `relaxed: fail`.
    """
    if config.relaxed == "fail":
        raise UserError(f"{config.path.name}: {error}", FETCH) from error
    return _unknown(origin, str(error))


def _own(config: Config, base: Base, path: Path, environment: Mapping[str, str]) -> tuple[ConfigChange, Config]:
    """What the change does to the config and to those that are gone, and the config at the base."""
    found, terms, place = _past_content(base, path, environment), config, path
    all_gone = list(gone_configs(base, environment))
    if found is not None:
        place = found[0]
        change, terms = _compared(config, base, *found, environment)
    elif (old := moved_from(config, base, environment)) is not None:
        place = old
        change, terms = _moved(config, base, path, old, environment)
    else:
        require_read(base, environment)
        change, terms = _new(config, base, [old for old, _ in all_gone], environment)
    gone = [(old, other) for old, other in all_gone if old != place]
    policy: Policy = "fail" if any(other.relaxed == "fail" for _, other in gone) else change.policy
    said = (_gone(Path(os.path.relpath(old, path.parent)).as_posix(), other) for old, other in gone)
    return replace(change, policy=policy, alterations=(*said, *change.alterations)), terms


def _new(
    config: Config, base: Base, gone: Collection[Path], environment: Mapping[str, str]
) -> tuple[ConfigChange, Config]:
    """A config without a past: the first one, or one beside others, which whatever chose it no longer chooses."""
    path, origin = config.place, base.commit[:SHOWN_SHA]
    said = f"{path.name} is new: the base has none"
    kept = {place: other for place, other in configs_at(config, base, environment) if place not in gone}
    if not kept:
        return _only("changed", origin, said), config
    names = [Path(os.path.relpath(place, path.parent)).as_posix() for place in kept]
    change = _only("loosened", origin, f"{said}, and this run does not check the models of {few(names)}")
    # It may be that of another project, about which the others say nothing.
    return _strictest([other for other in kept.values() if stands_in(config, other)], change, config)


def _gone(name: str, config: Config) -> Alteration:
    models = ", ".join(contract.name for contract in config.models)
    what = f"{name} of the base is gone, so that its models are not checked: {models}"
    return Alteration(effect="loosened", model=CONFIG, what=what)


def _past_content(base: Base, path: Path, environment: Mapping[str, str]) -> tuple[Path, bytes | str] | None:
    """The config at the base, or why it cannot be used; under its other name if it does not exist under this one."""
    places = [path, path.with_suffix(SIBLINGS.get(path.suffix, path.suffix))]
    if path.name == SECOND:
        places.reverse()  # where the base has both, it reads the other one
    for place in places:
        try:
            content = file_at(base, Wanted(path=place, noun="config", largest_bytes=MAX_BYTES), environment)
        except UserError as error:
            return place, str(error)
        if content is not None:
            return place, content
    return None


def _moved(
    config: Config, base: Base, path: Path, old: Path, environment: Mapping[str, str]
) -> tuple[ConfigChange, Config]:
    """What the change does, compared with the config at its old place."""
    found = _past_content(base, old, environment)
    if found is None:
        raise AssertionError("moved_from names a file of the base")
    change, terms = _compared(config, base, *found, environment)
    where = Path(os.path.relpath(old, path.parent)).as_posix()
    said = Alteration(effect="changed", model=CONFIG, what=f"the config moved from {where} to {path.name}")
    return replace(change, alterations=(*change.alterations, said)), terms


def _compared(
    config: Config, base: Base, path: Path, content: bytes | str, environment: Mapping[str, str]
) -> tuple[ConfigChange, Config]:
    origin = f"{path.name} at {base.commit[:SHOWN_SHA]}"
    if isinstance(content, str):
        return _unknown(origin, content), config
    try:
        before = parse_config(content, path, shown=origin, is_past=True)
    except UserError as error:
        return _unknown(origin, str(error).splitlines()[0]), config
    change = compare_configs(origin, _checked(before, base.root), _checked(config, base.root))
    left, contents = unreadable_alterations(config, environment), content_alterations(before, config, base, environment)
    change = replace(change, alterations=(*left, *change.alterations, *contents))
    return with_moved_files(change, before, config, base, environment), before


def _checked(config: Config, root: Path) -> Checked:
    """What the config checks, without the folders of this machine."""
    folders = tuple(Path(os.path.relpath(entry, root)).as_posix() for entry in config.pythonpath)
    return replace(config, pythonpath=folders)


def _unknown(origin: str, why: str) -> ConfigChange:
    """A base that nobody can read is the base's fault, so the change that mends it must pass."""
    return _only("loosened", origin, f"it is not known what this change loosens: {why}")


def _only(effect: Effect, origin: str, what: str) -> ConfigChange:
    return ConfigChange(origin=origin, alterations=(Alteration(effect=effect, model=CONFIG, what=what),))
