. "$ROOT/tests/e2e/karmada-lib.sh"
a_control_plane
credentials=$state/credentials/karmada
openssl() { command openssl "$@" 2>"$scratch/openssl" || { cat "$scratch/openssl"; return 1; }; }
# issue NAME DAYS SUBJECT CA [DIRECTORY]: a certificate for the key that h2, or the host of that directory, has.
issue() {
  local at=${5:-$credentials/hosts/h2}/$1
  openssl req -new -key "$at.key" -subj "$3" -out "$scratch/request"
  openssl x509 -req -in "$scratch/request" -CA "$4.crt" -CAkey "$4.key" -set_serial 7 -days "$2" \
    -extfile <(echo extendedKeyUsage=clientAuth,serverAuth) -out "$at.crt"
}
# One that has expired and one that a stranger signed: they are renewed, and their services restarted, on that host alone.
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$scratch/stranger.key" -out "$scratch/stranger.crt" -subj /CN=karmada -days 2
issue scheduler-client 0 "/O=system:masters/CN=system:karmada:karmada-scheduler" "$credentials/ca"
issue karmada-webhook 30 "/CN=system:karmada:karmada-webhook" "$scratch/stranger"
# The certificates by which etcd is asked whether it has a majority, too: its members reject them, and run all the same.
issue apiserver-etcd-client 0 /CN=karmada-apiserver "$state/credentials/etcd/ca" "$state/credentials/etcd/hosts/h2"
issue apiserver-etcd-client 30 /CN=karmada-apiserver "$scratch/stranger" "$state/credentials/etcd/hosts/h3"
for h in h2 h3; do
  # In place, as the owner and mode are.
  cat "$state/credentials/etcd/hosts/$h/apiserver-etcd-client.crt" >"$state/$h/root/etc/windlass/karmada/apiserver/pki/apiserver-etcd-client.crt"
done
karmada karmada
exits 0
recap h1 changed 0
for name in scheduler-client karmada-webhook; do
  openssl verify -CAfile "$credentials/ca.crt" "$credentials/hosts/h2/$name.crt"
done
for h in h2 h3; do
  on "$h" cat /etc/windlass/karmada/apiserver/pki/apiserver-etcd-client.crt >"$scratch/client.crt"
  openssl verify -CAfile "$state/credentials/etcd/ca.crt" "$scratch/client.crt"
done
karmada status
exits 0
# An authority whose key is another's is refused: nothing can be signed with it.
cp "$credentials/ca.key" "$scratch/ca.key"
cp "$scratch/stranger.key" "$credentials/ca.key"
karmada karmada
cp "$scratch/ca.key" "$credentials/ca.key"
exits 2
says 'ca.key does not match the certificate'
nothing_touched
