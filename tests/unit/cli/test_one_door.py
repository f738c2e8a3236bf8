"""All text leaves the process through one module, which makes it inert."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import export_gate

PACKAGE = Path(export_gate.__file__).parent
DOOR = "cli/terminal.py"
EXEMPT = {
    "github/template.py": "a process of its own, whose output its parent reads",
    "cli/progress.py": "the live display on a terminal, which a CI runner is not; its texts are made printable",
}
"""Other modules that write; so does all of `worker/`, whose output the driver captures."""
PRINTING = {"print", "echo", "secho", "print_exc", "print_exception", "print_last", "print_stack", "style", "Console"}
PRINTING |= {"basicConfig", "getLogger", "StreamHandler", "exec_command"}
STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}


def ways_out(source: str) -> Iterator[str]:
    """Whatever in a module could print: calls, and uses of the standard streams other than asking what they are."""
    tree = ast.parse(source)
    asked = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr == "isatty"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            first = node.args[0] if node.args else None
            is_exit_with_text = name == "exit" and isinstance(first, (ast.JoinedStr, ast.Constant, ast.BinOp))
            if name in PRINTING or (name == "write" and isinstance(first, ast.Constant) and first.value in (1, 2)):
                yield f"line {node.lineno}: {name}(...)"
            if is_exit_with_text and not (isinstance(first, ast.Constant) and isinstance(first.value, int)):
                yield f"line {node.lineno}: exit with a text"
        is_stream = isinstance(node, ast.Attribute) and node.attr in STREAMS and ast.unparse(node.value) == "sys"
        if is_stream and id(node) not in asked:
            yield f"line {node.lineno}: {ast.unparse(node)}"


def modules() -> list[str]:
    """The driver's modules."""
    found = [path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")]
    return sorted(name for name in found if not name.startswith("worker/") and name not in {DOOR, *EXEMPT})


@pytest.mark.slow
@pytest.mark.parametrize("module", modules())
def test_no_other_module_prints(module: str):
    """A new command cannot forget that printed text may come from a stranger."""
    assert list(ways_out((PACKAGE / module).read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "line",
    [
        "print(x)",
        "click.echo(x)",
        "sys.stderr.write(x)",
        "traceback.print_exc()",
        "os.write(1, x)",
        "sys.exit(f'{x}')",
        "console = rich.console.Console()",
        "file = sys.stdout",
        "logging.getLogger(x).error(x)",
    ],
)
def test_ways_to_print_are_known(line: str):
    """The check above finds each way to print."""
    assert len(list(ways_out(line))) == 1


def test_what_is_exempt_prints():
    """An exemption that is no longer needed must be removed from the list."""
    for module in (DOOR, *EXEMPT):
        assert list(ways_out((PACKAGE / module).read_text(encoding="utf-8")))
