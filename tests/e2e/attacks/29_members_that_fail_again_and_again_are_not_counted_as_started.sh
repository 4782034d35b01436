# shellcheck shell=bash
# Takes long: tests/e2e/campaign/run runs it.
# systemd restarts them for ever. While it waits for the next time, they are neither active nor failed.
a_cluster
for h in h1 h2 h3; do on $h "systemctl stop etcd && chown root /var/lib/etcd/data/member/snap/db && systemctl start --no-block etcd" & done
wait
sleep 1
[ "$(on h1 'systemctl is-active etcd || true')" = activating ] || broken "etcd starts without its data"
planned
exits 0
says '^etcd: 3 hosts$'
does_not_say '^nothing to do:.* etcd'
applied -e etcd_gate_retries=0
exits 2
says 'etcd is not healthy'
for h in h1 h2 h3; do on $h "chown etcd /var/lib/etcd/data/member/snap/db && systemctl restart --no-block etcd" & done
wait
well
planned
says '^nothing to do: etcd'
