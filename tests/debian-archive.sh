# shellcheck shell=bash
# debian-archive.sh: takes packages out of Debian's own archive, checked against Debian's keys, without installing them and
# without touching the machine's apt sources, lists and caches. For scripts that read it.
debian_mirror=${WINDLASS_DEBIAN_MIRROR:-http://deb.debian.org/debian}
debian_keyring=/usr/share/keyrings/debian-archive-keyring.gpg

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }
fail() { say "$*"; exit 1; }

# needs_debian: the tools and the keys are there.
needs_debian() {
  { command -v apt-get && command -v dpkg; } >/dev/null || fail "needs a Debian system (apt-get, dpkg)"
  [ -r "$debian_keyring" ] || fail "$debian_keyring is missing: apt-get install debian-archive-keyring"
}

# private_apt STATE TOOL ARGUMENT...: apt with sources, lists and archives of its own below STATE.
private_apt() {
  local state=$1 tool=$2
  shift 2
  "$tool" -q \
    -o Dir::Etc::sourcelist="$state/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null \
    -o Dir::State="$state" -o Dir::State::status="$state/status" -o Dir::Cache="$state/cache" \
    -o APT::Sandbox::User=root -o APT::Install-Recommends=false -o Acquire::Retries=3 "$@"
}

# open_archive STATE SUITE TYPE...: reads the lists of a suite; TYPE is deb or deb-src.
open_archive() {
  local state=$1 suite=$2 type
  shift 2
  mkdir -p "$state/lists/partial" "$state/cache/archives/partial" "$state/debs"
  : >"$state/status"
  for type in "$@"; do
    echo "$type [signed-by=$debian_keyring] $debian_mirror $suite main"
  done >"$state/sources.list"
  private_apt "$state" apt-get update >"$state/log" 2>&1 || { cat "$state/log" >&2; fail "apt-get update failed for $suite"; }
}

# take_packages STATE PACKAGE...: downloads them (NAME or NAME=VERSION) into STATE/debs.
take_packages() {
  local state=$1
  shift
  (cd "$state/debs" && private_apt "$state" apt-get download "$@") >>"$state/log" 2>&1 ||
    { cat "$state/log" >&2; fail "cannot download $*"; }
}
