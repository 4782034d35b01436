# shellcheck shell=bash
# A member reads its certificates again for every connection: they are not changed on all hosts at once.
a_cluster
etcdctl put e2e kept
etcd_playbook -e '{"etcd_certificate_days": 400, "etcd_certificate_renew_days": 380, "etcd_settle_seconds": 2}'
exits 0
healthy
[ "$(etcdctl get e2e --print-value-only)" = kept ] || broken "data was lost"
for h in h1 h2 h3; do on $h stat -c %Y /etc/etcd/pki/server.crt /etc/etcd/pki/peer.crt | xargs; done | sort -n >"$scratch/times"
cat "$scratch/times"
awk 'NR > 1 && $1 - before < 2 {exit 1} {before = $2}' "$scratch/times" || broken "the certificates of two members were changed at once"
for h in h1 h2 h3; do
  on $h sha256sum --check --status /run/etcd/started-with || broken "$h was not restarted with its new certificates"
done
