"""A run of the gate to the pictures in README.md: its comment as GitHub shows it, and its HTML page.

Run by `make images`. The comment's Markdown is rendered by markdown-it with a style of our own that resembles GitHub's.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from markdown_it import MarkdownIt
from PIL import Image, ImageChops

HERE = Path(__file__).parent
GATE = Path(sys.executable).with_name("export-gate")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
)  # fmt: skip
WIDTH = 860
TALLEST = 1335
"""Of a page, before it is cropped to what is on it."""
LARGEST_BYTES = 300_000
"""Of both pictures together."""
COLOURS = 128
SIGN = (
    '<svg width="1.25em" height="1.25em" viewBox="0 0 20 20" fill="none" stroke-width="3" '
    'style="vertical-align: -.25em">%s</svg>'
)
SIGNS = {
    "✅": '<rect width="20" height="20" rx="4" fill="#3fb950"/><path d="m5 10 4 4 7-8" stroke="#fff"/>',
    "❌": '<path d="m3 3 14 14m0-14-14 14" stroke="#e5484d"/>',
    "📝": '<path d="M4 2h9l4 4v12H4zM7 9h7M7 13h7" stroke="#8b949e" stroke-width="1.5"/>',
    "⚠️": '<path d="m10 2 9 16H1z" fill="#f2b134"/><path d="M10 7v5m0 2v2" stroke="#1f2328" stroke-width="2"/>',
}
"""In the place of emoji, for which a machine without a screen has no font."""
COMMENT = """<!doctype html><meta charset="utf-8"><style>
body { margin: 0; padding: 16px; background: #fff; color: #1f2328;
       font: 14px/1.5 -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif, "Noto Color Emoji"; }
.box { border: 1px solid #d1d9e0; border-radius: 6px; }
.who { background: #f6f8fa; border-bottom: 1px solid #d1d9e0; border-radius: 6px 6px 0 0; padding: 8px 16px;
       color: #59636e; }
.who b { color: #1f2328; } .who span { border: 1px solid #d1d9e0; border-radius: 2em; padding: 0 7px; font-size: 12px; }
.body { padding: 16px; overflow-wrap: anywhere; }
h2 { margin: 0 0 16px; padding-bottom: .3em; font-size: 1.5em; line-height: 1.25; border-bottom: 1px solid #d1d9e0b3; }
h3 { margin: 24px 0 16px; font-size: 1.25em; line-height: 1.25; }
p, ul, table, details, pre { margin: 0 0 16px; } ul { padding-left: 2em; }
table { border-collapse: collapse; } th, td { border: 1px solid #d1d9e0; padding: 6px 13px; }
tr:nth-child(2n) { background: #f6f8fa; }
code { background: #818b981f; border-radius: 6px; padding: .2em .4em;
       font: 85%% ui-monospace, "Liberation Mono", monospace; }
pre { background: #f6f8fa; border-radius: 6px; padding: 16px; overflow: auto; }
pre code { background: none; padding: 0; }
sub { font-size: 75%%; color: #59636e; }
</style><div class="box"><div class="who"><b>github-actions</b> <span>bot</span> commented now</div>
<div class="body">%s</div></div>"""


def main() -> None:
    """Run the gate on the project beside this file and write both pictures."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        sys.exit("no chromium on PATH, which draws the pictures")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        gate("run", "--quiet", "--no-cache", "--report-dir", str(folder))
        text = gate("report", str(folder / "results.json"), "--format", "comment")
        text = re.sub(
            r"; [^;]*; [^;]*</sub>$", "</sub>", text, flags=re.MULTILINE
        )  # the platform and the interpreter's path
        comment = folder / "comment.html"
        markdown = MarkdownIt("commonmark", {"html": True}).enable("table")
        comment.write_text(COMMENT % drawn(markdown.render(text)), encoding="utf-8")
        for page, picture in ((comment, "comment.png"), (folder / "report.html", "page.png")):
            draw(browser, page, HERE / picture)
    sizes = {path.name: path.stat().st_size for path in HERE.glob("*.png")}
    if sum(sizes.values()) > LARGEST_BYTES:
        sys.exit(f"the pictures are too large: {sizes}, expected at most {LARGEST_BYTES} bytes together")


def drawn(html: str) -> str:
    """The HTML with its emoji as drawings."""
    for sign, shape in SIGNS.items():
        html = html.replace(sign, SIGN % shape)
    return html


def gate(*arguments: str) -> str:
    """What the command prints; it must end with a verdict, which here is a red one."""
    done = subprocess.run([GATE, *arguments], cwd=HERE / "project", capture_output=True, text=True, check=False)
    if done.returncode != 1:
        sys.exit(f"export-gate {arguments[0]} ended with {done.returncode}, expected 1:\n{done.stdout}{done.stderr}")
    return done.stdout


def draw(browser: str, page: Path, picture: Path) -> None:
    """The page as a picture without its empty bottom, in few colours."""
    options = [f"--user-data-dir={page.parent / 'profile'}", f"--window-size={WIDTH},{TALLEST}"]
    subprocess.run(
        [browser, *FLAGS, *options, f"--screenshot={picture}", page.as_uri()],
        check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    with Image.open(picture) as image:
        pixels = image.convert("RGB")
    paper = Image.new("RGB", pixels.size, pixels.getpixel((0, pixels.height - 1)))
    box = ImageChops.difference(pixels, paper).getbbox()
    bottom = pixels.height if box is None else min(pixels.height, box[3] + 16)
    pixels.crop((0, 0, WIDTH, bottom)).quantize(COLOURS).save(picture, optimize=True)


if __name__ == "__main__":
    main()
