#!/usr/bin/env bash
# Runs the project's code: no token is in this environment, and the exit code is kept for the report to give.
# Outputs: folder, log, name, exit-code.
set -euo pipefail
set -f # lists are split at blanks and commas; they are not patterns

action="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
source "$action/action/quiet.sh"
cd -- "$WORKING_DIRECTORY"

# A change could bring the files of a bare repository, whose settings run commands.
git() { command git -c safe.bareRepository=explicit "$@"; }

# A token in .git is one that the project's code can read. `git config` follows the file that newer checkouts include.
if git config --get-regexp '^http\..*\.extraheader$' >/dev/null 2>&1; then
  annotate warning "actions/checkout left its token in .git, where the code under test can read it; give it persist-credentials: false"
fi

# The base's config and lock count, but a checkout of one commit lacks them. GitHub serves any commit by its name; no
# token is used.
fetch_commit() { # folder sha
  if ! [[ "$2" =~ ^[0-9a-f]{40,64}$ ]] || git -C "$1" cat-file -e "$2^{commit}" 2>/dev/null; then return; fi
  GIT_TERMINAL_PROMPT=0 git -C "$1" -c http.lowSpeedLimit=1000 -c http.lowSpeedTime=30 \
    fetch --quiet --no-tags --no-recurse-submodules --depth=1 origin "$2" </dev/null || true
}
fetch_commit . "${BASE_SHA:-}"

folder="$(dirname -- "${CONFIG:-export-gate.yml}")"
# If the config is in a submodule, the base records which commit of it counts.
outer="$(git -C "$folder" rev-parse --show-superproject-working-tree 2>/dev/null)" || true
if [ -n "$outer" ]; then
  inner="$(git -C "$folder" rev-parse --show-toplevel)"
  fetch_commit "$inner" "$(git -C "$outer" rev-parse --quiet --verify "${BASE_SHA:-}:${inner#"$outer"/}" || true)"
fi
# `pwd -W` is Git Bash's: Python on Windows cannot open /c/...
if [ -d "$folder" ]; then folder="$(cd -- "$folder" && (pwd -W 2>/dev/null || pwd))"; fi
folder="$folder/.export-gate"
# Each job of a matrix uploads under a name of its own.
part="${SHARD%%:*}" # its models may follow
name="$COMMENT_ID-results${part:+-${part/\//-of-}}"
if [ -z "$SHARD" ] && [ "${JOB_TOTAL:-1}" -gt 1 ]; then name="$name-$JOB_INDEX"; fi
log="$(mktemp "$RUNNER_TEMP/export-gate-log-XXXXXX")"
output folder "$folder"
output log "$log"
output name "${name//[^a-zA-Z0-9._-]/-}"
# A run that ends before it writes results must not be reported with older ones.
rm -f -- "$folder/results.json" "$folder/exit-code"

options=(--report-dir "$folder")
if [ -n "$CONFIG" ]; then options+=(--config "$CONFIG"); fi
if [ -n "$PROJECT_PYTHON" ]; then options+=(--python "$PROJECT_PYTHON"); fi
if [ -n "$SHARD" ]; then options+=(--shard "$SHARD"); fi
if [ -n "${BASE_SHA:-}" ]; then options+=(--base "$BASE_SHA"); fi
# Verdicts that a pull request's own code could have written are worth nothing to it or to others.
if [ -z "${CACHE:-}" ]; then
  options+=(--no-cache)
else
  options+=(--cache-dir "$CACHE")
  # Other events have that ref as well (workflow_run, issue_comment, ...), and may be about a stranger's code.
  case "$GITHUB_REF $GITHUB_EVENT_NAME" in
    "refs/heads/${DEFAULT_BRANCH:-} push" | "refs/heads/${DEFAULT_BRANCH:-} schedule" | "refs/heads/${DEFAULT_BRANCH:-} workflow_dispatch") ;;
    *) options+=(--cache-read-only) ;;
  esac
fi
for target in ${TARGETS//,/ }; do options+=(--target "$target"); done
models=(${MODELS//,/ })

code=0
"$PYTHON" -I -X utf8 "$action/action/gate.py" run "${options[@]}" -- ${models[@]+"${models[@]}"} 2>&1 |
  tee "$log" || code="${PIPESTATUS[0]}"
output exit-code "$code"
# A job that reports on several runs has only these files, and results may look better than how the run ended.
if [ -d "$folder" ]; then echo "$code" >"$folder/exit-code"; fi
