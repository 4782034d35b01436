. "$ROOT/tests/e2e/karmada-lib.sh"
on h1 'echo mine >/etc/windlass/mine'
karmada karmada-reset -e confirm_instance=other
exits 2
says 'Nothing has been removed'
[ "$(on h1 systemctl is-active karmada-apiserver)" = active ] || broken "it was stopped all the same"
karmada karmada-reset -e confirm_instance=karmada
exits 0
for h in h1 h2 h3; do
  # etcd's programs, which lie beside, stay; so does the lock, which only `windlass destroy` removes.
  ! tree "$h" | grep -E '/(opt|etc)/windlass|karmada' | grep -vE '/etc/windlass(/mine)?( |$)|/opt/windlass(/etcd(/[^ ]*)?)? |/var/(log|lib/systemd|lib/windlass)/' || broken "something is left on $h"
done
[ "$(on h1 cat /etc/windlass/mine)" = mine ] || broken "a stranger's file is gone"
