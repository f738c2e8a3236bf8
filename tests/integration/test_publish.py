"""`export-gate publish` as a step runs it: a process, the runner's environment and files, a server that is GitHub."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import report_samples as samples
from github_server import DENIED, TOKEN, Fault, GitHubServer, pull
from harness.gate import gate, real_gate

from export_gate.github.marker import parse_marker
from export_gate.report.results import Results, write_results

pytestmark = pytest.mark.slow

HEAD, MERGE = "a" * 40, "b" * 40
SUMMARY_LIMIT = 1024 * 1024
HAS_THE_RESULT = "The job summary, the annotations and results.json have the result"


@pytest.fixture
def github() -> Iterator[GitHubServer]:
    """A repository."""
    with GitHubServer() as server:
        yield server


def _in_a_process(arguments: list[str], folder: Path, environ: dict[str, str]) -> tuple[int, str, str]:
    ended = real_gate(folder, *arguments, environment=environ)
    return ended.returncode, ended.stdout, ended.stderr


def _in_this_process(arguments: list[str], folder: Path, environ: dict[str, str]) -> tuple[int, str, str]:
    ended = gate(folder, *arguments, environment=environ)
    return ended.returncode, ended.stdout, ended.stderr


@dataclass(kw_only=True)
class Step:
    """A step of a job in acme/shop, under a pull request of its own."""

    folder: Path
    github: GitHubServer
    event: str = "pull_request"
    payload: Any = None
    environ: dict[str, str] = field(default_factory=dict)
    apart: bool = False
    """In a process of its own, as the runner does it; otherwise in this one, which is the same and takes no start."""
    status: int = -1
    log: list[str] = field(default_factory=list)
    errors: str = ""

    def publish(self, results: Results | None, *options: str, run: int = 77, **environ: str) -> Step:
        """Run it over these results."""
        path = self.folder / "results.json"
        if results is not None:
            write_results(results, path)
        event = self.folder / "event.json"
        payload = {"pull_request": pull(repository="acme/shop")} if self.payload is None else self.payload
        event.write_text(payload if isinstance(payload, str) else json.dumps(payload), encoding="utf-8")
        for name in ("summary.md", "output"):
            (self.folder / name).unlink(missing_ok=True)
        given = {
            "PATH": os.environ["PATH"],
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": self.event,
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_REPOSITORY": "acme/shop",
            "GITHUB_API_URL": self.github.url,
            "GITHUB_SERVER_URL": "https://github.example",
            "GITHUB_RUN_ID": str(run),
            "GITHUB_RUN_ATTEMPT": "1",
            "GITHUB_SHA": MERGE,
            "GITHUB_WORKSPACE": str(self.folder),
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md"),
            "GITHUB_OUTPUT": str(self.folder / "output"),
            "GITHUB_TOKEN": TOKEN,
        }
        call = _in_a_process if self.apart else _in_this_process
        self.status, printed, self.errors = call(
            ["publish", *options, str(path)], self.folder, {**given, **self.environ, **environ}
        )
        self.log = printed.splitlines()
        assert TOKEN not in printed + self.errors + self.summary
        return self

    @property
    def summary(self) -> str:
        """The job summary."""
        path = self.folder / "summary.md"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    @property
    def outputs(self) -> dict[str, str]:
        """The outputs, as the runner reads them."""
        text = (self.folder / "output").read_text(encoding="utf-8")
        return {name: value for name, _, value in re.findall(r"(?m)^([\w-]+)<<(\S+)\n(.*)\n\2$", text)}

    @property
    def warnings(self) -> list[str]:
        """What the reporting says of itself."""
        start = "::warning title=export-gate::"
        return [line.removeprefix(start) for line in self.log if line.startswith(start)]


@pytest.fixture
def step(tmp_path: Path, github: GitHubServer) -> Step:
    """A step in a folder of its own."""
    return Step(folder=tmp_path, github=github)


@pytest.mark.slow
def test_a_red_run_is_told_everywhere(step: Step):
    """The comment, the summary, annotations, outputs and the exit code all report the failure."""
    step.apart = True
    artifact = "https://github.example/acme/shop/actions/runs/77/artifacts/5"
    assert step.publish(samples.red(), "--artifact-url", artifact).status == 1
    (body,) = step.github.bodies()
    assert body.splitlines()[1] == "## ❌ export-gate: 1 of 4 models verified, 3 violations, 1 warning"
    assert "at `aaaaaaaaaa`" in body
    assert body.splitlines()[-1] == (
        "<sub>[workflow run](https://github.example/acme/shop/actions/runs/77) · [full report and files]"
        f"({artifact})</sub>"
    )
    assert step.summary.startswith("# ❌ export-gate: 1 of 4 models verified, 3 violations, 1 warning\n")
    assert step.summary.endswith(f"<sub>[full report and files]({artifact})</sub>\n")
    assert [line.split(" ")[0] for line in step.log] == ["::error", "::error", "::error", "::warning", "export-gate:"]
    assert step.log[-1] == (
        "export-gate: #7: comment written, https://github.example/acme/shop/pull/7#issuecomment-1001"
    )
    assert step.outputs == {
        "verdict": "violations",
        "violations": "3",
        "warnings": "1",
        "report-path": str(step.folder / "report.md"),
        "results-path": str(step.folder / "results.json"),
        "artifacts-path": "",
        "comment-url": "https://github.example/acme/shop/pull/7#issuecomment-1001",
    }


@pytest.mark.slow
@pytest.mark.parametrize(("ended", "status", "verdict"), [(0, 0, "verified"), (1, 3, "broken"), (130, 3, "broken")])
def test_green_results_of_a_run_that_failed_are_not_believed(step: Step, ended: int, status: int, verdict: str):
    """If the file is better than the run's exit code, there is no verdict, in the comment and in the exit code."""
    assert step.publish(samples.green(), "--exit-code", str(ended)).status == status
    assert step.outputs["verdict"] == verdict
    (body,) = step.github.bodies()
    assert ("everything is verified, but the run ended with exit code" in body) == bool(ended)


