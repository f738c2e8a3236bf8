# Sourced by the other scripts. What they and their programs print may contain names and texts of a stranger, so the
# runner must not look for workflow commands in it, except between `loud` and `quiet`. The word that ends the pause is
# random, so that a stranger's text cannot.

pause="$(od -An -N16 -tx1 /dev/urandom | tr -dc 'a-f0-9')"

quiet() { echo "::stop-commands::$pause"; }

# Starts with a line end: a program that was killed may have left a line open.
loud() { printf '\n::%s::\n' "$pause"; }

annotate() { # kind message, which is ours
  loud
  echo "::$1 title=export-gate::$2"
  quiet
}

output() { # name value, which adds no other output whatever it is
  printf '%s<<%s\n%s\n%s\n' "$1" "$pause" "$2" "$pause" >>"$GITHUB_OUTPUT"
}

[ "${#pause}" = 32 ] || exit 3
quiet
trap loud EXIT
