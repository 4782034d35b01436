# shellcheck shell=bash
# Needs h1 only, in any state. What stops it first is the limit of outputs or the size of the host's /run.
# nothing_is_left WORDS COMMAND: it prints nothing, within half a minute.
nothing_is_left() {
  for _ in $(seq 300); do
    [ -n "$(on h1 "$2")" ] || return 0
    sleep 0.1
  done
  broken "$1: $(on h1 "$2")"
}
for user in root dashy busy; do
  windlass run h1 -i "$inventory" -e ansible_user="$user" -b -a yes
  exits 2
  says 'cannot store the (whole )?output of yes'
  nothing_is_left "it still runs" 'pgrep -x yes || true'
done
nothing_is_left "its output is left" 'find /run -name ".windlass.*"'