@pytest.mark.slow
def test_red_results_stay_what_they_are(step: Step):
    """The run's own exit code for violations changes nothing about them."""
    assert step.publish(samples.red(), "--exit-code", "1").status == 1
    assert step.outputs["verdict"] == "violations"


@pytest.mark.slow
def test_green_after_red_is_one_green_comment(step: Step):
    """The same comment is resolved; an older run that ends late changes nothing."""
    step.publish(samples.red(), run=77)
    assert step.publish(samples.green(), run=78).status == 0
    (body,) = step.github.bodies()
    assert "## ✅ export-gate: 3 of 3 models verified" in body
    assert step.publish(samples.red(), run=76).status == 1
    assert step.github.bodies() == [body]
    assert step.log[-1] == (
        "export-gate: #7: comment unchanged: a newer run has written it, "
        "https://github.example/acme/shop/pull/7#issuecomment-1001"
    )
    assert step.outputs["comment-url"].endswith("#issuecomment-1001")


@pytest.mark.slow
def test_two_legs_of_one_run_keep_the_worse_verdict(step: Step):
    """The second leg gets advice on how to have a comment of its own."""
    step.publish(samples.red())
    assert step.publish(samples.green()).status == 0
    assert "## ❌" in step.github.bodies()[0]
    assert step.warnings == [
        (
            "two jobs of this run share the comment `export-gate`, which shows the worse verdict: give each a "
            "separate `comment-id`, or join their results with `export-gate merge`"
        )
    ]
    step.publish(samples.green(), "--comment-id", "py3.12")
    assert len(step.github.bodies()) == 2


@pytest.mark.slow
def test_never_asks_nothing_of_github(step: Step):
    """With `never` there is no request, and no token is needed."""
    assert step.publish(samples.red(), "--comment", "never").status == 1
    assert step.github.log == []
    assert step.log[-1] == "export-gate: no comment: --comment never"


