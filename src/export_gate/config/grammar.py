"""Every key of `export-gate.yml`, declared once for the validator, the JSON Schema and the records.

Read it from the bottom: CONFIG contains models; a model contains dims, inputs, outputs, controls, tolerance, targets.
"""

from __future__ import annotations

from typing import Any

from export_gate.config.containers import Field, ListOf, Section, Table, Values
from export_gate.config.controls import CONTROLS, TOLERANCE
from export_gate.config.dims import DIMS
from export_gate.config.inputs import INPUTS
from export_gate.config.kinds import Anything, Choice, Exactly, Number, Scope, Switch, Text
from export_gate.config.names import NAME
from export_gate.config.nodes import Node
from export_gate.config.outputs import OUTPUTS
from export_gate.config.paths import ATTRIBUTE, ONE_LINE, RelativePath
from export_gate.config.references import verify_references
from export_gate.config.targets import TARGETS
from export_gate.config.units import TIME
from export_gate.config.variables import Variables
from export_gate.config.waivers import WAIVERS, verify_waived_targets
from export_gate.wall.contract import ModelContract, make_target
from export_gate.wall.targets import KINDS

MODEL_NAME = Text(
    expected="a model name (letters, digits, '.', '_', '-'; first a letter or digit)",
    pattern="[A-Za-z0-9][A-Za-z0-9._-]*",
    max_length=100,
)
"""Model names become folder names."""

OWN_KEYS = ("factory", "dims", "inputs", "outputs", "waivers")
"""Keys of a model that `defaults` cannot hold."""


_DEFAULT_TARGETS = tuple(make_target(kind.name) for kind in KINDS if kind.is_default)


def _make_model(**values: Any) -> ModelContract:
    dims = tuple(values.pop("dims", {}).values())
    outputs = tuple(values.pop("outputs", {}).values())
    filled = {"targets": _DEFAULT_TARGETS, **values, "dims": dims, "outputs": outputs}
    # Declared at one target, but all targets share the export.
    strict = any(target.options.get("strict") for target in filled["targets"])
    return ModelContract(**filled, strict=strict)


def _verify_model(values: Values, node: Node, scope: Scope) -> None:
    targets = node.child("targets")
    if targets and targets.value == {}:
        scope.problems.expected(targets, "at least one target", then="omit the key for the default targets")
    elif targets is None or "targets" in values:
        verify_waived_targets([target.name for target in values.get("targets", _DEFAULT_TARGETS)], node, scope)
    verify_references(values, node, scope)


def _verify_names(_values: Values, node: Node, scope: Scope) -> None:
    """Two models never share a folder, even on file systems that ignore case."""
    models = node.child("models")
    seen: dict[str, Node] = {}
    for model in models.children if models else ():
        first = seen.setdefault(model.key.lower(), model)
        if first is not model:
            clash = f"{model.key!r} and {first.key!r}"
            scope.problems.expected_key(model, "model names that differ in more than case", got=clash)


_DEPENDENCY = RelativePath(must_be="file or folder")

MODEL = Section(
    title="model",
    make=_make_model,
    named=True,
    verify=_verify_model,
    expected="a mapping with factory and inputs",
    fields=(
        Field(
            "factory",
            ATTRIBUTE,
            "Callable that returns the nn.Module: module:attribute or file.py:attribute.",
            required=True,
        ),
        Field(
            "kwargs",
            Table(key=NAME, value=Anything(), expected="a mapping of keyword arguments"),
            "Keyword arguments of the factory.",
        ),
        Field("env", Variables(), "Environment variables to pass on to the project's code, or to set for it."),
        Field(
            "train-mode",
            Choice(("refuse", "force-eval")),
            "For a factory that returns a model in train mode: refuse (default) or force-eval, which calls eval().",
        ),
        Field("dims", DIMS, "Named sizes that may vary."),
        Field("inputs", INPUTS, "Arguments of forward, in its order; keyword-only ones by name.", required=True),
        Field("outputs", OUTPUTS, "Outputs by name, in order; checked against eager too."),
        Field("controls", CONTROLS, "How the control set is built."),
        Field("tolerance", TOLERANCE, "Model-wide tolerance; overrides the defaults of target and dtype."),
        Field("targets", TARGETS, "Targets to verify; by default exported-program, pt2 and onnx."),
        Field("timeout", TIME, "Time limit of one worker process of the model; by default 10m.", to="timeout_s"),
        Field("cache", Switch(), "Whether an unchanged model's verdict is reused; by default true."),
        Field(
            "paths",
            ListOf(item=_DEPENDENCY, unique=True, expected="a list of files and folders"),
            "Files and folders that Python does not see the model read; if one changes, it is verified again.",
        ),
        Field("waivers", WAIVERS, "Violations that are accepted until a date."),
    ),
)

# A plain dict, of which only the mistakes matter: its values were merged into the models before.
DEFAULTS = Section(
    make=dict,
    expected="a mapping of model keys",
    fields=tuple(field for field in MODEL.fields if field.key not in OWN_KEYS),
)

_PATTERN = Text(expected="a pattern of paths such as docs/** or *.md", pattern=ONE_LINE, max_length=200)
_FOLDER = RelativePath(must_be="folder")

CONFIG = Section(
    make=dict,
    verify=_verify_names,
    expected="a mapping with version and models",
    fields=(
        Field("version", Exactly(1, "1, the only version that this export-gate reads"), "1", required=True),
        Field("python", Text(expected="the path of a Python interpreter", pattern=ONE_LINE), "The project's Python."),
        Field(
            "pythonpath",
            ListOf(item=_FOLDER, unique=True, expected="a list of folders"),
            "Folders put on sys.path, relative to the config; by default the config's folder, and src/ if it exists.",
        ),
        Field("env", Variables(), "The same for all models; a model's own `env` adds to it."),
        Field(
            "relaxed", Choice(("warn", "fail")), "What a change that loosens the check gets: warn (default) or fail."
        ),
        Field(
            "fail-on",
            Choice(("violation", "warning")),
            "The lowest severity that fails the check: violation (default) or warning.",
        ),
        Field(
            "waivers-max-days",
            Number(minimum=1, maximum=3660, whole=True),
            "How many days ahead a waiver may end; by default 90.",
        ),
        Field(
            "ignore",
            ListOf(item=_PATTERN, unique=True, expected="a list of patterns such as docs/**"),
            "Patterns of files that no model reads; a push of such files alone is not verified by the hook.",
        ),
        Field("cache", Switch(), "Whether verdicts of unchanged models are reused at all; by default true."),
        # before the models, so that a mistake in it is reported under its own name
        Field("defaults", DEFAULTS, "Any model key except factory, dims, inputs, outputs and waivers."),
        Field(
            "models",
            Table(key=MODEL_NAME, value=MODEL, minimum=1, expected="a mapping of at least one model by name"),
            "The models to verify, by name.",
            required=True,
        ),
    ),
)


def json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of `export-gate.yml`, for editors.

    It describes each key by itself. Mistakes that involve several keys or files (a dim that no shape uses, a file that
    does not exist) are found only by `load_config`.
    """
    defs: dict[str, Any] = {}
    root = CONFIG.schema(defs)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "export-gate.yml"}
    return {**head, **root, "$defs": dict(sorted(defs.items()))}
