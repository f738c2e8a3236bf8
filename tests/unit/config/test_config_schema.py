"""The JSON Schema and the documentation say what the validator does."""

from __future__ import annotations

import os
import re

import jsonschema
import pytest
import yaml
from config_samples import DOCS, MESSAGES, TEMPLATES, Project, config, documented_configs, samples

from export_gate.config import json_schema
from export_gate.config.containers import Field, Section
from export_gate.config.controls import CONTROLS, DATA, GOLDEN, TOLERANCE
from export_gate.config.dims import DIM
from export_gate.config.document import read_document
from export_gate.config.grammar import CONFIG, MODEL
from export_gate.config.inputs import FORMS
from export_gate.config.kinds import Scope
from export_gate.config.nodes import Allowance, Node
from export_gate.config.outputs import OUTPUTS, OutputSpec
from export_gate.config.problems import Problems
from export_gate.config.targets import BUDGET, TARGETS
from export_gate.config.tensors import TENSOR
from export_gate.config.waivers import WAIVERS

UNSEEN = MESSAGES.parent / "unseen-by-editors.txt"


def plain(node: Node) -> object:
    """The value that an editor's YAML reader hands to the schema."""
    if isinstance(node.value, dict):
        return {key: plain(child) for key, child in node.value.items()}
    return [plain(child) for child in node.value] if isinstance(node.value, tuple) else node.value


def schema_accepts(text: str) -> bool:
    """Whether an editor would show no mistake."""
    validator = jsonschema.Draft202012Validator(json_schema())
    return not list(validator.iter_errors(plain(read_document(text, Problems(), Allowance()))))


def test_the_schema_is_valid_and_ready_for_editors() -> None:
    """The schema is a draft 2020-12 schema that refuses unknown keys and describes each known one."""
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    objects = [schema, *(part for part in schema["$defs"].values() if "properties" in part)]
    assert len(objects) > 8
    for part in objects:
        assert part["additionalProperties"] is False
        assert all(prop["description"] for prop in part["properties"].values())
    tolerance = schema["$defs"]["onnx"]["properties"]["optimization"]
    assert tolerance == {
        "enum": ["disable", "basic", "extended", "all"],
        "default": "all",
        "description": "ONNX Runtime's graph optimization level.",
    }


@pytest.mark.parametrize("text", [*documented_configs(), config()])
def test_the_schema_accepts_what_loads(text: str, project: Project) -> None:
    """An editor shows no mistake in a config that the gate accepts."""
    project.load(text)
    assert schema_accepts(text)


@pytest.mark.parametrize(
    ("targets", "names"),
    [
        ("{half: {kind: onnx, opset: 17}, onnx: {}}", ["half", "onnx"]),
        ("{onnx: {kind: onnx}, second.try: {kind: pt2, decompose: true}}", ["second.try", "onnx"]),
        ("{program: {kind: exported-program, guards: warn}, aoti: }", ["program", "aoti"]),
    ],
)
def test_a_target_may_have_a_name_of_its_own(targets: str, names: list[str], project: Project) -> None:
    """It has the keys of its kind; those of one kind stay in the order in which they are listed."""
    text = config(more=f"    targets: {targets}")
    assert [target.name for target in project.load(text).models[0].targets] == names
    assert schema_accepts(text)


def test_a_kind_may_come_from_the_defaults(project: Project) -> None:
    """A model that lists a target of the defaults has its options, and the kind is one of them."""
    defaults = "defaults: {targets: {half: {kind: onnx, opset: 17}}}\n"
    text = config(more="    targets: {half: }").replace("models:", f"{defaults}models:", 1)
    (target,) = project.load(text).models[0].targets
    assert (target.name, target.kind, target.options["opset"]) == ("half", "onnx", 17)
    assert schema_accepts(text)


@pytest.mark.slow
def test_an_editor_shows_all_but_a_few_mistakes() -> None:
    """What only the gate can report concerns several keys or the file system: the list is complete."""
    names = [name for name in TEMPLATES if name not in ("syntax", "document")]
    unseen = [f"{name}: {snippet}" for name in names for snippet, text in samples(name) if schema_accepts(text)]
    if os.environ.get("UPDATE_GOLDEN"):
        UNSEEN.write_text("\n\n".join(unseen) + "\n", encoding="utf-8")
    assert "\n\n".join(unseen) + "\n" == UNSEEN.read_text(encoding="utf-8")


def every_section() -> dict[str, tuple[Field, ...]]:
    """Heading in docs/config.md -> keys that its table must have."""
    targets = {f"Target {field.key}": field.kind.fields for field in TARGETS.fields if isinstance(field.kind, Section)}
    forms = tuple({field.key: field for form in FORMS.values() for field in form.fields}.values())
    output = OUTPUTS.value
    waiver = WAIVERS.item
    assert isinstance(output, OutputSpec)
    assert isinstance(waiver, Section)
    return {
        "Top level": CONFIG.fields, "Model": MODEL.fields, "Dim": DIM.fields, "Input": forms, "Tensor": TENSOR.fields,
        "Output": output.section.fields, "Controls": CONTROLS.fields,
        "Data file": DATA.fields, "Golden file": GOLDEN.fields,
        "Tolerance": TOLERANCE.fields, "Targets": TARGETS.fields, **targets,
        "Budget": BUDGET.fields, "Waiver": waiver.fields,
    }  # fmt: skip


def documented_keys(heading: str) -> dict[str, str]:
    """Key -> example, from the table under that heading."""
    section = re.split(r"\n#+ ", DOCS.read_text(encoding="utf-8").split(f"# {heading}\n", 1)[1])[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| `")]
    return {row[0].strip("`"): row[-1].strip("`") for row in rows}


@pytest.mark.parametrize("heading", every_section())
def test_every_key_is_documented_with_an_example_that_works(heading: str, project: Project) -> None:
    """docs/config.md has each key of the grammar, no other, and an example that the validator accepts."""
    fields = every_section()[heading]
    documented = documented_keys(heading)
    assert list(documented) == [field.key for field in fields]
    (project.folder / "models").mkdir()
    for field in fields:
        scope = Scope(folder=project.folder, root=project.folder)
        example = read_document(documented[field.key], scope.problems, Allowance()).child(field.key)
        assert example is not None
        field.kind.check(example, scope)
        said = [line for line in scope.problems.text("docs").splitlines() if "dim that the model declares" not in line]
        assert not said


def test_every_key_of_the_schema_is_in_the_documentation() -> None:
    """Nothing that an editor offers is undocumented."""
    schema = json_schema()
    keys = {key for part in (schema, *schema["$defs"].values()) for key in part.get("properties", {})}
    text = DOCS.read_text(encoding="utf-8")
    assert len(keys) > 40
    assert [key for key in sorted(keys) if f"| `{key}` |" not in text] == []


def test_the_schema_is_plain_json_and_yaml() -> None:
    """The schema holds nothing but JSON, so that it can be written to a file."""
    import json

    assert json.loads(json.dumps(json_schema(), allow_nan=False)) == json_schema()
    assert yaml.safe_dump(json_schema())
