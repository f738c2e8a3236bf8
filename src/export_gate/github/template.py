"""Render a project's own template in a separate process without the token: it may loop, use up memory or fail."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from export_gate.report.escape import one_line
from export_gate.report.record import Report
from export_gate.report.render import render
from export_gate.wall.codec import decode, encode

LARGEST_TEMPLATE_BYTES = 256 * 1024
TIMEOUT_S = 20.0
MOST_MEMORY_BYTES = 1024 * 1024 * 1024
PASSED_ON = ("PATH", "SYSTEMROOT", "LANG", "LC_ALL", "TMPDIR", "TEMP", "TMP")
"""Variables that Python needs to start; the token is not one of them."""


class TemplateError(Exception):
    """The template produced no text; the message gives the reason, without the template's name."""


def render_with(template: Path, report: Report, budget: int, timeout_s: float = TIMEOUT_S) -> str:
    """The comment as `template` lays it out, at most `budget` characters.

    Raises:
        TemplateError: it cannot be read, fails, or takes too long.
    """
    order = json.dumps({"report": encode(report), "budget": budget, "source": _read(template)})
    environment = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    # The action runs the gate from a checkout that only sys.path knows. An empty entry is the current folder.
    environment |= {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUTF8": "1"}
    try:
        with tempfile.TemporaryDirectory(prefix="export-gate-") as empty:
            ended = subprocess.run(
                # `-m` puts the working folder first on sys.path, so it is an empty one.
                [sys.executable, "-m", "export_gate.github.template"],
                cwd=empty,
                env=environment,
                input=order,
                capture_output=True,
                text=True,
                encoding="utf-8",
                timeout=timeout_s,
                check=False,
            )
    except subprocess.TimeoutExpired as error:
        raise TemplateError(f"it took more than {timeout_s:g} s") from error
    except OSError as error:
        raise TemplateError(f"it could not be run: {error.strerror or error}") from error
    if ended.returncode != 0:
        lines = ended.stderr.strip().splitlines()
        raise TemplateError(one_line(lines[-1])[:300] if lines else f"it ended with {ended.returncode}")
    return ended.stdout


def _read(template: Path) -> str:
    try:
        if template.stat().st_size > LARGEST_TEMPLATE_BYTES:
            raise TemplateError(f"it has more than {LARGEST_TEMPLATE_BYTES} bytes")
        return template.read_text(encoding="utf-8")
    except OSError as error:
        raise TemplateError(f"it cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise TemplateError("it is not UTF-8") from error


def _bound_memory() -> None:
    with suppress(ImportError, ValueError, OSError):  # Windows does not have this limit
        import resource  # noqa: PLC0415

        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY_BYTES, MOST_MEMORY_BYTES))


def main() -> None:
    """Render the request on standard input, or print the reason in one line."""
    order = json.load(sys.stdin)
    report = decode(Report, order["report"])
    _bound_memory()
    try:
        text = render(report, "comment", budget=order["budget"], source=order["source"])
    except BaseException as error:  # noqa: BLE001 - a template can raise anything
        line = getattr(error, "lineno", None)
        place = f"line {line}: " if line else ""
        sys.exit(f"{place}{type(error).__name__}: {one_line(error)}".removesuffix(": "))
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
