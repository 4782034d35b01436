# shellcheck shell=bash
# Members stopped or without power, a random --limit, a change that needs restarts: a majority is never given up, and exit code 0
# means that the hosts of the limit have the change.
a_healthy_cluster
down=()
for h in h1 h2 h3; do
  one_of up up up stopped off; fate=$picked
  [ ${#down[@]} -lt 2 ] || fate=up
  case $fate in
    stopped) on $h systemctl stop etcd; down+=("$h:stopped") ;;
    off) hosts kill $h; down+=("$h:off") ;;
  esac
done
one_of '' h1 h2 h3 h1,h2 h1,h3 h2,h3; limit=$picked
count=$((40000 + SEED * 7))
echo "== down: ${down[*]:-none}; limit: ${limit:-none}; snapshot-count $count"

running() { [ "$(hosts list | awk -v h="$1" '$1 == h {print $3}')" = running ] && [ "$(on "$1" systemctl is-active etcd)" = active ]; }
property() { on "$1" systemctl show -p "$2" --value etcd; }
for h in h1 h2 h3; do if running $h; then property $h ActiveEnterTimestampMonotonic >"$scratch/$h.before"; fi; done

etcd_playbook -T 5 ${limit:+--limit "$limit"} -e "{\"etcd_flags\": {\"snapshot-count\": \"$count\"}}"

# The unit notes at every start the digests of what the process was started with.
has_the_change() { on "$1" "grep -q 'SNAPSHOT_COUNT=\"$count\"' /etc/etcd/etcd.env && sha256sum --status -c /run/etcd/started-with"; }
for h in h1 h2 h3; do
  case ,${limit:-h1,h2,h3}, in *,$h,*) ;; *) continue ;; esac
  [ "$code" != 0 ] || { running $h && has_the_change $h; } || broken "exit code 0, but $h does not run with the change"
done
# Each member that was restarted while others were down has taken the majority away.
for h in h1 h2 h3; do
  { [ -e "$scratch/$h.before" ] && running $h; } || continue
  left=$(property $h ActiveExitTimestampMonotonic) back=$(property $h ActiveEnterTimestampMonotonic)
  [ "$back" != "$(cat "$scratch/$h.before")" ] || continue
  echo "$h was restarted from $left to $back"
  for o in h1 h2 h3; do
    [ $o != $h ] || continue
    running $o || broken "$h was restarted while $o was down"
    other_left=$(property $o ActiveExitTimestampMonotonic) other_back=$(property $o ActiveEnterTimestampMonotonic)
    { [ "$other_back" -le "$left" ] || [ "${other_left:-0}" -ge "$back" ]; } || broken "$h and $o were down at the same time"
  done
done
# And the way back is open.
whole_hosts
converges -e "{\"etcd_flags\": {\"snapshot-count\": \"$count\"}}"
