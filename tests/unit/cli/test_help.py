"""What `--help` says, and what it costs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from export_gate.cli.main import COMMANDS, cli

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "help.txt"
SLOW_TO_IMPORT = (
    "jinja2",
    "rich",
    "urllib3",
    "torch",
    "numpy",
    "onnx",
    "export_gate.report.render",
    "export_gate.rules",
)


def texts() -> Iterator[str]:
    """Each command with its description, and each of its options with its help."""
    for command in (cli, *COMMANDS):
        yield f"{command.name}: {' '.join(str(command.help).split())}"
        for option in command.params:
            if isinstance(option, click.Option):
                yield f"    {', '.join((*option.opts, *option.secondary_opts))}: {option.help}"
        yield ""


def test_help_says_what_each_command_and_option_does():
    """Every description and the help of every option, as users read them."""
    shown = "\n".join(texts())
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.write_text(shown, encoding="utf-8")
    assert shown == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: str(command.name))
def test_help_is_a_sentence_in_one_form(command: click.Command):
    """Each option says what it does: an imperative sentence with a capital letter and a full stop."""
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.help, option.name
            first = option.help.split()[0]
            assert first.isalpha(), option.help
            assert first.istitle(), option.help
            assert option.help.endswith("."), option.help


def test_each_command_is_a_file_of_its_name():
    """`export-gate kit` is in cli/kit.py, and so on; every other file is shared by several commands."""
    folder = ROOT / "src" / "export_gate" / "cli"
    shared = {"__init__", "idle", "main", "options", "progress", "remaining", "start", "terminal"}
    assert {path.stem for path in folder.glob("*.py")} - shared == set(cli.commands)
    for name, command in cli.commands.items():
        assert command.callback is not None
        assert command.callback.__module__ == f"export_gate.cli.{name}"


def test_list_of_commands_fits_a_terminal():
    """No summary is cut off in a window of 80 columns."""
    shown = CliRunner().invoke(cli, ["--help"], terminal_width=80).output
    listed = shown.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in listed] == [command.name for command in COMMANDS]
    assert [line for line in listed if line.endswith("...")] == []


@pytest.mark.parametrize("arguments", [["--help"], ["validate", "-c", str(ROOT / "examples" / "export-gate.yml")]])
def test_quick_commands_import_nothing_slow(arguments: list[str]):
    """`--help` and `validate` answer at once: they import no renderer, no client, no report and no rule."""
    code = (
        "import sys; from export_gate.cli.main import main\n"
        f"sys.argv = ['export-gate', *{arguments!r}]\n"
        "try: main()\n"
        "except SystemExit as ended: assert not ended.code, ended.code\n"
        f"print([name for name in {SLOW_TO_IMPORT!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "[]\n")


IGNORING = """
version: 1
ignore: ["*.md"]
models: {m: {factory: "net:make", inputs: {x: {dtype: float32, shape: [2]}}}}
"""


@pytest.mark.slow
def test_a_push_that_needs_no_verdict_is_answered_at_once(tmp_path: Path):
    """The hook imports neither a renderer nor the report before it says that nothing relevant changed."""

    def git(*arguments: str) -> str:
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b.example", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.strip()

    git("init", "--quiet")
    (tmp_path / "export-gate.yml").write_text(IGNORING)
    git("add", ".")
    git("commit", "--quiet", "--message=config")
    (tmp_path / "notes.md").touch()
    git("add", ".")
    git("commit", "--quiet", "--message=notes")
    pushed = {"PRE_COMMIT_FROM_REF": git("rev-parse", "HEAD~1"), "PRE_COMMIT_TO_REF": git("rev-parse", "HEAD")}
    code = (
        "import sys; from export_gate.cli.main import main; sys.argv = ['export-gate', 'run']; main()\n"
        f"print([name for name in {(*SLOW_TO_IMPORT, 'export_gate.pipeline')!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path, env={**os.environ, **pushed}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    said = "export-gate: nothing to verify: the push changes only files of `ignore`: notes.md\n"
    assert done.stdout == said + "[]\n"


def test_a_hook_with_nothing_to_do_imports_next_to_nothing():
    """It takes a few times as long as starting Python: neither a library nor what only a run needs is imported."""
    slow = (*SLOW_TO_IMPORT, "click", "yaml", "shutil", "export_gate.config", "export_gate.pipeline")
    code = f"import sys, export_gate.cli.idle; print([name for name in {slow!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
