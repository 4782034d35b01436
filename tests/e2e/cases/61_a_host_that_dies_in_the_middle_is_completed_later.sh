# shellcheck shell=bash
fresh
# The plug is pulled while the binaries go over a slow link.
hosts slow h2 40mbit
etcd_playbook >"$scratch/log" 2>&1 &
run=$!
for _ in $(seq 300); do
  if tree h1 | grep -q 'usr/local/bin/etcd'; then break; fi
  sleep 0.2
done
hosts kill h2
wait $run || true
cat "$scratch/log"
tail -1 "$scratch/log" | grep -qE 'exit code [24]$' || broken "the wrong exit code"
grep -q 'h2.*unreachable=1' "$scratch/log" || broken "h2 is not told as unreachable"
if hosts tree h2 | grep -E 'usr/local/bin/etcd[a-z]* ' | while read -r at _ _ size _; do
  [ "$size" = "$(stat -c %s "$ROOT/target/etcd/3.5/${at##*/}")" ] || echo half
done | grep -q half; then broken "half a file is on h2"; fi
hosts start h2
etcd_playbook
exits 0
healthy
etcd_playbook
nothing_changed
