# shellcheck shell=bash
# A member that has another host's certificates answers on its own host, as all of them are valid for localhost. Nobody else
# can use it, and no other member talks to it. The next run gives each host its own certificates again.
a_cluster
etcdctl put e2e kept
pki=/etc/etcd/pki
exchanged() { # NAME...: h2 and h3 have each other's certificates and keys of these names
  local name kind
  for name in "$@"; do
    for kind in crt key; do
      cat "$state/h3/root$pki/$name.$kind" >"$scratch/third"
      cat "$state/h2/root$pki/$name.$kind" >"$state/h3/root$pki/$name.$kind"
      cat "$scratch/third" >"$state/h2/root$pki/$name.$kind"
    done
  done
}
mended() {
  local h name
  for h in h1 h2 h3; do
    for name in server peer; do
      on $h cat $pki/$name.crt | cmp - "$state/credentials/etcd/hosts/$h/$name.crt" || broken "$h does not have its own $name.crt"
    done
    on $h sha256sum --check --status /run/etcd/started-with || broken "$h does not run with its certificates"
  done
  [ "$(etcdctl get e2e --print-value-only)" = kept ] || broken "data was lost"
}
exchanged server
! etcdctl --command-timeout=2s endpoint health || broken "nothing was exchanged"
etcd_playbook -e etcd_settle_seconds=2
exits 0
healthy
mended

# The peers' too: connected members stay connected, so they are started again.
exchanged server peer
for h in h2 h3; do on $h systemctl restart --no-block etcd; done
for _ in $(seq 30); do
  ! etcdctl --command-timeout=2s get e2e || { sleep 1; continue; }
  break
done
! etcdctl --command-timeout=2s get e2e || broken "the members still talk to each other"
etcd_playbook -e etcd_settle_seconds=2
exits 0
healthy
mended
etcd_playbook
nothing_changed
