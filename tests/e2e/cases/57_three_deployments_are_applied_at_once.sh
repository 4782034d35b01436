# shellcheck shell=bash
# In one process, through the core that all faces share: each has its own inventory, vault password, credentials, lock and
# journal. Each is an etcd cluster of one member.
fresh
n=0
for name in one two three; do
  n=$((n + 1))
  mkdir "$scratch/$name"
  echo "password of $name" >"$scratch/$name/password"
  quota=$((2147483648 + n * 1048576))
  "$WINDLASS" vault encrypt-string --vault-password-file "$scratch/$name/password" "$quota" >"$scratch/quota"
  {
    echo "etcd:"
    echo "  hosts: {h$n: {ansible_host: $(grep -oE "^h$n ansible_host=[0-9.]+" "$inventory" | cut -d= -f2)}}"
    echo "  vars:"
    echo "    ansible_user: root"
    echo "    ansible_ssh_private_key_file: $state/id_ed25519"
    echo "    ansible_ssh_common_args: -o UserKnownHostsFile=$state/known_hosts -o StrictHostKeyChecking=yes"
    echo "    etcd_bundle: $ROOT/target/etcd/3.5"
    echo "    karmada_deployment: $name"
    sed '1s/^/    etcd_quota_backend_bytes: /; 2,$s/^/    /' "$scratch/quota"
  } >"$scratch/$name/hosts.yml"
done
cat "$scratch/one/hosts.yml"
(cd "$ROOT" && DEPLOYMENTS=$scratch/one,$scratch/two,$scratch/three cargo test --quiet --test deployments -- --ignored)
n=0
for name in one two three; do
  n=$((n + 1))
  on h$n cat /var/lib/windlass/karmada/journal >"$scratch/journal"
  grep -q "\"deployment\":\"$name\".*\"done\":true" "$scratch/journal" || broken "the journal of h$n is not that of $name: $(cat "$scratch/journal")"
  on h$n "grep -rq $((2147483648 + n * 1048576)) /etc/etcd" || broken "h$n has not the setting of $name"
  on h$n cat /etc/etcd/pki/ca.crt | cmp - "$scratch/$name/credentials/etcd/ca.crt" || broken "h$n does not trust the CA of $name"
  no_sessions h$n
done
[ "$(cat "$scratch"/*/credentials/etcd/ca.crt | grep -c BEGIN)" = 3 ] || broken "the deployments share a CA"
! cmp -s "$scratch/one/credentials/etcd/ca.crt" "$scratch/two/credentials/etcd/ca.crt" || broken "the deployments share a CA"
