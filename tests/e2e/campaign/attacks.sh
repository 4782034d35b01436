# shellcheck shell=bash
# One of the attacks that take too long for tests/all; the seeds take turns.
mapfile -t attacks < <(grep -l '^# Takes long: tests/e2e/campaign' "$ROOT"/tests/e2e/attacks/*.sh)
attack=${attacks[$((SEED % ${#attacks[@]}))]}
echo "== $attack"
# shellcheck source=/dev/null
. "$attack"
