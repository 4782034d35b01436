# shellcheck shell=bash
# A cluster that is well, and credentials whose authority is gone or another one: nothing is touched, here or there.
a_cluster
credentials=$state/credentials/etcd
cp -a "$credentials" "$scratch/credentials"
members_files >"$scratch/before"

rm "$credentials/ca.crt" "$credentials/ca.key"
for mode in --check --diff; do
  etcd_playbook $mode
  exits 2
  says 'ca\.crt is missing on the controller, and h[123] trusts a CA'
  says 'Restore ca.crt and ca.key from a backup'
  [ ! -e "$credentials/ca.key" ] || broken "it made a new authority"
done

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj '/CN=etcd etcd CA' \
  -keyout "$credentials/ca.key" -out "$credentials/ca.crt"
for mode in --check --diff; do
  etcd_playbook $mode
  exits 2
  says 'is not the CA that h[123] trusts'
done
cmp "$credentials/hosts/h1/server.crt" "$scratch/credentials/hosts/h1/server.crt" || broken "it made certificates of another authority"

rm -rf "$credentials"
cp -a "$scratch/credentials" "$credentials"
members_files >"$scratch/after"
diff "$scratch/before" "$scratch/after" || broken "it changed something"
healthy