@pytest.mark.slow
def test_changes_and_on_failure(step: Step):
    """A comment without news is not written; a failure creates the comment and its end resolves it."""
    step.publish(samples.green(), "--comment", "on-failure", run=1)
    assert step.log[-1] == "export-gate: #7: no comment: verified, and there is no comment to resolve"
    step.publish(samples.red(), "--comment", "on-failure", run=2)
    step.publish(samples.red(), "--comment", "changes", run=3)
    assert step.log[-1].startswith("export-gate: #7: comment unchanged: nothing new to report, https://")
    step.publish(samples.green(), "--comment", "on-failure", run=4)
    (body,) = step.github.bodies()
    marker = parse_marker(body)
    assert marker is not None
    assert (marker.run.id, marker.verdict) == (4, "verified")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("event", "payload"),
    [
        ("push", {"after": "c" * 40}),
        ("merge_group", {"merge_group": {"head_sha": "c" * 40}}),
        ("release", {}),
        ("schedule", {}),
        ("workflow_dispatch", {}),
    ],
)
def test_events_without_a_pull_request(step: Step, event: str, payload: Any):
    """Summary, annotations and outputs are written; there is no comment, no request and no warning."""
    step.event, step.payload = event, payload
    assert step.publish(samples.green()).status == 0
    assert step.github.log == []
    assert step.log == [f"export-gate: no comment: no pull request in a {event} event"]
    assert step.summary.startswith("# ✅ export-gate: 3 of 3 models verified\n")
    assert ("at `cccccccccc`" if event == "merge_group" else "at `bbbbbbbbbb`") in step.summary
    assert step.outputs["verdict"] == "verified"


@pytest.mark.slow
def test_pull_request_target_is_refused(step: Step):
    """The refusal has the reason and the alternative, and an option allows the event."""
    step.event = "pull_request_target"
    assert step.publish(samples.green()).status == 2
    assert step.errors == (
        "pull_request_target: refused, because it runs untrusted code with this repository's token and secrets\n"
        "Trigger on `pull_request`, and use post/ to comment on forks from a `workflow_run`; or, if no code of the "
        "pull request runs here, pass --allow-pull-request-target.\n"
    )
    assert step.github.log == []
    assert step.publish(samples.green(), "--allow-pull-request-target").status == 0
    assert len(step.github.bodies()) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("results", "status"), [(samples.green, 0), (samples.red, 1)])
def test_a_fork_falls_back_and_exits_by_the_verdict(step: Step, results: Any, status: int):
    """A token that cannot write prevents only the comment, and the reader is informed."""
    step.payload = {"pull_request": pull(repository="mallory/shop")}
    step.github.can_write = False
    assert step.publish(results()).status == status
    assert step.warnings == [
        (
            "no comment: the pull request comes from a fork, mallory/shop, so its runs get a token that cannot write "
            f"(403 {DENIED['message']}): use post/ to comment from a `workflow_run`. {HAS_THE_RESULT}"
        )
    ]
    assert step.summary.count("> [!WARNING]\n> no comment: the pull request comes from a fork") == 1
    assert step.outputs["verdict"] == results().verdict
    assert step.outputs["comment-url"] == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (
            Fault(status=403, message=DENIED["message"]),
            ("the token may not write to #7 (403 Resource not accessible by integration): give the job `permissions: "
            "pull-requests: write`"),
        ),
        (
            Fault(status=401, message="Bad credentials"),
            "GitHub did not accept the token (401 Bad credentials): pass `github-token: ${{ github.token }}`",
        ),
        (
            Fault(status=404, message="Not Found"),
            "the token cannot see #7 (404 Not Found): give the job `permissions: pull-requests: write`",
        ),
        (
            Fault(status=410, message="Issues are disabled for this repo"),
            ("comments are switched off in acme/shop (410 Issues are disabled for this repo): enable issues in its "
            "settings"),
        ),
        (
            Fault(status=403, message="Unable to create comment because issue is locked."),
            "the conversation of #7 is locked (403 Unable to create comment because issue is locked.): unlock it",
        ),
        (
            Fault(status=422, message="Validation Failed"),
            "GitHub refused the text (422 Validation Failed): please report this with the job summary",
        ),
        (
            Fault(status=429, headers={"Retry-After": "3600"}, message="slow down"),
            "GitHub's rate limit did not end in time (429 slow down); the gate waited 170 s",
        ),
    ],
)  # fmt: skip
def test_a_refusal_is_told_and_changes_nothing(step: Step, fault: Fault, why: str):
    """The exit code stays the verdict's; log and summary show the reason."""
    step.github.faults.append(replace(fault, method="POST", times=9))
    assert step.publish(samples.green()).status == 0
    assert step.warnings == [f"no comment: {why}. {HAS_THE_RESULT}"]
    assert "> [!WARNING]\n> no comment: " in step.summary
    assert step.publish(samples.red(), run=78).status == 1


