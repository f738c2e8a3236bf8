"""What the user reads: `messages/` holds snippets of configs, each followed by its messages after `=>`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from config_samples import MESSAGES, TEMPLATES, Project, samples

from export_gate.config import load_config
from export_gate.wall.errors import UserError

SYNTAX = pytest.param(
    "syntax", marks=pytest.mark.skipif(not yaml.__with_libyaml__, reason="PyYAML without libyaml words these otherwise")
)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*(name for name in TEMPLATES if name != "syntax"), SYNTAX])
def test_each_mistake_has_its_message(name: str, project: Project):
    """Every mistake is named with its place, its key, what was expected, what was found, and often the next step."""
    path = MESSAGES / f"{name}.txt"
    found = "\n\n".join(
        "\n".join([snippet, *(line.replace("export-gate.yml:", "=> ", 1) for line in project.mistakes(text))])
        for snippet, text in samples(name)
    )
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(found + "\n", encoding="utf-8")
    assert found + "\n" == path.read_text(encoding="utf-8")


def test_all_mistakes_are_listed_at_once_by_place(project: Project):
    """One run reports everything that is wrong, from the top of the file to its end."""
    text = """\
version: 2
defaults: {timeout: soon}
models:
  m:
    factory: make
    dims: {n: {max: 8}, side: {max: 4}}
    inputs:
      x: {dtype: float33, shape: [m, 3]}
    controls: {sizes: {n: [9]}}
    tolerances: {}
"""
    keys = "factory, kwargs, env, train-mode, dims, inputs, outputs, controls, tolerance, targets, timeout"
    keys += ", cache, paths, waivers"
    dtypes = "float64, float32, float16, bfloat16, int64, int32, int16, int8, uint8, bool, complex64, complex128"
    unused = "expected a dim that an input's shape names"
    assert project.mistakes(text) == [
        "export-gate.yml:1:10: version: expected 1, the only version that this export-gate reads, got 2",
        (
            "export-gate.yml:2:21: defaults.timeout: expected a time above 0 and up to 168h such as 90s, 10m or 1h30m, "
            "or a number of seconds, got 'soon'"
        ),
        "export-gate.yml:5:14: models.m.factory: expected module:attribute or path/to/file.py:attribute, got 'make'",
        f"export-gate.yml:6:12: models.m.dims.n: {unused}, got 'n'; use it in a shape or remove it",
        f"export-gate.yml:6:25: models.m.dims.side: {unused}, got 'side'; use it in a shape or remove it",
        (
            f"export-gate.yml:8:18: models.m.inputs.x.dtype: expected one of {dtypes}, got 'float33'; "
            "did you mean 'float32'?"
        ),
        (
            "export-gate.yml:8:35: models.m.inputs.x.shape[0]: expected a dim that the model declares (n, side), "
            "got 'm'; declare it under dims"
        ),
        "export-gate.yml:9:28: models.m.controls.sizes.n[0]: expected a size within n's min and max, 1 to 8, got 9",
        (
            f"export-gate.yml:10:5: models.m.tolerances: expected one of the keys {keys}, got 'tolerances'; "
            "did you mean 'tolerance'?"
        ),
    ]


@pytest.mark.parametrize(
    ("written", "home"),
    [
        ("mask: right-padded", "draws: [right-padded]"),
        ("values: halves", "draws: [halves]"),
        ("draws: keep", "mask: keep"),
    ],
)
def test_a_word_of_another_key_is_sent_there(written: str, home: str, project: Project):
    """A word that a neighbouring key takes is no misspelling of this key's words."""
    text = f"""\
version: 1
models:
  m:
    factory: model:make
    inputs: {{x: {{dtype: int64, shape: [2], range: [0, 1], {written}}}}}
"""
    assert project.mistakes(text)[-1].endswith(f"did you mean `{home}`?")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "export-gate.yml:1:1: expected a config with version and models, got an empty file"),
        (
            b"\xef\xbb\xbfversion: 1",
            "export-gate.yml:1:1: expected UTF-8 text, got a byte order mark; save the file as UTF-8 without BOM",
        ),
        ("version: 1".encode("utf-16"), "export-gate.yml:1:1: expected UTF-8 text, got UTF-16; save the file as UTF-8"),
        (b"a: 1\nb: \xe9", "export-gate.yml:2:4: expected UTF-8 text, got byte 0xe9; save the file as UTF-8"),
        (
            b"\x7fELF\x02\x01\x00",
            "export-gate.yml:1:1: expected text, got control character U+007F; is this a binary file?",
        ),
        (
            b"#" * (1 << 20) + b"#",
            "export-gate.yml: expected a config of at most 1 MiB, got more; keep data in separate files",
        ),
    ],
    ids=["empty", "bom", "utf-16", "latin-1", "binary", "too-large"],
)
def test_a_file_that_is_no_text_is_one_sentence(content: bytes, message: str, project: Project):
    """A file that cannot hold a config at all is refused in one sentence."""
    assert project.mistakes(content) == [message]


