# shellcheck shell=bash
# An operation on etcd while clients write, read and watch, and a fault at a random line of its output: the controller is killed, a member is
# killed, a host loses its power, hangs, is cut off or does not hear another one, or a second windlass does the same. The operation is then
# run again until it is complete. Everything that the clients saw must fit the history of every member.
# shellcheck source=tests/e2e/etcd-lib.sh
. "$ROOT/tests/e2e/etcd-lib.sh"
# Seeds share a cluster, and its history.
export HISTORY_PREFIX=campaign-$SEED-$$/
older=3.5.34 newer=3.6.15

"$ROOT/tests/etcd-binaries" $older $newer || broken "there is no etcd to upgrade to"

# In 56 seeds, each operation with each fault once.
operations=(add remove replace restart renew defrag upgrade downgrade)
faults=(controller member power pause cut split second)
operation=${operations[$((SEED % 8))]} fault=${faults[$((SEED % 7))]}
pick 100; part=$picked
pick 15; lasts=$((picked + 2))
one_of h1 h2 h3; victim=$picked
one_of h1 h2 h3; other=$picked
# The member that is replaced does not run: another one cannot be missed.
[ "$operation $victim" != 'replace h3' ] || victim=h1
[ "$other" != "$victim" ] || case $victim in h1) other=h2 ;; h2) other=h3 ;; *) other=h1 ;; esac

heal_all() {
  local h
  for h in h1 h2 h3 h4 h5; do
    hosts resume $h
    hosts heal $h
    hosts start $h
  done
  hosts join h1 h2
  hosts join h1 h3
  hosts join h2 h3
}
# three_at RELEASE: h1, h2 and h3 are members of this release: those that are there, or new ones.
three_at() {
  ETCD=$1
  heal_all
  if [ -e "$state/credentials/etcd/etcdctl.env" ] && [ "$(on h1 'readlink /opt/windlass/etcd/etcd/current')" = "${1/%3.5/3.5.16}" ]; then
    if (are_members h1 h2 h3 && members h1 h2 h3 && exits 0); then return; fi
  fi
  case $1 in
    3.5)
      fresh_five
      members h1 h2 h3
      ;;
    "$newer")
      ETCD=3.5 fresh_three_at $older
      ETCD=$newer
      change upgrade $newer --yes
      ;;
    *) ETCD=3.5 fresh_three_at "$1" ;;
  esac
  exits 0
  are_members h1 h2 h3
}

# What is run on which hosts, which members there are then, and about how many lines of output it has.
from=(h1 h2 h3) to=(h1 h2 h3)
case $operation in
  add)
    three_at 3.5
    from=(h1 h2 h3 h4 h5) to=(h1 h2 h3 h4 h5) lines=1790
    command=(apply)
    ;;
  remove)
    three_at 3.5
    members h1 h2 h3 h4 h5
    exits 0
    from=(h1 h2 h3 h4 h5) lines=400
    command=(etcd remove-member h4 h5)
    ;;
  replace)
    three_at 3.5
    on h3 'systemctl stop etcd && rm -rf /var/lib/etcd/data/member'
    lines=1450
    command=(etcd replace-member h3)
    ;;
  restart)
    three_at 3.5
    options=(-e "{\"etcd_flags\": {\"snapshot-count\": $((40000 + SEED))}}") lines=1370
    command=(apply)
    ;;
  renew)
    three_at 3.5
    days=$((500 + SEED * 10))
    options=(-e "{\"etcd_certificate_days\": $days, \"etcd_certificate_renew_days\": $((days - 5))}") lines=1370
    command=(apply)
    ;;
  defrag)
    three_at 3.5
    lines=430
    command=(etcd defrag --unused-percent 0 --unused-mb 0)
    ;;
  upgrade)
    three_at $older
    lines=1500
    command=(etcd upgrade --bundle "$ROOT/target/etcd/$newer")
    ;;
  downgrade)
    three_at $newer
    lines=1500
    command=(etcd downgrade --bundle "$ROOT/target/etcd/$older")
    ;;