@pytest.mark.slow
def test_github_down_does_not_change_the_verdict(step: Step):
    """If nobody answers, the check ends after a few seconds with the same exit code."""
    step.apart, step.environ = True, {"GITHUB_API_URL": "http://127.0.0.1:9"}
    assert step.publish(samples.red()).status == 1
    (warning,) = step.warnings
    assert warning.startswith("no comment: 127.0.0.1:9 could not be used: ")
    assert "Connection refused" in warning
    assert step.summary.startswith("# ❌")


@pytest.mark.slow
def test_an_outage_that_lasts_does_not_change_the_verdict(step: Step):
    """If every request gets a 502, the check ends with the same exit code."""
    step.github.faults.append(Fault(status=502, times=99, message="Bad Gateway"))
    assert step.publish(samples.green()).status == 0
    assert step.warnings == [
        f"no comment: GitHub reports a server error (502 Bad Gateway): run the job again later. {HAS_THE_RESULT}"
    ]
    assert len(step.github.log) == 4


@pytest.mark.slow
def test_a_closed_pull_request(step: Step):
    """A closed pull request gets no comment, and the summary says so."""
    step.payload = {"pull_request": {**pull(repository="acme/shop"), "state": "closed"}}
    assert step.publish(samples.green()).status == 0
    assert step.warnings == ["no comment: #7 is closed"]
    assert step.github.log == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("payload", "problem"),
    [
        ("{", "the event file is not JSON"),
        ({}, "the event file has no usable `pull_request`: its number and head commit are unknown"),
    ],
)
def test_a_broken_event_file_leaves_the_summary(step: Step, payload: Any, problem: str):
    """The verdict stands, but there is no place for a comment."""
    step.payload = payload
    assert step.publish(samples.red()).status == 1
    assert step.warnings == [problem]
    assert step.summary.startswith("# ❌")
    assert problem.split("`", maxsplit=1)[0] in step.summary
    assert step.log[-2] == "export-gate: no comment: the pull request is unknown"


def test_without_an_event_file(step: Step):
    """A missing event file has the same effect as a broken one."""
    assert step.publish(samples.green(), GITHUB_EVENT_PATH=str(step.folder / "gone")).status == 0
    assert step.warnings == ["the event file cannot be read: No such file or directory"]


@pytest.mark.parametrize("token", ["", " \n", "ghs_a\nX-Injected: 1", "ghs_é"])
def test_without_a_token(step: Step, token: str):
    """The warning says which step gets it; what cannot be a token is neither sent nor shown."""
    assert step.publish(samples.green(), GITHUB_TOKEN=token).status == 0
    assert step.github.log == []
    assert step.warnings == [
        "no comment: GITHUB_TOKEN is not set or is not a token; pass it only to the step that reports"
    ]


@pytest.mark.slow
def test_a_token_with_a_line_end_is_the_token(step: Step):
    """Secrets are often pasted with a line end."""
    assert step.publish(samples.green(), GITHUB_TOKEN=f"{TOKEN}\n").status == 0
    assert len(step.github.bodies()) == 1


@pytest.mark.slow
def test_outside_of_github(step: Step):
    """On a laptop it prints what it has, and the verdict sets the exit code."""
    blank = dict.fromkeys(("GITHUB_EVENT_NAME", "GITHUB_REPOSITORY", "GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT"), "")
    assert step.publish(samples.green(), **blank).status == 0
    assert step.log == ["export-gate: no comment: no pull request in this environment"]


@pytest.mark.slow
def test_files_that_cannot_be_written(step: Step):
    """A summary and outputs in a folder that does not exist are warnings."""
    gone = str(step.folder / "no" / "file")
    assert step.publish(samples.green(), GITHUB_STEP_SUMMARY=gone, GITHUB_OUTPUT=gone).status == 0
    assert step.warnings == [
        "the job summary cannot be written: No such file or directory",
        "the outputs cannot be written: No such file or directory",
    ]
    assert len(step.github.bodies()) == 1


