"""Whatever the file holds, the answer is a config or a list of mistakes, and it comes at once."""

from __future__ import annotations

import os
import re

import pytest
from config_samples import Project, config, documented_configs, read
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from export_gate.config import Config
from export_gate.config.controls import CONTROLS
from export_gate.config.grammar import CONFIG, MODEL
from export_gate.config.targets import TARGETS
from export_gate.config.tensors import TENSOR

DOCUMENTS = int(os.environ.get("EXPORT_GATE_FUZZ", "1200"))
"""How many random documents are read, over the tests below: `EXPORT_GATE_FUZZ=20000` takes a few minutes."""
TESTS = 6
"""Documents that one example of each test makes together."""
fuzz = settings(max_examples=DOCUMENTS // TESTS, suppress_health_check=[HealthCheck.function_scoped_fixture])


KEYS = [field.key for section in (CONFIG, MODEL, CONTROLS, TARGETS, TENSOR) for field in section.fields]
scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.sampled_from(KEYS),
    st.sampled_from(["n", "2*n+1", "10m", "200 GFLOP", "p:m", "float32",
                     "*a", "&a", "<<", "!!str", ".inf", "a.npz", ".."]),
)  # fmt: skip
keys = st.one_of(st.sampled_from(KEYS), scalars.map(str))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=4)),
    max_leaves=12,
)


def flow(value: object) -> str:
    """YAML in flow style; scalars are written bare, so that the reader has something to resolve."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {flow(item)}" for key, item in value.items()) + "}"
    return "[" + ", ".join(map(flow, value)) + "]" if isinstance(value, list) else str(value)


@fuzz
@given(st.binary(max_size=200))
@example(b"\xff\xfe")
@example(b"a: \xed\xa0\x80")
@example(b'"\\ud800": 1')
@example(b'"\\UFFFFFFFF"')
def test_any_bytes_get_an_answer(project: Project, content: bytes) -> None:
    """Random bytes are refused in a sentence."""
    assert isinstance(read(content), str)


@fuzz
@given(st.text(alphabet=st.sampled_from("ab:-[]{}&*!|>'\"%@`#?,<~0.1\n \t\u2028é"), max_size=60))
@example("? ? ?")
@example("*a")
@example("<<: [*a]")
@example("&a : &a")
def test_any_punctuation_gets_an_answer(project: Project, text: str) -> None:
    """Random YAML punctuation is refused in a sentence."""
    assert isinstance(read(text.encode()), str)


@pytest.mark.slow
@fuzz
@given(st.dictionaries(keys, values, max_size=5))
def test_any_structure_gets_an_answer(project: Project, value: dict[str, object]) -> None:
    """Random structures with real keys are refused with messages, each on one printable line."""
    read(flow(value).encode("utf-8", "replace"))


@pytest.mark.slow
@fuzz
@given(st.dictionaries(st.sampled_from([field.key for field in MODEL.fields]), values, max_size=5))
def test_any_model_gets_an_answer(project: Project, value: dict[str, object]) -> None:
    """A model with random values under its own keys is refused or loaded."""
    read(f"version: 1\nmodels:\n  m: {flow(value)}\n".encode("utf-8", "replace"))
    read(f"version: 1\ndefaults: {flow(value)}\nmodels:\n  m: {flow(value)}\n".encode("utf-8", "replace"))


@pytest.mark.slow
@fuzz
@given(st.data())
def test_any_damage_to_a_config_gets_an_answer(project: Project, data: st.DataObject) -> None:
    """The full example with a piece cut out or put in is refused or loaded."""
    text = documented_configs()[1]
    start = data.draw(st.integers(0, len(text)))
    end = start + data.draw(st.integers(0, 30))
    read((text[:start] + flow(data.draw(scalars)) + text[end:]).encode("utf-8", "replace"))


@pytest.mark.slow
@pytest.mark.parametrize("other", ["{}", "[[]]", "{a: {}}"])
def test_a_collection_in_place_of_any_word_gets_an_answer(project: Project, other: str) -> None:
    """What a key of the full example says is refused or taken, whatever depends on it."""
    text = documented_configs()[1]
    places = list(re.finditer(r"(?<=: )[\w.:/*-]+(?=[,}\s])", text))
    assert len(places) > 50
    for place in places:
        read((text[: place.start()] + other + text[place.end() :]).encode())


def aliases(levels: int, wide: int) -> str:
    """Each level holds the one before `wide` times."""
    rows = ["a0: &a0 {b: [0, 1, 2]}", *(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * wide)}]" for i in range(1, levels))]
    return "\n".join(rows)


MODELS = "".join(f"  m{i}: {{}}\n" for i in range(3000))
BOMBS = {
    "laughs": aliases(30, 9),
    "merges": "a0: &a0 {k: [0, 1]}\n" + "".join(
        f"a{i}: &a{i} {{<<: *a{i - 1}, k{i}: *a{i - 1}}}\n" for i in range(1, 40)
    ),
    "deep aliases": "a0: &a0 " + "[" * 40 + "]" * 40 + "".join(f"\na{i}: &a{i} [*a{i - 1}]" for i in range(1, 200)),
    "defaults": f"version: 1\ndefaults: {{kwargs: {{a: [{'0, ' * 5000}]}}}}\nmodels:\n{MODELS}",
    "flow depth": "[" * 1_000_000,
    "block depth": "- " * 500_000,
    "question marks": "? " * 500_000,
    "unknown keys": "".join(f"timeot{i}: 1\n" for i in range(15_000)),
    "unknown long keys": "".join(f"{'timeout' * 13}{i}: 1\n" for i in range(9_000)),
    "unknown dims": config(x=f"{{dtype: float32, shape: [{', '.join(f'n{i}' for i in range(9_000))}]}}"),
    "many dims": config(dims="{" + ", ".join(f"dim{i}: {{max: 4}}" for i in range(6_000)) + "}"),
    "long number": f"version: {'9' * 1_000_000}",
    "long scalar": f"version: {'x' * 1_000_000}",
    "long size": config(x=f"{{dtype: float32, shape: [n, {'1+' * 400_000}n]}}"),
    "long time": config(more=f"    timeout: {'1' * 900_000}h"),
    "long factory": config(more=f"  b: {{factory: '{'a.' * 400_000}', inputs: {{x: {{constant: 1}}}}}}"),
    "long path": config(more=f"    controls: {{data: [{{path: '{'../a' * 200_000}.npz'}}]}}"),
    "many lines": "\n" * 1_000_000,
    "many items": "- a\n" * 250_000,
    "many models": "version: 1\nmodels:\n" + "".join(
        f"  m{i}: {{factory: 'p:m', dims: {{n: {{min: 1, max: 8}}}}, timeout: 5m, targets: {{onnx: {{opset: 20}}}},"
        " inputs: {x: {dtype: float32, shape: [n, 3], range: [0, 1]}, y: {dtype: int64, shape: [n], range: [0, 9]}}}\n"
        for i in range(1200)
    ),
    "repeated keys": "a: 1\n" * 19_000,
    "long keys deep": "".join(" " * i + "k" * 99 + f"{i}:\n" for i in range(48)) + "".join(
        " " * 48 + f"{'k' * 90}{i}: 0\n" for i in range(6_000)
    ),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_a_hostile_config_is_answered_within_a_second(name: str, project: Project) -> None:
    """Neither aliases, nesting, length nor number of mistakes can keep the gate busy."""
    answer = read(BOMBS[name].encode())
    assert isinstance(answer, Config) is (name == "many models")
