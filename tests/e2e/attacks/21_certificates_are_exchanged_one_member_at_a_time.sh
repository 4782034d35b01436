# shellcheck shell=bash
# Takes long: tests/e2e/campaign/run runs it.
# A member reads its certificates again for every connection: they are not changed on all hosts at once, nor are two members
# down at the same time, while all get new certificates and move to another client port. Nor when they move back.
a_cluster
etcdctl put e2e kept
etcd_playbook -e '{"etcd_client_port": 2479, "etcd_certificate_days": 400, "etcd_certificate_renew_days": 380, "etcd_settle_seconds": 2}'
exits 0
healthy
[ "$(etcdctl get e2e --print-value-only)" = kept ] || broken "data was lost"
for h in h1 h2 h3; do on $h stat -c %Y /etc/etcd/pki/server.crt /etc/etcd/pki/peer.crt | xargs; done | sort -n >"$scratch/times"
cat "$scratch/times"
awk 'NR > 1 && $1 - before < 2 {exit 1} {before = $2}' "$scratch/times" || broken "the certificates of two members were changed at once"
for h in h1 h2 h3; do
  on $h sha256sum --check --status /run/etcd/started-with || broken "$h was not restarted with its new certificates"
done
# When each left its last run, and was ready again.
in_turn() {
  local h
  for h in h1 h2 h3; do
    on $h 'systemctl show -p ActiveExitTimestampMonotonic -p ActiveEnterTimestampMonotonic --value etcd | sort -n | xargs'
  done | sort -n >"$scratch/down"
  cat "$scratch/down"
  awk 'NR > 1 && $1 < until {exit 1} {until = $2}' "$scratch/down" || broken "two members were down at the same time"
}
serve_clients_at() {
  healthy
  [ "$(etcdctl member list | grep -c "$1, false")" = 3 ] || broken "not all members tell clients $1"
}
in_turn
serve_clients_at :2479
# Clients may know the members by a name that the hosts do not; and the port of metrics may change.
etcd_playbook -e '{"etcd_client_port": 2479, "etcd_settle_seconds": 1, "etcd_metrics_port": 2391, "etcd_flags": {"advertise-client-urls": "https://etcd.example.com:2479"}}'
exits 0
in_turn
serve_clients_at https://etcd.example.com:2479
etcd_playbook -e etcd_settle_seconds=1
exits 0
in_turn
serve_clients_at :2379