@pytest.mark.slow
def test_no_results_are_no_verdict(step: Step):
    """A run that ended before it wrote results leaves no green comment behind."""
    step.publish(samples.green(), run=77)
    (step.folder / "results.json").unlink()
    assert step.publish(None, run=78).status == 3
    (body,) = step.github.bodies()
    assert body.splitlines()[1] == "## 💥 export-gate: no verdict, no results"
    assert "There are no results: " in body
    assert step.log[0] == (
        "::error title=the run%3A could not be checked::There are no results: .../results.json: file not "
        "found; `export-gate run` writes it%0Anext: The log of the step that ran the gate shows the reason: a mistake "
        "in the config, or a run that was stopped.%0Arun: export-gate run"
    )
    assert step.outputs["verdict"] == "broken"
    assert (step.outputs["report-path"], step.outputs["results-path"]) == ("", "")


@pytest.mark.slow
def test_forged_findings_are_judged_again(step: Step):
    """`verified` in the file is not trusted: the observations are judged again."""
    assert step.publish(replace(samples.red(), findings=(), verdict="verified")).status == 1
    assert "3 violations" in step.github.bodies()[0]


@pytest.mark.slow
def test_a_planted_report_is_replaced(step: Step):
    """report.md is rendered here, and never written through a link."""
    victim = step.folder / "victim"
    victim.write_text("mine")
    (step.folder / "report.md").symlink_to(victim)
    step.publish(samples.green())
    assert victim.read_text() == "mine"
    assert (step.folder / "report.md").read_text().startswith("# ✅")


@pytest.mark.slow
def test_warnings_can_fail_the_check(step: Step):
    """With --fail-on warning, the comment and the exit code agree."""
    red = samples.red()
    head = red.contracts[0]
    quiet = replace(samples.model("glyph-head", samples.all_fine()), controls=samples.controls())
    targets = (*quiet.targets[:2], replace(quiet.targets[2], probes=samples.guard_probes()))
    run = replace(red.run, models=(replace(quiet, targets=targets),))
    warned = samples.results((head,), run)
    assert step.publish(warned).status == 0
    assert step.outputs["warnings"] == "1"
    assert step.publish(warned, "--fail-on", "warning", run=78).status == 1
    assert step.outputs["verdict"] == "violations"
    assert "## ❌ export-gate: 0 of 1 model verified, 1 violation" in step.github.bodies()[0]


@pytest.mark.slow
def test_500_violations_stay_in_all_budgets(step: Step):
    """Comment, summary, annotations and outputs stay within their limits, and each says what it leaves out."""
    assert step.publish(samples.crowd(500)).status == 1
    (body,) = step.github.bodies()
    assert len(body.encode("utf-16-le")) // 2 <= 65_536
    assert "> Omitted to fit here: " in body
    assert len(step.summary.encode()) <= SUMMARY_LIMIT
    assert sum(line.startswith("::error ") for line in step.log) == 10
    assert sum(line.startswith("::warning ") for line in step.log) <= 10
    assert (step.folder / "output").stat().st_size < 100_000


@pytest.mark.slow
def test_a_summary_that_is_full_is_told(step: Step):
    """Other commands of the step may have used up the summary's limit."""
    full = step.folder / "full.md"
    full.write_text("x" * SUMMARY_LIMIT)
    assert step.publish(samples.green(), GITHUB_STEP_SUMMARY=str(full)).status == 0
    assert step.warnings == ["the job summary is already full"]


@pytest.mark.slow
def test_a_template_of_the_project(step: Step):
    """The template lays out the comment; if it fails, the built-in one is used, with a warning."""
    template = step.folder / "mine.j2"
    template.write_text("# {{ report.verdict }} by our own template\n")
    step.publish(samples.green(), "--template", str(template))
    assert step.github.bodies()[0].splitlines()[1] == "# verified by our own template"
    template.write_text("{{ nothing }}")
    assert step.publish(samples.green(), "--template", str(template), run=78).status == 0
    assert step.warnings == [
        (
            f"the template {template} was not used: UndefinedError: 'nothing' is undefined; the comment uses the "
            "built-in layout"
        )
    ]
    assert "## ✅ export-gate: 3 of 3 models verified" in step.github.bodies()[0]


