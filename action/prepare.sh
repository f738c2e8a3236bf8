#!/usr/bin/env bash
# Refuses what must not run, then makes the gate's own environment below RUNNER_TEMP, apart from the project's, from
# pinned and hashed wheels. Output: python, the environment's interpreter.
set -euo pipefail

action="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
source "$action/action/quiet.sh"

stop() { # exit-code message
  annotate error "$2"
  exit "$1"
}

if [ "$GITHUB_EVENT_NAME" = pull_request_target ] && [ "$ALLOW_PULL_REQUEST_TARGET" != true ]; then
  stop 2 "pull_request_target is refused: it would run a stranger's code with this repository's token and secrets; trigger on pull_request, and let post/ comment on forks from a workflow_run (docs/security.md)"
fi
case "$UPLOAD_ARTIFACTS" in
  none | results | all) ;;
  *) stop 2 "upload-artifacts: expected none, results or all, got '${UPLOAD_ARTIFACTS//[^a-zA-Z0-9._-]/?}'" ;;
esac

python=""
for candidate in python3 python; do
  if "$candidate" -I -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    python="$candidate"
    break
  fi
done
[ -n "$python" ] || stop 2 "there is no Python 3.10 or newer on PATH; put actions/setup-python before this step"

environment="$(mktemp -d "$RUNNER_TEMP/export-gate-XXXXXX")"
# From pip 22.3 on, an existing pip installs into other environments, which is seconds faster than giving it a pip of its
# own. (`--clear` has no effect on an empty folder: it stands for no option.)
if "$python" -I -c 'import pip, sys; sys.exit(tuple(map(int, pip.__version__.split(".")[:2])) < (22, 3))' 2>/dev/null; then
  own=--without-pip
  pip=("$python" -I -m pip --python "$environment")
else
  own=--clear
  pip=()
fi
"$python" -I -m venv "$own" "$environment" ||
  stop 2 "$python cannot make a virtual environment; put actions/setup-python before this step"
scripts="$environment/bin"
[ -d "$scripts" ] || scripts="$environment/Scripts"
[ "${#pip[@]}" -gt 0 ] || pip=("$scripts/python" -I -m pip)
# Isolated from the project's Python settings, not from pip's: PIP_INDEX_URL is how a private runner names its mirror.
"${pip[@]}" install --quiet --disable-pip-version-check --no-input --no-compile --no-deps --only-binary :all: \
  --require-hashes --requirement "$action/requirements/action.txt" ||
  stop 3 "the gate's own packages could not be installed; the lines above say why"
output python "$scripts/python"
