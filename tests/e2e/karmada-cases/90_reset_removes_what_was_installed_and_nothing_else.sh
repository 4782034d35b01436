. "$ROOT/tests/e2e/karmada-lib.sh"
a_control_plane
on h1 'echo mine >/etc/windlass/mine'
karmada karmada-reset -e confirm_instance=other
exits 2
says 'Nothing has been removed'
[ "$(on h1 systemctl is-active karmada-apiserver)" = active ] || broken "it was stopped all the same"
karmada karmada-reset -e confirm_instance=karmada -e karmada_keep_credentials=true
exits 0
for h in h1 h2 h3; do
  # etcd's programs, which lie beside, stay; so does the lock, which only `windlass destroy` removes.
  ! tree "$h" | grep -E '/(opt|etc)/windlass|karmada' | grep -vE '/etc/windlass(/mine)?( |$)|/opt/windlass(/etcd(/[^ ]*)?)? |/var/(log|lib/systemd|lib/windlass)/' || broken "something is left on $h"
done
[ "$(on h1 cat /etc/windlass/mine)" = mine ] || broken "a stranger's file is gone"

# Without the hosts' certificates nothing shows whether other hosts use the CA.
one_host
printf '\n[load_balancer]\nh2 ansible_host=%s\n' "$(address_of h2)" >>"$karmada_inventory"
credentials=$state/credentials/karmada
mv "$credentials/hosts" "$scratch/hosts"
karmada karmada-reset -e confirm_instance=karmada
exits 0
says 'is kept, because it has no certificates of h1,'
[ -e "$credentials/ca.key" ] || broken "the CA is gone"
# With them it goes, although the host of the load balancer has none.
mkdir -p "$credentials/hosts/h1"
karmada karmada-reset -e confirm_instance=karmada
exits 0
[ "$(ls "$credentials")" = encryption-config.yaml ] || broken "left: $(ls "$credentials")"
