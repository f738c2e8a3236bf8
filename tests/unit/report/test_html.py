"""The page: whole in itself, the same without scripts, and no string of a stranger's becomes markup."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
import report_samples as samples
from goldens import golden
from hostile_samples import hostile
from hypothesis import given, settings
from hypothesis import strategies as st
from jinja2 import UndefinedError
from jinja2.sandbox import SecurityError

from export_gate.report import page as page_module
from export_gate.report.build import build_report
from export_gate.report.escape import visible
from export_gate.report.html import environment, render_html
from export_gate.report.results import Results

VOID = {"meta", "path", "rect", "link", "br"}


class Page(HTMLParser):
    """Tags, attributes and text of a page, with every tag closed where it must be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.texts: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One that is to be closed, unless it never is."""
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID or (tag == "path" and not self.get_starttag_text().endswith("/>")):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """One that closes itself."""
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        """The last one that is open."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Between tags."""
        self.texts.append(data)

    @property
    def layout(self) -> list[str]:
        """Tags but those of code, which our sentences lose where a name has backticks."""
        return [tag for tag in self.tags if tag != "code"]

    @property
    def text(self) -> str:
        """All text."""
        return "".join(self.texts)


def rendered(results: Results) -> str:
    """The page of a run."""
    return render_html(results, build_report(results))


@pytest.mark.parametrize("run", ["red", "broken"])
def test_golden(run: str):
    """The page reads as its golden file."""
    text = rendered(samples.RUNS[run]())
    assert text == golden(f"{run}.html", text)


@pytest.mark.slow
@pytest.mark.parametrize("run", samples.RUNS)
def test_every_tag_is_closed(run: str):
    """The page is well-formed, and its headline is its title."""
    page = Page(rendered(samples.RUNS[run]()))
    assert page.open == []
    assert build_report(samples.RUNS[run]()).headline in page.text


@pytest.mark.slow
@pytest.mark.parametrize("run", samples.RUNS)
def test_nothing_is_fetched_and_nothing_runs(run: str):
    """The page has no script, no handler and only addresses inside itself, and tells the browser so."""
    page = Page(rendered(samples.RUNS[run]()))
    assert not {"script", "link", "img", "iframe", "object", "form", "a", "base"} & set(page.tags)
    assert not [name for _, name, _ in page.attributes if name.startswith("on") or name in ("src", "href", "style")]
    assert re.findall(r"url\(([^)]*)\)", page.text) == ["#hatched"]
    assert "default-src 'none'; style-src 'unsafe-inline'" in rendered(samples.RUNS[run]())


def test_pictures_have_words():
    """Every picture has a title and a description of its own, and the numbers stand in a table beside it."""
    page = Page(rendered(samples.red()))
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    labels = [value for tag, name, value in page.attributes if (tag, name) == ("svg", "aria-labelledby")]
    assert len(labels) == sum(value == "img" for tag, name, value in page.attributes if (tag, name) == ("svg", "role"))
    assert {part for label in labels for part in label.split()} <= set(ids)
    assert "onnx: 4 of 30 control inputs over the tolerance; the worst is 3.1e-03 of 3.4e-05 allowed at" in page.text
    assert "✘ 3.1e-03 of 3.4e-05" in page.text


def test_violations_differ_in_shape():
    """A violation differs from a pass by its mark and its name, not by colour alone."""
    text = rendered(samples.red())
    assert '<path class="over"' in text
    assert 'class="worst"' in text
    assert '<path class="hatch"' in text
    assert re.search(r"<span aria-hidden=\"true\">✘</span> <span class=\"unseen\">failed</span>", text)


def test_models_without_a_difference_have_no_pictures():
    """If nothing differs, the page says so in a sentence."""
    text = rendered(samples.red())
    assert (
        "These models have no difference at any control input, so there is nothing to draw: <code>affine-map</code>."
        in text
    )


def test_notes_are_folded():
    """What needs no action is folded, so that the pictures come first."""
    controls = samples.controls(undeclared_range=("x",))
    seen = samples.model("m", samples.all_fine(), controls=controls)
    run = samples.RunObservation(environment=samples.ENVIRONMENT, models=(seen,))
    assert "<details><summary>1 note</summary>" in rendered(samples.results((samples.contract("m"),), run))


def test_only_the_worst_models_are_drawn(monkeypatch: pytest.MonkeyPatch):
    """A page of hundreds of models still opens: it has pictures of the worst ones, and mentions the others."""
    monkeypatch.setattr(page_module, "MOST_PICTURED", 3)
    text = rendered(samples.crowd(5))
    assert "Omitted: pictures of the 7 models with the best results." in text
    assert re.findall(r'<section class="model" aria-label="([^"]*)">', text) == ["model-002", "model-003", "model-004"]


@pytest.mark.slow
@pytest.mark.parametrize("run", samples.RUNS)
def test_hostile_strings_stay_text(run: str):
    """Whatever names, messages and traces are, the page has no other tags and nothing that cannot be seen."""
    text = rendered(hostile(samples.RUNS[run]()))
    assert set(Page(text).tags) <= set(Page(rendered(samples.RUNS[run]())).tags)
    assert Page(text).open == []
    assert "\u202e" not in text
    assert "\x1b" not in text


def _named(name: str) -> Results:
    wrong = replace(samples.red().run.models[0], model=name)
    run = samples.RunObservation(environment=samples.ENVIRONMENT, models=(wrong,))
    return samples.results((samples.contract(name),), run)


@pytest.mark.slow
@settings(max_examples=25)
@given(name=st.text(st.characters(), min_size=1, max_size=40))
def test_any_name_comes_back(name: str):
    """A name of any characters is shown as text, in its element and in attributes alike."""
    page = Page(rendered(_named(name)))
    assert page.layout == Page(rendered(_named("m"))).layout
    label = next(value for tag, key, value in page.attributes if (tag, key) == ("section", "aria-label"))
    assert label == visible(name)
    assert visible(name) in page.text


def test_an_unknown_name_in_the_template_is_an_error():
    """A misspelt field fails the render instead of printing nothing."""
    with pytest.raises(UndefinedError):
        environment().from_string("{{ nothing }}").render()


def test_templates_cannot_reach_python():
    """The environment is sandboxed: no way from a value to the interpreter."""
    with pytest.raises(SecurityError):
        environment().from_string("{{ x.__class__ }}").render(x="s")


def test_lines_to_paste_keep_their_breaks_on_the_page():
    """Python means something else on one line."""
    assert "<pre>for a in x:\n    out = a</pre>" in rendered(samples.with_recipe())