@pytest.mark.slow
def test_options_that_cannot_be_used(step: Step):
    """A comment-id is checked before anything is published; a bad link is omitted."""
    assert step.publish(samples.green(), "--comment-id", "a b").status == 2
    assert step.errors == "--comment-id: expected up to 64 of letters, digits, '.', '_' and '-', got 'a b'\n"
    assert step.publish(samples.green(), "--artifact-url", "javascript:alert(1)").status == 0
    assert step.warnings == ["--artifact-url: expected a plain URL"]
    assert "javascript" not in step.github.bodies()[0]


def test_strangers_text_stays_text(step: Step):
    """An exception text that tries everything injects nothing anywhere."""
    forged = "<!-- export-gate: comment=export-gate run=9.9 verdict=verified digest=0123456789abcdef -->"
    nasty = f"\n::error::injected\n##[group]x\n@octocat #1 <img src=x> |\n{forged}\nEOF\nverdict<<EOF\nverified\nEOF\n"
    failure = replace(samples.export_failure(), message=nasty, trace=nasty)
    seen = samples.model("m", (), reached="export", failure=failure)
    run = samples.RunObservation(environment=samples.ENVIRONMENT, models=(seen,))
    step.publish(samples.results((samples.contract("m"),), run))
    assert [line[:8] for line in step.log] == ["::error ", "export-g"]
    marker = parse_marker(step.github.bodies()[0])
    assert marker is not None
    assert (marker.run.id, marker.verdict) == (77, "violations")
    assert step.outputs["verdict"] == "violations"
    outside = re.sub(r"(?ms)^(`{3,})text\n.*?^\1$|`[^`\n]*`", "", step.github.bodies()[0])
    assert not re.search(r"@octocat|<img|##\[", outside)


TRIGGERING = {
    "id": 55,
    "run_attempt": 1,
    "event": "pull_request",
    "head_sha": HEAD,
    "head_branch": "fix",
    "head_repository": {"full_name": "mallory/shop"},
}


@pytest.fixture
def second(step: Step) -> Step:
    """A step under workflow_run, for a fork's pull request."""
    step.event, step.payload = "workflow_run", {"workflow_run": TRIGGERING}
    step.github.pulls.append(pull(repository="mallory/shop"))
    return step


@pytest.mark.slow
def test_the_second_stage_comments_for_a_fork(second: Step):
    """The second stage finds the pull request by repository, branch and commit, and names the run that checked."""
    assert second.publish(samples.red(), "--stage", "two").status == 0
    (body,) = second.github.bodies()
    marker = parse_marker(body)
    assert marker is not None
    assert (marker.run.id, marker.verdict) == (55, "violations")
    assert "[workflow run](https://github.example/acme/shop/actions/runs/55)" in body
    assert "at `aaaaaaaaaa`" in body
    assert second.log == ["export-gate: #7: comment written, https://github.example/acme/shop/pull/7#issuecomment-1001"]
    assert second.github.requests()[0] == ("GET /repos/acme/shop/pulls?state=open&head=mallory%3Afix&per_page=100")


@pytest.mark.slow
def test_the_second_stage_judges_itself(second: Step):
    """A file that claims to be verified is judged by its observations."""
    second.publish(replace(samples.red(), findings=(), verdict="verified"), "--stage", "two")
    assert "3 violations" in second.github.bodies()[0]
    assert second.outputs["verdict"] == "violations"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (
            {"head": {"sha": "c" * 40, "ref": "fix", "repo": {"full_name": "mallory/shop"}}},
            "mallory/shop:fix has moved on from aaaaaaaaaa to cccccccccc, which has its own run",
        ),
        (
            {"head": {"sha": HEAD, "ref": "fix", "repo": {"full_name": "mallory/other"}}},
            "there is no open pull request from mallory/shop:fix",
        ),
        (
            {"head": {"sha": HEAD, "ref": "other", "repo": {"full_name": "mallory/shop"}}},
            "there is no open pull request from mallory/shop:fix",
        ),
        ({"state": "closed"}, "there is no open pull request from mallory/shop:fix"),
    ],
)
def test_the_second_stage_requires_the_same_commit(second: Step, change: dict[str, Any], reason: str):
    """Another commit, branch or repository, or a closed pull request, gets no comment, and that is not a failure."""
    second.github.pulls[0].update(change)
    assert second.publish(samples.red(), "--stage", "two").status == 0
    assert second.github.bodies() == []
    assert second.log == [f"export-gate: no comment: {reason}"]


