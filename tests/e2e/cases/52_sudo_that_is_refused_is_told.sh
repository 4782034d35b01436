# shellcheck shell=bash
cat >"$scratch/ping.yml" <<'PLAY'
- hosts: etcd
  become: true
  gather_facts: false
  tasks:
    - ansible.builtin.ping:
PLAY
sed 's/^ansible_become_password=.*/ansible_become_password=wrong/' "$state/inventory-ops-password.ini" >"$scratch/inventory.ini"
windlass playbook -i "$scratch/inventory.ini" "$scratch/ping.yml"
[ "$code" != 0 ] || broken "it became root with a wrong password"
says 'sudo|[Pp]assword'
sed '/^ansible_become_password=/d' "$state/inventory-ops-password.ini" >"$scratch/inventory.ini"
windlass playbook -i "$scratch/inventory.ini" "$scratch/ping.yml"
[ "$code" != 0 ] || broken "it became root without a password"
says 'sudo|[Pp]assword'
windlass playbook -i "$state/inventory-plain.ini" "$scratch/ping.yml"
[ "$code" != 0 ] || broken "plain became root"
says 'sudo|[Pp]assword'
