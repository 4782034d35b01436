# Takes its turn: every third day.
# shellcheck shell=bash
# etcd's CA is replaced by one with another key while clients write, read and watch; it is killed in the first phase and in the last one,
# and resumed. In the end nobody trusts the earlier one, and no earlier key is in use.
. "$ROOT/tests/e2e/etcd-lib.sh"
fresh_five
options=(-e etcd_settle_seconds=1)
members h1 h2 h3
exits 0
mapfile -t three < <(printf '%s\n' -i "$(inventory_of h1 h2 h3)" -e "etcd_bundle=$ROOT/target/etcd/3.5" -e etcd_settle_seconds=1 --playbooks "$ROOT/playbooks")
here=$state/credentials/etcd
cp -r "$here" "$scratch/earlier"
key_of() { openssl x509 -in "$1" -noout -pubkey; }
count() { grep -c BEGIN "$1"; }
# as CREDENTIALS CA: writes a key with the administrator's certificate of these credentials, trusting the CAs in this file.
as() {
  "$ROOT/target/etcd/3.5/etcdctl" --endpoints "https://$(address_of h1):2379" --cacert "$2" --cert "$1/admin.crt" --key "$1/admin.key" \
    --command-timeout 20s --dial-timeout 8s put rotated "$RANDOM" 2>&1
}
# trusting COUNT: so many CAs are in the file of every member, the first of them as here, and every member has certificates of that one.
trusting() {
  local h name
  for h in h1 h2 h3; do
    for name in ca client server peer; do on $h "cat /etc/etcd/pki/$name.crt" >"$scratch/$name.crt"; done
    [ "$(count "$scratch/ca.crt")" = "$1" ] || broken "$h trusts $(count "$scratch/ca.crt") CAs, not $1"
    cmp "$scratch/ca.crt" "$here/ca.crt" || broken "$h has other CAs than the controller"
    openssl x509 -in "$here/ca.crt" -out "$scratch/signs.crt"
    for name in client server peer; do
      openssl verify -partial_chain -CAfile "$scratch/signs.crt" "$scratch/$name.crt" || broken "$name.crt of $h is of another CA"
    done
  done
}

# Without one of the hosts nothing begins; a dry run changes nothing.
hosts stop h3
windlass etcd rotate-ca --yes "${three[@]}"
exits 4
hosts start h3
are_members h1 h2 h3
windlass etcd rotate-ca --check "${three[@]}"
exits 0
says 'Replaces the CA of the cluster etcd by a new one with another key, in 3 phases\. Below is the first one'
says '^  restart +etcd: .*, one after the other'
diff -r "$scratch/earlier" "$here" || broken "a dry run changed the credentials"
trusting 1

start_clients "$here"
killed_at 'Restart the member' etcd rotate-ca --yes "${three[@]}"
# Both are trusted, and the new one signs: clients of others have time for new certificates.
windlass etcd rotate-ca --keep-trust --yes "${three[@]}"
exits 0
trusting 2
[ "$(key_of "$here/ca.crt")" != "$(key_of "$scratch/earlier/ca.crt")" ] || broken "the CA has the same key"
as "$scratch/earlier" "$here/ca.crt" || broken "a client with an earlier certificate is refused"
cp -r "$here" "$scratch/both"
# Who could read the CA's key could read the keys of its certificates, too.
for name in admin hosts/h1/client hosts/h1/server hosts/h2/peer; do
  ! cmp -s "$here/$name.key" "$scratch/earlier/$name.key" || broken "$name.key is as before"
done
for h in h1 h2 h3; do
  for name in client server peer; do
    [ "$(on $h "cat /etc/etcd/pki/$name.key" | sha256sum)" = "$(sha256sum <"$here/hosts/$h/$name.key")" ] || broken "$h has another $name.key"
  done
done
windlass apply --yes "${three[@]}"
exits 0
says '^Nothing to do\.$'
diff -r "$scratch/both" "$here" || broken "an apply changed the credentials"

# A run may have ended between the new key and the new order of the certificates: nothing can be signed until it is completed.
cat "$scratch/earlier/ca.crt" "$here/next-ca.crt" >"$here/ca.crt"
windlass apply --yes "${three[@]}"
exits 1
says "the private key .*/ca\.key does not match the certificate"
windlass etcd rotate-ca --keep-trust --yes "${three[@]}"
exits 0
trusting 2
cmp "$here/ca.crt" "$scratch/both/ca.crt" || broken "the CAs are not in their earlier order"

# An apply rolls out what the last phase had left to do; the next replacement ends it.
killed_at 'Restart the member' etcd rotate-ca --yes "${three[@]}"
windlass apply --yes "${three[@]}"
exits 0
says 'the etcd rotate-ca that .* was interrupted: run windlass etcd rotate-ca to resume it'
trusting 1
windlass etcd rotate-ca --yes "${three[@]}"
exits 0
trusting 1
[ "$(key_of "$here/ca.crt")" = "$(key_of "$scratch/both/ca.crt")" ] || broken "there is a third CA"
for name in next-ca.crt next-ca.key; do [ ! -e "$here/$name" ] || broken "$name is left"; done
cmp "$here/token" "$scratch/earlier/token" || broken "the cluster has another token"
as "$here" "$here/ca.crt" || broken "a client with a new certificate is refused"
! as "$scratch/earlier" "$here/ca.crt" || broken "a client with a certificate of the earlier CA is served"
windlass apply --yes "${three[@]}"
exits 0
says '^Nothing to do\.$'
are_members h1 h2 h3
history_fits
