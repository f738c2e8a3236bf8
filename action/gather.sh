#!/usr/bin/env bash
# Finds the results that other jobs have uploaded and joins a run's shards. Output: folder, which has results.json.
set -euo pipefail

action="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
source "$action/action/quiet.sh"
folder="$(mktemp -d "$RUNNER_TEMP/export-gate-XXXXXX")"
output folder "$folder"

found=()
if [ -f "$RESULTS" ]; then
  found=("$RESULTS")
elif [ -d "$RESULTS" ]; then
  while IFS= read -r -d '' file; do found+=("$file"); done < <(find "$RESULTS" -type f -name results.json -print0)
fi
if [ "${#found[@]}" = 0 ]; then
  annotate warning "no results were found: the job that verifies ended before it wrote any (its log says why), or has no upload-artifacts: results, or another comment-id"
  exit 0
fi
# One shard alone is joined as well: the models of the missing ones then have no verdict. The exit code is the verdict's,
# which is the report's to give.
"$PYTHON" -I -X utf8 "$action/action/gate.py" merge --output "$folder/results.json" -- "${found[@]}" || true
# What cannot be joined is explained by the report, if it is one file.
if [ ! -f "$folder/results.json" ] && [ "${#found[@]}" = 1 ]; then cp -- "${found[0]}" "$folder/results.json"; fi
