# shellcheck shell=bash
# Two files in one directory, as `windlass serve` has them. Both call their host cp-1. Each is an etcd cluster of one member.
fresh
d=$scratch/d
mkdir "$d"
# document NAME HOST: the file of a deployment.
document() {
  cat >"$d/$1.yaml" <<DOCUMENT
apiVersion: windlass.dev/v1alpha1
kind: KarmadaDeployment
metadata: {name: $1}
spec:
  bundle: $ROOT/target/etcd/3.5
  ssh: {user: root, privateKey: {file: $state/id_ed25519}, knownHosts: [$state/known_hosts]}
  hosts: [{name: cp-1, address: $(grep -oE "^$2 ansible_host=[0-9.]+" "$inventory" | cut -d= -f2)}]
  controlPlane: {hosts: [cp-1]}
  etcd: {managed: {hosts: [cp-1]}}
DOCUMENT
}
etcd_of() { windlass playbook -i "$d/$1.yaml" "$ROOT/playbooks/etcd.yml"; }
destroy() { windlass destroy -f "$d/$1.yaml" --name "$1" --playbooks "$ROOT/playbooks"; }
keys() { (cd "$d/credentials" && find . -path ./_deployments -prune -o -type f -exec sha256sum {} + | sort -k 2); }
# answers HOST DIRECTORY: the member there serves a client with these keys.
answers() {
  ETCDCTL_API=3 "$ROOT/target/etcd/3.5/etcdctl" --dial-timeout 8s --command-timeout 20s --cacert "$2/ca.crt" --cert "$2/admin.crt" --key "$2/admin.key" \
    --endpoints "https://$(grep -oE "^$1 ansible_host=[0-9.]+" "$inventory" | cut -d= -f2):2379" get k
}
record=$d/credentials/etcd/.deployment.json

echo "== one alone has the keys beside its file, and they say whose they are"
document prod h1
etcd_of prod
exits 0
grep -qx '{"kind": "KarmadaDeployment", "name": "prod"}' "$record" || broken "the record is $(cat "$record")"
[ "$(stat -c %a "$record")" = 600 ] || broken "the record has the mode $(stat -c %a "$record")"
keys >"$scratch/keys-of-prod"
etcd_of prod
recap cp-1 changed 0

echo "== to destroy another one that was never installed leaves them alone"
document test h2
destroy test
exits 0
keys | diff "$scratch/keys-of-prod" - || broken "the keys of prod have changed"

echo "== the other one gets an authority of its own"
etcd_of test
exits 0
own=$d/credentials/_deployments/test/etcd
! cmp -s "$d/credentials/etcd/ca.crt" "$own/ca.crt" || broken "both have one authority"
on h2 cat /etc/etcd/pki/ca.crt | cmp - "$own/ca.crt" || broken "h2 does not trust the CA of test"
keys | diff "$scratch/keys-of-prod" - || broken "the keys of prod have changed"
answers h1 "$d/credentials/etcd"
answers h2 "$own"
! answers h1 "$own" || broken "the keys of test open prod"

echo "== a bare playbook with the wrong directory is refused"
windlass playbook -i "$d/test.yaml" -e "credentials_dir=$d/credentials" -e confirm_cluster_name=etcd "$ROOT/playbooks/etcd-reset.yml"
exits 2
says 'belong to the deployment prod, and not to test. Nothing has been changed'
windlass apply -i "$d/test.yaml" -e "credentials_dir=$d/credentials" --playbooks "$ROOT/playbooks" --yes
exits 1
says 'belong to the deployment prod, and not to test; windlass changed nothing'

echo "== to destroy it removes its own keys alone"
destroy test
exits 0
[ ! -e "$own/ca.key" ] || broken "the keys of test are left"
keys | diff "$scratch/keys-of-prod" - || broken "the keys of prod have changed"
answers h1 "$d/credentials/etcd"

echo "== keys of an earlier version that both could have are refused"
rm -r "$record" "$d/credentials/_deployments"
keys >"$scratch/keys-of-prod"
for name in prod test; do
  destroy $name
  [ "$code" != 0 ] || broken "it removes keys that may be those of the other"
  says 'has the keys of a deployment, and nothing says whose they are'
done
keys | diff "$scratch/keys-of-prod" - || broken "the keys of prod have changed"

echo "== alone, it uses none that its hosts do not trust, and removes none"
mv "$d/prod.yaml" "$scratch"
etcd_of test
exits 2
says 'nothing says to which deployment the keys in .*/credentials/etcd belong'
destroy test
exits 0
says 'is kept: nothing says that they are those of this cluster'
keys | diff "$scratch/keys-of-prod" - || broken "the keys of prod have changed"

echo "== the one whose hosts trust them gets the record"
rm "$d/test.yaml"
mv "$scratch/prod.yaml" "$d"
windlass playbook -i "$d/prod.yaml" --check "$ROOT/playbooks/etcd.yml"
exits 0
[ ! -e "$record" ] || broken "a dry run has written the record"
etcd_of prod
exits 0
grep -q '"prod"' "$record" || broken "there is no record"
destroy prod
exits 0
[ ! -e "$d/credentials/etcd" ] || broken "the keys of prod are left"
