# shellcheck shell=bash
# As a run of an earlier version left it: the files of all hosts are of another authority than the processes were started with.
# Both ways out work: the former authority, and to go on with the new one.
a_cluster
etcdctl put e2e kept
credentials=$state/credentials/etcd
cp -a "$credentials" "$scratch/credentials"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj '/CN=etcd etcd CA' \
  -keyout "$scratch/ca.key" -out "$scratch/ca.crt"
exchanged() {
  local h name
  for h in h1 h2 h3; do
    for name in server peer client; do
      openssl x509 -x509toreq -copy_extensions copyall -in "$scratch/credentials/hosts/$h/$name.crt" -signkey "$credentials/hosts/$h/$name.key" -out "$scratch/csr"
      openssl x509 -req -copy_extensions copyall -in "$scratch/csr" -CA "$scratch/ca.crt" -CAkey "$scratch/ca.key" -days 365 -out "$scratch/$name.crt"
      cat "$scratch/$name.crt" >"$state/$h/root/etc/etcd/pki/$name.crt"
    done
    cat "$scratch/ca.crt" >"$state/$h/root/etc/etcd/pki/ca.crt"
  done
  ! etcdctl --command-timeout=2s endpoint health || broken "nothing was exchanged"
}
exchanged
etcd_playbook -e etcd_settle_seconds=2
exits 0
healthy
exchanged
cp "$scratch"/ca.{crt,key} "$credentials/"
etcd_playbook -e etcd_settle_seconds=2
exits 0
healthy
[ "$(etcdctl get e2e --print-value-only)" = kept ] || broken "data was lost"
