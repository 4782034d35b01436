# Takes its turn: every third day, with stand-ins.
. "$ROOT/tests/e2e/karmada-lib.sh"
# A year in which nobody looked: all certificates of the control plane have expired, and its processes were restarted. The dry run
# cannot query the API then. Those of etcd: attacks/25.
fresh
file=$state/expired.yaml
skeleton h1 >"$file"
site apply --yes
exits 0
kubectl create namespace kept

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
organizationName = optional
CONF
credentials=$state/credentials
# expire DIRECTORY: the certificates of its authority, and their copies on h1.
expire() {
  local ca=$1 crt copy
  while read -r crt; do
    openssl x509 -x509toreq -copy_extensions copyall -in "$crt" -signkey "${crt%.crt}.key" -out "$scratch/csr" 2>&1
    cp "$crt" "$scratch/before.crt"
    openssl ca -batch -notext -config "$scratch/ca/openssl.cnf" -cert "$ca/ca.crt" -keyfile "$ca/ca.key" \
      -startdate 20200101000000Z -enddate 20200201000000Z -in "$scratch/csr" -out "$crt" 2>&1
    # In place, as the owner and mode are.
    for copy in "$state"/h1/root/etc/etcd/pki/*.crt "$state"/h1/root/etc/windlass/karmada/*/pki/*.crt; do
      ! cmp -s "$copy" "$scratch/before.crt" || cat "$crt" >"$copy"
    done
  done < <(find "$ca" -name '*.crt' ! -name '*ca.crt' ! -path "$ca/front-proxy/*")
}
expire "$credentials/karmada"
expire "$credentials/karmada/front-proxy"
on h1 'systemctl restart --no-block etcd "karmada-*"'
serves() { kubectl get namespace kept >/dev/null 2>&1; }
for ((i = 0; i < 60; i++)); do serves || break; sleep 1; done
! serves || broken "expired certificates still serve"

site status
exits 2
site plan
exits 0
says '^controlPlane: '
site apply --yes
exits 0
kubectl get namespace kept
site status
exits 0
site plan
exits 0
says '^Nothing to do\.$'

# Files that a run can write again.
rm "$kubeconfig" "$credentials/karmada/sa.pub" "$credentials/karmada/admin.crt"
site plan
exits 0
says '^controlPlane: '
site apply --yes
exits 0
kubectl get namespace kept

# A reset leaves the data in etcd, and what is needed to read them.
kubectl create secret generic kept --from-literal=text=readable
windlass playbook -i "$file" -e confirm_instance=karmada "$ROOT/playbooks/karmada-reset.yml"
exits 0
says 'encryption-config.yaml is kept'
site apply --yes
exits 0
[ "$(kubectl get secret kept -o 'jsonpath={.data.text}' | base64 -d)" = readable ] || broken "the Secret cannot be read"
site destroy --name production
exits 0
[ ! -e "$credentials/karmada" ] || broken "left after destroy: $(ls "$credentials/karmada")"
