"""Explain an API error in a sentence that names the likely cause and the next step."""

from __future__ import annotations

from export_gate.github.api import ApiError
from export_gate.github.context import Context
from export_gate.github.patience import PATIENCE_S

PERMISSION = "give the job `permissions: pull-requests: write`"


def explain(error: ApiError, context: Context, host: str) -> str:
    """Explain why there is no comment, to a reader who can change the workflow."""
    answer = f"{error.status} {error.message}".strip()
    where = f"#{context.pull_request.number}" if context.pull_request else f"the pull request in {context.repository}"
    match error.status:
        case 0:
            return f"{host} could not be used: {error.message}"
        case 401:
            return f"GitHub did not accept the token ({answer}): pass `github-token: ${{{{ github.token }}}}`"
        # Order matters: GitHub answers 403 for a locked conversation, a rate limit and a missing permission alike.
        case 403 if "locked" in error.message.lower():
            return f"the conversation of {where} is locked ({answer}): unlock it"
        case 403 | 429 if error.retry_after_s is not None:
            return f"GitHub's rate limit did not end in time ({answer}); the gate waited {PATIENCE_S:.0f} s"
        case 403 | 404 if context.has_reading_token:
            return _reading_token(answer, context)
        case 403:
            return f"the token may not write to {where} ({answer}): {PERMISSION}"
        case 404:
            return f"the token cannot see {where} ({answer}): {PERMISSION}"
        case 410:
            return f"comments are switched off in {context.repository} ({answer}): enable issues in its settings"
        case 422:
            return f"GitHub refused the text ({answer}): please report this with the job summary"
        case _:
            return f"GitHub reports a server error ({answer}): run the job again later"


def _reading_token(answer: str, context: Context) -> str:
    pull = context.pull_request
    is_fork = pull is not None and pull.head_repository != context.repository
    whose = f"comes from a fork, {pull.head_repository or 'since deleted'}" if pull and is_fork else "is Dependabot's"
    return (
        f"the pull request {whose}, so its runs get a token that cannot write ({answer}): "
        f"use post/ to comment from a `workflow_run`"
    )
