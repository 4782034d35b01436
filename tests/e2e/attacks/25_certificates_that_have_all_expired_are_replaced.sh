# shellcheck shell=bash
# Nobody can ask the members any more, and none of them can be refused anything for that.
a_cluster
etcdctl put e2e kept
credentials=$state/credentials/etcd
mkdir "$scratch/ca"
: >"$scratch/ca/index"
cat >"$scratch/ca/openssl.cnf" <<CONF
[ca]
default_ca = it
[it]
database = $scratch/ca/index
new_certs_dir = $scratch/ca
rand_serial = yes
default_md = sha256
policy = any
unique_subject = no
copy_extensions = copy
[any]
commonName = supplied
CONF
for h in h1 h2 h3; do
  for name in server peer client; do
    crt=$credentials/hosts/$h/$name.crt
    openssl x509 -x509toreq -copy_extensions copyall -in "$crt" -signkey "$credentials/hosts/$h/$name.key" -out "$scratch/csr"
    openssl ca -batch -notext -config "$scratch/ca/openssl.cnf" -cert "$credentials/ca.crt" -keyfile "$credentials/ca.key" \
      -startdate 20200101000000Z -enddate 20200201000000Z -in "$scratch/csr" -out "$crt"
    # In place, as the owner and mode are.
    cat "$crt" >"$state/$h/root/etc/etcd/pki/$name.crt"
  done
  # Connections that exist are ended with the process.
  on $h systemctl restart --no-block etcd
done
sleep 2
! etcdctl --command-timeout=2s endpoint health || broken "certificates that have ended still serve"
etcd_playbook -e etcd_settle_seconds=2
exits 0
healthy
[ "$(etcdctl get e2e --print-value-only)" = kept ] || broken "data was lost"
