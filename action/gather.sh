#!/usr/bin/env bash
# Finds the results that other jobs have uploaded and joins a run's shards. Outputs: folder, which has results.json, and
# exit-code, the highest that a run reported.
set -euo pipefail

action="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
source "$action/action/quiet.sh"
folder="$(mktemp -d "$RUNNER_TEMP/export-gate-XXXXXX")"
output folder "$folder"

found=()
if [ -f "$RESULTS" ]; then
  found=("$RESULTS")
elif [ -d "$RESULTS" ]; then
  # A stranger may upload any number of files; a run has far fewer shards, and a missing one fails the report.
  while [ "${#found[@]}" -lt 1000 ] && IFS= read -r -d '' file; do
    found+=("$file")
  done < <(find "$RESULTS" -type f -name results.json -print0)
fi
# A stranger can write these files, too, but an exit code above 0 only makes a report worse.
worst=0
bytes=0
# The expansion with `+`: bash 3.2 (macOS) takes an empty array for an unset variable.
for file in ${found[@]+"${found[@]}"}; do
  code="$(head -c 3 -- "$(dirname -- "$file")/exit-code" 2>/dev/null | tr -dc '0-9')" || true
  # 10#: a leading zero would make it octal.
  if [ "$((10#${code:-0}))" -gt "$worst" ]; then worst="$((10#$code))"; fi
  size="$(wc -c <"$file")" || size=0
  bytes="$((bytes + size))"
done
output exit-code "$worst"
if [ "${#found[@]}" = 0 ]; then
  annotate warning "no results were found: the job that verifies ended before it wrote any (its log says why), or has no upload-artifacts: results, or another comment-id"
  exit 0
fi
# To read and judge so much takes longer than the job has; a run of a thousand models writes a tenth of it.
if [ "$bytes" -gt 134217728 ]; then
  annotate warning "the results have more than 128 MiB together, and are not read"
  exit 0
fi
# One shard alone is joined as well: the models of the missing ones then have no verdict. The exit code is ignored here,
# because the report returns the verdict.
"$PYTHON" -I -X utf8 "$action/action/gate.py" merge --output "$folder/results.json" -- "${found[@]}" || true
# If the only file cannot be read, the report says why.
if [ ! -f "$folder/results.json" ] && [ "${#found[@]}" = 1 ]; then cp -- "${found[0]}" "$folder/results.json"; fi
