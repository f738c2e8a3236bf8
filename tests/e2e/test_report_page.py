"""The HTML report in a real browser, without a network: what it shows, that it asks for nothing, and how it fits."""

from __future__ import annotations

import http.server
import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import report_samples as samples
from PIL import Image

from export_gate.report.build import build_report
from export_gate.report.html import render_html

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
)  # fmt: skip
DARK = "--blink-settings=preferredColorScheme=0"
PATIENCE_S = 120

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(BROWSER is None, reason="no chromium on PATH: the page was not looked at in a browser"),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a run with violations, pictures and a crash."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_html(samples.red(), build_report(samples.red())), encoding="utf-8")
    return path


def browse(address: str, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """One start of the browser with a new profile."""
    command = [str(BROWSER), *FLAGS, f"--user-data-dir={folder / 'profile'}", *options, address]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=True)


@contextmanager
def served(path: Path, policy: str = "") -> Iterator[tuple[str, list[str]]]:
    """(address, the paths that a browser asks for) of a server with this one page, under that security policy."""
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200 if self.path == "/report.html" else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            if policy:
                self.send_header("Content-Security-Policy", policy)
            self.end_headers()
            self.wfile.write(path.read_bytes() if self.path == "/report.html" else b"")

        def log_message(self, *_: object) -> None:
            """Does not log requests."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/report.html", asked
    finally:
        server.shutdown()


@pytest.mark.slow
def test_the_browser_shows_all_of_it(page: Path, tmp_path: Path):
    """Verdict, table, findings and pictures are in the document, and the console has no word of complaint."""
    done = browse(page.as_uri(), tmp_path, "--dump-dom", "--enable-logging=stderr", "--v=0")
    assert "export-gate: 1 of 4 models verified, 3 violations, 1 warning</h1>" in done.stdout
    assert done.stdout.count('role="img"') == page.read_text(encoding="utf-8").count('role="img"') == 7
    assert "4 of 30 control inputs over the tolerance" in done.stdout
    assert re.findall(r".*CONSOLE.*", done.stderr) == []


@pytest.mark.slow
def test_it_is_the_same_without_scripts(page: Path, tmp_path: Path):
    """The page needs no script: where scripts are forbidden, it looks the same pixel by pixel."""
    shots = []
    for name, policy in (("allowed", ""), ("forbidden", "sandbox")):  # `sandbox` alone switches scripts off
        picture = tmp_path / f"{name}.png"
        with served(page, policy) as (address, _):
            browse(address, tmp_path / name, "--window-size=1280,4000", f"--screenshot={picture}")
        with Image.open(picture) as image:
            shots.append(image.convert("RGB").tobytes())
    assert shots[0] == shots[1]
    assert len(set(shots[0])) > 50  # more than an empty sheet


@pytest.mark.slow
def test_it_asks_for_nothing(page: Path, tmp_path: Path):
    """The browser fetches the page and nothing that the page would name."""
    with served(page) as (address, asked):
        browse(address, tmp_path, "--dump-dom")
    assert set(asked) - {"/favicon.ico"} == {"/report.html"}  # the icon is the browser's own idea


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_the_window(page: Path, tmp_path: Path, width: int):
    """On a phone and on a desktop nothing overflows: the right margin keeps the colour of the paper."""
    picture = tmp_path / "page.png"
    browse(page.as_uri(), tmp_path, f"--window-size={width},3000", f"--screenshot={picture}")
    with Image.open(picture) as image:
        pixels = image.convert("RGB")
        assert pixels.width == width
        edge = {pixels.getpixel((width - 3, y)) for y in range(0, pixels.height, 3)}
    assert edge == {(255, 255, 255)}


@pytest.mark.slow
def test_it_is_dark_where_that_is_preferred(page: Path, tmp_path: Path):
    """A user who prefers a dark screen gets one, with light text on it."""
    picture = tmp_path / "page.png"
    browse(page.as_uri(), tmp_path, "--window-size=1280,900", DARK, f"--screenshot={picture}")
    with Image.open(picture) as image:
        pixels = image.convert("L")
        darkness = [pixels.getpixel((x, y)) for x in range(0, 1280, 5) for y in range(0, 900, 5)]
    assert sorted(darkness)[len(darkness) // 2] < 64
    assert max(darkness) > 200