def test_the_second_stage_does_not_guess(second: Step):
    """If one branch has two pull requests, the run was for one of them, but does not say which."""
    second.github.pulls.append(pull(number=8, repository="mallory/shop"))
    assert second.publish(samples.red(), "--stage", "two").status == 0
    assert second.log == [
        "export-gate: no comment: mallory/shop:fix is in 2 pull requests (#7, #8); the run does not report which one"
    ]


@pytest.mark.slow
def test_the_second_stage_is_for_pull_requests(second: Step):
    """A push has no pull request, and a deleted fork has no name."""
    second.payload = {"workflow_run": {**TRIGGERING, "event": "push"}}
    second.publish(samples.red(), "--stage", "two")
    assert second.log == ["export-gate: no comment: the run was for a push event, not for a pull request"]
    second.payload = {"workflow_run": {**TRIGGERING, "head_repository": None}}
    second.publish(samples.red(), "--stage", "two")
    assert second.log == ["export-gate: no comment: the repository of the pull request was deleted"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "not JSON: Expecting property name enclosed in double quotes"),
        ('{"schema_version": 2}', "not valid results: Results: "),
        ("[" * 200_000, "not JSON: "),
    ],
)
def test_a_strangers_file_may_be_anything(second: Step, content: str, reason: str):
    """A file that cannot be used gives no verdict, and a comment with the reason."""
    (second.folder / "results.json").write_text(content)
    assert second.publish(None, "--stage", "two").status == 0
    (body,) = second.github.bodies()
    assert "## 💥 export-gate: no verdict, no results" in body
    assert reason in body
    assert second.outputs["verdict"] == "broken"


@pytest.mark.slow
@pytest.mark.parametrize(("event", "status"), [("workflow_run", 0), ("pull_request", 3)])
def test_observations_that_contradict_each_other(second: Step, event: str, status: int):
    """A file that no run of ours wrote gives no verdict, and no traceback."""
    second.event = event
    second.payload = {"workflow_run": TRIGGERING} | {"pull_request": pull(repository="acme/shop")}
    odd = replace(samples.green(), duration_s=float("nan"))
    options = ("--stage", "two") if event == "workflow_run" else ()
    assert second.publish(odd, *options).status == status
    assert second.errors == ""
    (body,) = second.github.bodies()
    assert "## 💥 export-gate: no verdict, no results" in body
    assert "results.json: Results.duration_s: expected a finite number, got nan" in body


def test_a_strangers_file_of_any_size_is_not_read(second: Step):
    """A sparse file of a terabyte is not read."""
    path = second.folder / "results.json"
    with path.open("wb") as file:
        file.truncate(2**40)
    assert second.publish(None, "--stage", "two").status == 0
    assert "results.json: 1.1 TB, but results from another run are read only up to 67 MB" in second.github.bodies()[0]


@pytest.mark.slow
def test_the_second_stage_fails_if_it_cannot_comment(second: Step):
    """Commenting is its only purpose, so a missing permission is a failed job."""
    second.github.can_write = False
    assert second.publish(samples.green(), "--stage", "two").status == 3
    assert second.warnings == [
        (
            f"no comment: the token may not write to the pull request in acme/shop (403 {DENIED['message']}): give the "
            f"job `permissions: pull-requests: write`. {HAS_THE_RESULT}"
        )
    ]


def test_the_second_stage_needs_its_event(step: Step):
    """Under another event, nothing says which run to report on."""
    assert step.publish(samples.green(), "--stage", "two").status == 2
    assert step.errors == (
        "--stage two: expected a workflow_run event, got 'pull_request'\n"
        "It reports on the results of another workflow: trigger it with `on: workflow_run`.\n"
    )
    step.event, step.payload = "workflow_run", {}
    assert step.publish(samples.green(), "--stage", "two").status == 2
    assert step.errors == (
        "--stage two: the event file has no usable `workflow_run`: the run to report on is unknown\n"
    )
    step.payload = {"workflow_run": TRIGGERING}
    assert step.publish(samples.green(), "--stage", "two", GITHUB_TOKEN="").status == 2
    assert step.errors == (
        "--stage two: GITHUB_TOKEN is not set or is not a token\nPass `github-token: ${{ github.token }}`.\n"
    )
