# shellcheck shell=bash
fresh
etcd_playbook
exits 0
healthy
for h in h1 h2 h3; do
  [ "$(on $h stat -c %a:%U /var/lib/etcd/data)" = 700:etcd ] || broken "the data directory of $h is open"
  [ "$(on $h 'ps -o user= -C etcd')" = etcd ] || broken "etcd does not run as etcd on $h"
  [ "$(on $h 'stat -c %a:%U /etc/etcd/pki/server.key /etc/etcd/pki/client.key' | xargs)" = "600:etcd 600:root" ] || broken "the keys of $h are open"
  on $h "grep -q 'STATE=.existing' /etc/etcd/formation.env" || broken "$h could form a cluster again"
  on $h test ! -e /etc/etcd/pki/ca.key || broken "the authority's key is on $h"
  on $h systemctl is-enabled --quiet etcd || broken "etcd does not start with $h"
done
[ "$(stat -c %a "$state/credentials/etcd/ca.key")" = 600 ] || broken "the authority's key is open"
# Who has no certificate of the authority gets nothing.
address=$(hosts list | awk '$1 == "h1" {print $2}')
if "$ROOT/target/etcd/3.5/etcdctl" --endpoints "https://$address:2379" --cacert "$state/credentials/etcd/ca.crt" member list; then
  broken "it answers strangers"
fi
