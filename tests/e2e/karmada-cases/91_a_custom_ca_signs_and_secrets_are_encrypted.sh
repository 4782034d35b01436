. "$ROOT/tests/e2e/karmada-lib.sh"
fresh
one_host
own=$scratch/own
mkdir -m 0700 "$own"
openssl req -x509 -newkey rsa:2048 -nodes -days 3000 -subj '/O=Example/CN=Example root' -addext basicConstraints=critical,CA:true \
  -addext keyUsage=critical,keyCertSign,cRLSign -keyout "$own/ca.key" -out "$own/ca.crt" 2>/dev/null
openssl genrsa -out "$own/other.key" 2048 2>/dev/null
echo 'a password' >"$own/password"
chmod 0600 "$own/password"
ours() { karmada "$1" --vault-password-file "$own/password" -e "karmada_ca_cert=$own/ca.crt" -e "{\"karmada_ca_key\": \"{{ lookup('file', '$own/${2:-ca}.key') ~ '\\n' }}\"}"; }

# A key of a different certificate signs nothing; the right one is accepted afterwards.
ours site other
exits 2
says 'fatal: \[h1 -> localhost\].*/ca.key does not match the CA '
ours site
exits 0
here=$state/credentials/karmada
cmp "$own/ca.crt" "$here/ca.crt" || broken "the CA differs"
for key in ca.key front-proxy/ca.key signing-ca.key encryption-config.yaml; do
  [ -e "$here/$key" ] || { ls "$here"; broken "there is no $key"; }
  head -1 "$here/$key" | matches '^\$ANSIBLE_VAULT;1\.1;AES256$' || broken "$key lies open on this machine"
  [ "$(stat -c %a "$here/$key")" = 600 ] || broken "others can read $key"
done
on h1 'cat /etc/windlass/karmada/apiserver/pki/apiserver.crt' | openssl verify -CAfile "$own/ca.crt" || broken "the API server's certificate is signed by another authority"
# No root authority's key is on a host.
for key in ca front-proxy/ca; do
  "$WINDLASS" vault view --vault-password-file "$own/password" "$here/$key.key" | sed -n 2p >"$scratch/line"
  on h1 "grep -rlF '$(cat "$scratch/line")' /etc/windlass /opt/windlass 2>/dev/null" | grep . && broken "the key $key.key is on the host"
done

kubectl create secret generic hidden --from-literal=word=treasure
kubectl create configmap open --from-literal=word=treasure
stored() { etcdctl get --print-value-only "/registry/$1"; }
stored configmaps/default/open | matches treasure || broken "the test looks at the wrong place"
stored secrets/default/hidden | matches '^k8s:enc:' || broken "the secret is not encrypted in etcd"
! stored secrets/default/hidden | matches treasure || broken "the secret can be read in etcd"
ours karmada
exits 0
recap h1 changed 0
# Keys that were lost are given back from a copy, and what was written is read again.
cp -rp "$here" "$scratch/copy"
rm -rf "$here"
cp -rp "$scratch/copy" "$here"
ours karmada
exits 0
recap h1 changed 0
[ "$(kubectl get secret hidden -o 'jsonpath={.data.word}' | base64 -d)" = treasure ] || broken "the secret cannot be read any more"
