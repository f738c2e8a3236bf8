"""The grammar of targets: the keys that all have, and the options of each kind."""

from __future__ import annotations

from functools import partial
from typing import Any

from export_gate.config.containers import Field, ListOf, Section
from export_gate.config.controls import TOLERANCE
from export_gate.config.kinds import Choice, Kind, Number, Switch, Text
from export_gate.config.paths import RelativePath
from export_gate.config.units import GROWTH, SIZE
from export_gate.wall import targets
from export_gate.wall.contract import Budget, Target, make_target
from export_gate.wall.targets import KINDS, TARGET_NAMES, Option, TargetKind

_ARTIFACT = Field("artifact", RelativePath(), "An existing file to verify instead of exporting one.")


def _make_budget(*, max_bytes: float | None = None, **values: Any) -> Budget:
    return Budget(max_bytes=None if max_bytes is None else int(max_bytes), **values)


BUDGET = Section(
    title="budget",
    make=_make_budget,
    expected="a mapping with size and growth",
    fields=(
        Field("size", SIZE, "Maximum size of all files of the artifact together.", to="max_bytes"),
        Field("growth", GROWTH, "Maximum growth over the size in the interface lock, such as 10%."),
        Field("exceeded", Choice(("violation", "warning")), "Severity when exceeded: violation (default) or warning."),
    ),
)
_BUDGET = Field("budget", BUDGET, "Limits on the artifact's size.")
_ALL = Field("tolerance", TOLERANCE, "Tolerance of this target; overrides the model's.")
_GUARDS = "How to judge out-of-range input that is accepted."


def _values(option: Option) -> Kind:
    match option.values:
        case targets.Switch():
            return Switch()
        case targets.Whole(minimum=minimum, maximum=maximum):
            return Number(minimum=minimum, maximum=maximum, whole=True)
        case targets.OneOf(words=words):
            return Choice(words)
        case targets.Words(pattern=pattern, one=one, several=several):
            return ListOf(item=Text(expected=one, pattern=pattern), minimum=1, unique=True, expected=several)


def _section(kind: TargetKind) -> Section:
    guards = Field("guards", Choice(("require", "warn", "ignore")), _GUARDS, default=kind.guards)
    options = (Field(each.name, _values(each), each.text, default=each.default) for each in kind.options)
    files = (_ARTIFACT, _BUDGET) if kind.has_file else ()
    return Section(
        title=kind.name,
        make=partial(make_target, kind.name),
        may_be_null=True,
        fields=(_ALL, guards, *options, *files),
    )


def _make_targets(**made: Any) -> tuple[Target, ...]:
    """The targets in the order in which the pipeline runs them."""
    return tuple(sorted(made.values(), key=lambda target: TARGET_NAMES.index(target.kind)))


TARGETS = Section(
    title="targets",
    expected="a mapping of targets",
    make=_make_targets,
    fields=tuple(Field(kind.name, _section(kind), kind.text) for kind in KINDS),
)
