# shellcheck shell=bash
cat >"$scratch/ping.yml" <<'PLAY'
- hosts: etcd
  gather_facts: false
  tasks:
    - ansible.builtin.ping:
PLAY
sed 's/^ansible_password=.*/ansible_password=wrong/' "$state/inventory-ops-password.ini" >"$scratch/inventory.ini"
windlass playbook -i "$scratch/inventory.ini" "$scratch/ping.yml"
exits 4
recap h1 unreachable 1
says 'cannot log in to h1 .* as ops: permission denied .*; tried password'
does_not_say 'wrong'
