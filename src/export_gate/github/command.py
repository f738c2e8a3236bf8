"""`export-gate publish`: run one of the two stages with the environment and the options."""

from __future__ import annotations

import re
from collections.abc import Mapping

from export_gate.github.api import Api
from export_gate.github.context import Context, read_context
from export_gate.github.fork import publish_fork
from export_gate.github.marker import check_comment_id
from export_gate.github.publish import Say, publish
from export_gate.github.shown import Publication
from export_gate.wall.errors import UserError


def run_publish(
    order: Publication, environ: Mapping[str, str], say: Say, *, stage: str, allow_pull_request_target: bool
) -> int:
    """Publish as the environment allows, and return the exit code.

    Raises:
        UserError: an option is not usable, or this event is refused.
    """
    check_comment_id(order.comment_id)
    context = read_context(environ)
    if context.event == "pull_request_target" and not allow_pull_request_target:
        raise UserError(
            "pull_request_target: refused, because it runs untrusted code with this repository's token and secrets",
            "Trigger on `pull_request`, and use post/ to comment on forks from a `workflow_run`; or, if no code of the "
            "pull request runs here, pass --allow-pull-request-target.",
        )
    api = _api(context, environ.get("GITHUB_TOKEN", ""))
    return (publish_fork if stage == "two" else publish)(order, context, api, say)


def _api(context: Context, token: str) -> Api | None:
    plain = token.strip()
    # Any other character would break the header, or urllib3's error message would show the token.
    is_token = re.fullmatch(r"[!-~]+", plain) is not None
    return Api(context.api_url, plain) if is_token and context.repository else None