esac
at=$((lines * part / 100 + 1))
operate() {
  local bundle=$ETCD
  case $operation in upgrade | downgrade) bundle=3.5 ;; esac
  "$WINDLASS" "${command[@]}" -i "$(inventory_of "${from[@]}")" -e "etcd_bundle=$ROOT/target/etcd/$bundle" --playbooks "$ROOT/playbooks" \
    -T 15 --yes "${options[@]}" >"$1" 2>&1 </dev/null
}
echo "== $operation: $fault of $victim (and $other) after line $at, for $lasts seconds"
start_clients
: >"$scratch/run"
operate "$scratch/run" &
run=$!
after_lines "$scratch/run" $at
echo "+ after $(wc -l <"$scratch/run") lines"
case $fault in
  controller) pkill -KILL -P $run || echo '(it had ended)' ;;
  member) on "$victim" systemctl kill --signal KILL etcd ;;
  power)
    hosts kill "$victim"
    sleep "$lasts"
    hosts start "$victim"
    ;;
  pause)
    hosts pause "$victim"
    sleep "$lasts"
    hosts resume "$victim"
    ;;
  cut)
    hosts cut "$victim"
    sleep "$lasts"
    hosts heal "$victim"
    ;;
  split)
    hosts split "$victim" "$other"
    sleep "$lasts"
    hosts join "$victim" "$other"
    ;;
  second)
    code=0
    operate "$output" || code=$?
    cat "$output"
    echo "+ exit code $code of the second one"
    if kill -0 $run 2>/dev/null; then
      [ "$code" != 0 ] || broken "a second windlass did the same at the same time"
    fi
    ;;
esac
ends_within 900
cat "$scratch/run"
echo "+ exit code $code, $(wc -l <"$scratch/run") lines"
# What succeeded despite the fault is not run again.
if [ "$code" != 0 ]; then
  # The members that run are to be well first.
  for h in h1 h2 h3; do
    n=0
    until [ "$operation $h" = 'replace h3' ] || ask $h /health 2>/dev/null | matches '"health":"true"'; do
      n=$((n + 1))
      [ $n -lt 120 ] || broken "$h is not well two minutes after the fault"
      sleep 1
    done
  done
  sleep 6
  code=0
  operate "$output" || code=$?
  cat "$output"
  echo "+ exit code $code of the next run"
  # Once the new member has a vote, an apply completes what is left.
  if [ "$operation" = replace ] && [ "$code" != 0 ]; then
    says 'h3 (answers|runs and has a leader), so it is not replaced'
    members "${to[@]}"
  fi
  exits 0
fi
are_members "${to[@]}"

# It is what it says.
expected=3.5
case $operation in
  upgrade) expected=$newer ;;
  downgrade) expected=$older ;;
  remove)
    for h in h4 h5; do
      [ "$(on $h 'systemctl is-enabled etcd || true')" = disabled ] || broken "etcd on $h is enabled"
      on $h 'test -d /var/lib/etcd/data.removed-*/member/snap' || broken "the data of $h was not kept"
    done
    ;;
  restart)
    for h in h1 h2 h3; do
      on $h "grep -q 'SNAPSHOT_COUNT=\"$((40000 + SEED))\"' /etc/etcd/etcd.env && sha256sum --status -c /run/etcd/started-with" ||
        broken "$h does not run with the change"
    done
    ;;
  renew)
    for h in h1 h2 h3; do
      on $h cat /etc/etcd/pki/server.crt | openssl x509 -noout -checkend $(((days - 2) * 86400)) || broken "the certificate of $h is not new"
    done
    ;;
esac
case $operation in upgrade | downgrade) versions_are "$expected" "${expected%.*}.0" ;; esac
ETCD=$expected members "${to[@]}"
exits 0
ETCD=$expected members "${to[@]}"
exits 0
says 'Nothing to do'
history_fits
# Leases of the clients may still end.
n=0
until [ "$(etcdctl endpoint hashkv -w json | grep -o '"hash":[0-9]*' | sort -u | wc -l)" = 1 ]; do
  n=$((n + 1))
  [ $n -lt 30 ] || broken "the members have different data"
  sleep 1
done
for h in h1 h2 h3 h4 h5; do on $h 'rm -rf /var/lib/etcd/data.removed-*'; done
