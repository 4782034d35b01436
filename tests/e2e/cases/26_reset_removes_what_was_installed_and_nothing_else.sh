# shellcheck shell=bash
windlass playbook -i "$inventory" -e confirm_cluster_name=wrong "$ROOT/playbooks/etcd-reset.yml"
exits 2
says 'named etcd, not wrong'
healthy
on h1 "echo mine >/etc/etcd/mine && useradd somebody"
windlass playbook -i "$inventory" -e confirm_cluster_name=etcd "$ROOT/playbooks/etcd-reset.yml"
exits 0
[ "$(on h1 cat /etc/etcd/mine)" = mine ] || broken "it removed a file of another user"
for h in h1 h2 h3; do
  if tree $h | grep -E 'etcd' | grep -v -E '^\./etc/etcd(/mine| )|passwd|group|shadow'; then broken "something is left on $h"; fi
  ! on $h id etcd || broken "the user is left on $h"
done
[ ! -e "$state/credentials/etcd" ] || broken "credentials are left"
windlass playbook -i "$inventory" -e confirm_cluster_name=etcd "$ROOT/playbooks/etcd-reset.yml"
exits 0
nothing_changed
