"""The second stage: comment on results that an untrusted run has uploaded, from a workflow of our own branch.

Only the observations in the file are used: they are validated, judged and rendered here. The pull request to comment
on is requested from GitHub, by the repository, branch and commit that GitHub itself reports for the run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from urllib.parse import urlencode

from export_gate.github.api import Api, ApiError
from export_gate.github.body import Frame
from export_gate.github.comment import Place
from export_gate.github.context import Context
from export_gate.github.event import PullRequest, Triggering, pull_request
from export_gate.github.explain import explain
from export_gate.github.publish import Commented, Say, finish, publish_files, put
from export_gate.github.shown import Publication, Shown, load, nothing_to_show
from export_gate.report.filters import size as in_words
from export_gate.report.record import Report
from export_gate.wall.errors import UserError

LARGEST_RESULTS_BYTES = 64 * 1024 * 1024
"""Size limit of an untrusted file; a run of a thousand models writes less."""
REPORTED, NOT_REPORTED = 0, 3
"""Exit codes. Only the first stage returns the verdict: here it would mark the default branch as failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The pull request that a run was for, or the reason why there is none."""

    pull: PullRequest | None = None
    reason: str = ""


def publish_fork(order: Publication, context: Context, api: Api | None, say: Say) -> int:
    """Comment on the pull request that the triggering run was for.

    Raises:
        UserError: this is not a `workflow_run`, or there is no token.
    """
    triggering = _require(context)
    if api is None:
        raise UserError(
            "--stage two: GITHUB_TOKEN is not set or is not a token", "Pass `github-token: ${{ github.token }}`."
        )
    # The commit of the run that is reported, not that of this workflow's branch.
    here = replace(context, head=triggering.head)
    shown = load_from_stranger(order, here)
    run_url = replace(here, run=triggering.run).run_url
    problems = [*here.problems, *publish_files(order, here, shown, run_url)]
    frame = Frame(
        comment_id=order.comment_id,
        run=triggering.run,
        run_url=run_url,
        artifact_url=order.artifact_url,
        template=order.template,
    )
    commented = _comment(order, here, frame, api, shown.report)
    finish(here, commented, problems, say)
    return NOT_REPORTED if commented.problem and not commented.url else REPORTED


def _require(context: Context) -> Triggering:
    if context.event != "workflow_run":
        raise UserError(
            f"--stage two: expected a workflow_run event, got {context.event or 'none'!r}",
            "It reports on the results of another workflow: trigger it with `on: workflow_run`.",
        )
    if context.triggering is None or not context.repository:
        why = "; ".join(context.problems) or "GITHUB_REPOSITORY is not set"
        raise UserError(f"--stage two: {why}")
    return context.triggering


def load_from_stranger(order: Publication, context: Context) -> Shown:
    """The report of a file with any content."""
    size = order.results.stat().st_size if order.results.is_file() else 0
    if size <= LARGEST_RESULTS_BYTES:
        return load(order, context, is_strange=True)
    most = in_words(LARGEST_RESULTS_BYTES)
    reason = f"{order.results}: {in_words(size)}, but results from another run are read only up to {most}"
    return nothing_to_show(reason, context)


def _comment(order: Publication, context: Context, frame: Frame, api: Api, report: Report) -> Commented:
    if order.mode == "never":
        return Commented(info="no comment: --comment never")
    ours = replace(context, actor="")  # this run's token can write, no matter who opened the pull request
    try:
        found = find_pull_request(api, ours.repository, _require(ours))
    except ApiError as error:
        return Commented(problem=f"no comment: {explain(error, ours, api.host)}")
    if found.pull is None:
        return Commented(info=f"no comment: {found.reason}")
    place = Place(repository=ours.repository, number=found.pull.number)
    return put(report, frame, mode=order.mode, place=place, api=api, context=ours)


def find_pull_request(api: Api, repository: str, run: Triggering) -> Found:
    """The open pull request of the run's branch, if its newest commit is the one that the run was for.

    Raises:
        ApiError: GitHub did not answer.
    """
    # Results of a push, say, are of no pull request, even if one has the branch.
    if run.event != "pull_request":
        return Found(reason=f"the run was for a {run.event} event, not for a pull request")
    if run.repository is None:
        return Found(reason="the repository of the pull request was deleted")
    # The event's own `pull_requests` is empty for forks, so the branch is looked up.
    pulls = [pull for pull in _pulls(api, repository, run) if pull.head_repository == run.repository and pull.is_open]
    current = [pull for pull in pulls if pull.head == run.head]
    branch = f"{run.repository}:{run.branch}"
    if not pulls:
        return Found(reason=f"there is no open pull request from {branch}")
    if not current:
        return Found(
            reason=f"{branch} has moved on from {run.head[:10]} to {pulls[0].head[:10]}, which has its own run"
        )
    if len(current) > 1:
        numbers = ", ".join(f"#{pull.number}" for pull in current)
        return Found(
            reason=f"{branch} is in {len(current)} pull requests ({numbers}); the run does not report which one"
        )
    return Found(pull=current[0])


def _pulls(api: Api, repository: str, run: Triggering) -> Iterator[PullRequest]:
    owner = (run.repository or "").partition("/")[0]
    query = urlencode({"state": "open", "head": f"{owner}:{run.branch}", "per_page": 100})
    for value in api.pages(f"/repos/{repository}/pulls?{query}"):
        pull = pull_request(value)
        # Not left to the filter: it knows owner and branch, but not the repository.
        if pull is not None and isinstance(value, dict) and value.get("head", {}).get("ref") == run.branch:
            yield pull
