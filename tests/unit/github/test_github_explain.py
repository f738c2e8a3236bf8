"""Every way in which GitHub can refuse is explained in a sentence, with its cause and the next step."""

from __future__ import annotations

import pytest

from export_gate.github.api import ApiError
from export_gate.github.context import Context
from export_gate.github.event import PullRequest
from export_gate.github.explain import explain

OWN = Context(
    event="pull_request",
    repository="acme/shop",
    pull_request=PullRequest(number=7, head="a" * 40, head_repository="acme/shop"),
)
FORK = Context(
    event="pull_request",
    repository="acme/shop",
    pull_request=PullRequest(number=7, head="a" * 40, head_repository="mallory/shop"),
)
DELETED = Context(repository="acme/shop", pull_request=PullRequest(number=7, head="a" * 40))
DEPENDABOT = Context(repository="acme/shop", pull_request=OWN.pull_request, actor="dependabot[bot]")
READS_ONLY = "so its runs get a token that cannot write (403 Denied): use post/ to comment from a `workflow_run`"
DENIED = ApiError(403, "Denied")


@pytest.mark.parametrize(
    ("error", "context", "sentence"),
    [
        (
            ApiError(401, "Bad credentials"),
            OWN,
            "GitHub did not accept the token (401 Bad credentials): pass `github-token: ${{ github.token }}`",
        ),
        (
            DENIED,
            OWN,
            "the token may not write to #7 (403 Denied): give the job `permissions: pull-requests: write`",
        ),
        (
            DENIED,
            FORK,
            "the pull request comes from a fork, mallory/shop, " + READS_ONLY,
        ),
        (
            DENIED,
            DELETED,
            "the pull request comes from a fork, since deleted, " + READS_ONLY,
        ),
        (
            DENIED,
            DEPENDABOT,
            "the pull request is Dependabot's, " + READS_ONLY,
        ),
        (
            ApiError(403, "Unable to create comment because issue is locked."),
            FORK,
            "the conversation of #7 is locked (403 Unable to create comment because issue is locked.): unlock it",
        ),
        (
            ApiError(403, "secondary rate limit", retry_after_s=60.0),
            OWN,
            "GitHub's rate limit did not end in time (403 secondary rate limit); the gate waited 170 s",
        ),
        (
            ApiError(429, "", retry_after_s=3600.0),
            OWN,
            "GitHub's rate limit did not end in time (429); the gate waited 170 s",
        ),
        (
            ApiError(404, "Not Found"),
            OWN,
            "the token cannot see #7 (404 Not Found): give the job `permissions: pull-requests: write`",
        ),
        (
            ApiError(404, "Not Found"),
            Context(repository="acme/shop"),
            (
                "the token cannot see the pull request in acme/shop (404 Not Found): give the job `permissions: "
                "pull-requests: write`"
            ),
        ),
        (
            ApiError(410, "Issues are disabled for this repo"),
            OWN,
            (
                "comments are switched off in acme/shop (410 Issues are disabled for this repo): enable issues in its "
                "settings"
            ),
        ),
        (
            ApiError(422, "Validation Failed: Too long"),
            OWN,
            "GitHub refused the text (422 Validation Failed: Too long): please report this with the job summary",
        ),
        (
            ApiError(502, "Bad Gateway", retry_after_s=4.0),
            OWN,
            "GitHub reports a server error (502 Bad Gateway): run the job again later",
        ),
        (
            ApiError(0, "connection refused", retry_after_s=4.0),
            OWN,
            "api.github.com could not be used: connection refused",
        ),
    ],
)
def test_each_refusal(error: ApiError, context: Context, sentence: str):
    """What went wrong, and what to do."""
    assert explain(error, context, "api.github.com") == sentence
