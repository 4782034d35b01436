# shellcheck shell=bash
etcd_playbook
exits 0
nothing_changed
# A directory named from where one stands is the same directory.
cd "$ROOT/target" || exit
windlass playbook -i "$inventory" -e etcd_bundle=etcd/3.5 "$ROOT/playbooks/etcd.yml"
exits 0
nothing_changed
etcd_playbook --check --diff
exits 0
nothing_changed
windlass playbook -i "$inventory" "$ROOT/playbooks/etcd-status.yml"
exits 0
says 'h2 +3\.5\.16'
says leader
nothing_changed
