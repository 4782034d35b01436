# shellcheck shell=bash
# Needs h1 only, in any state. What stops it first is the limit of outputs or the size of the host's /run.
for user in root dashy busy; do
  windlass run h1 -i "$inventory" -e ansible_user="$user" -b -a yes
  exits 2
  says 'cannot store the (whole )?output of yes'
  [ -z "$(on h1 'pgrep -x yes || true')" ] || broken "it still runs"
done
sleep 1
[ -z "$(on h1 'find /run -name '.windlass.*'')" ] || broken "its output is left"