def test_a_missing_file_and_a_folder_are_one_sentence_each(project: Project):
    """A wrong path is named as such."""
    with pytest.raises(UserError) as missing:
        load_config(Path("nowhere/export-gate.yml"))
    with pytest.raises(UserError) as folder:
        load_config(Path("data"))
    with pytest.raises(UserError) as nul:
        load_config(Path("a\0b"))
    assert str(missing.value) == (
        "nowhere/export-gate.yml: expected a config file, but it does not exist; create it or name another one"
    )
    assert str(folder.value) == "data: expected a file, got a folder; name the export-gate.yml in it"
    assert "expected a file that can be read, got: embedded null byte" in str(nul.value)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="named pipes are a POSIX matter")
def test_a_pipe_is_refused_instead_of_waited_for(project: Project):
    """A config that is not a regular file cannot make the gate hang."""
    os.mkfifo("pipe.yml")
    with pytest.raises(UserError) as caught:
        load_config(Path("pipe.yml"))
    message = "pipe.yml: expected a file, got a device, pipe or socket; save the config as a file"
    assert str(caught.value) == message


def test_a_key_cannot_break_a_line_or_colour_a_terminal(project: Project):
    """Control characters from the config are escaped, in keys and in values."""
    lines = project.mistakes('"a\\nb\\e[31m": 1\nversion: 1\nmodels: "\\e[2J"')
    assert lines == [
        (
            "export-gate.yml:1:1: 'a\\nb\\x1b[31m': expected one of the keys version, python, pythonpath, env, "
            "relaxed, fail-on, waivers-max-days, ignore, cache, defaults, models, got 'a\\nb\\x1b[31m'"
        ),
        "export-gate.yml:3:9: models: expected a mapping of at least one model by name, got '\\x1b[2J'",
    ]


def test_a_mistake_in_defaults_is_reported_once(project: Project):
    """A wrong default is one mistake, however many models use it."""
    text = """\
version: 1
defaults: {controls: {limit: 0, sizes: {k: [1]}}}
models:
  a: {factory: "p:m", inputs: {x: {dtype: float32, shape: [2]}}}
  b: {factory: "p:m", inputs: {x: {dtype: float32, shape: [2]}}}
"""
    assert project.mistakes(text) == [
        "export-gate.yml:2:30: defaults.controls.limit: expected a whole number from 1 to 1000, got 0",
        (
            "export-gate.yml:2:41: models.a.controls.sizes.k: expected a dim that the model declares, got 'k'; "
            "declare it under dims"
        ),
    ]


def test_the_path_is_the_one_that_was_asked_for(project: Project):
    """Messages name the file as the caller did, so that editors and annotations can follow them."""
    (project.folder / "data" / "gate.yml").write_text("version: 1", encoding="utf-8")
    with pytest.raises(UserError) as caught:
        load_config(project.folder / "data" / "gate.yml")
    assert str(caught.value).startswith(f"{project.folder}/data/gate.yml:1:1: models: expected")
