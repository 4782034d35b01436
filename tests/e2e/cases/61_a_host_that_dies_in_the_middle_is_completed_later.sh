# shellcheck shell=bash
fresh
# The plug is pulled while the binaries go over a slow link.
hosts slow h2 40mbit
etcd_playbook >"$scratch/log" 2>&1 &
run=$!
for _ in $(seq 600); do
  ! compgen -G "$state/h1/upper/opt/windlass/etcd/etcd/*/etcd" >/dev/null || break
  sleep 0.1
done
hosts kill h2
wait $run || true
cat "$scratch/log"
tail -1 "$scratch/log" | matches -E 'exit code [24]$' || broken "the wrong exit code"
grep -q 'h2.*unreachable=1' "$scratch/log" || broken "h2 is not told as unreachable"
for at in "$state"/h2/upper/opt/windlass/etcd/etcd/*/etcd*; do
  [ ! -e "$at" ] || cmp "$at" "$ROOT/target/etcd/3.5/${at##*/}" || broken "half a file is on h2"
done
hosts start h2
etcd_playbook
exits 0
healthy
etcd_playbook
nothing_changed
