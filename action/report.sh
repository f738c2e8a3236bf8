#!/usr/bin/env bash
# Publishes results: has the token, runs no code of the project. The exit code is the verdict's.
set -euo pipefail

action="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
source "$action/action/quiet.sh"
cd -- "$WORKING_DIRECTORY"

options=(--stage "${STAGE:-one}" --comment "$COMMENT" --comment-id "$COMMENT_ID" --fail-on "$FAIL_ON")
if [ -n "$TEMPLATE" ]; then options+=(--template "$TEMPLATE"); fi
if [ -n "$ARTIFACT_URL" ]; then options+=(--artifact-url "$ARTIFACT_URL"); fi
if [ -n "${LOG:-}" ]; then options+=(--log "$LOG"); fi
if [ -n "${EXIT_CODE:-}" ]; then options+=(--exit-code "$EXIT_CODE"); fi
if [ "${ANNOTATIONS:-true}" != true ]; then options+=(--no-annotations); fi
if [ "$ALLOW_PULL_REQUEST_TARGET" = true ]; then options+=(--allow-pull-request-target); fi

# Its standard output has the annotations, which are commands; its standard error must not be read for commands.
code=0
errors="$(mktemp "$RUNNER_TEMP/export-gate-errors-XXXXXX")"
loud
"$PYTHON" -I -X utf8 "$action/action/gate.py" publish "${options[@]}" -- "$FOLDER/results.json" 2>"$errors" || code=$?
quiet
cat -- "$errors"
# Without results, the run's own exit code says more: 2 is a mistake in the config, 3 an error of the gate.
# The second stage reports on another branch's run, whose failure must not fail this one.
if [ "${STAGE:-one}" = one ] && [ "${EXIT_CODE:-0}" != 0 ] && { [ ! -f "$FOLDER/results.json" ] || [ "$code" = 0 ]; }; then code="$EXIT_CODE"; fi
exit "$code"
