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
exits 2
says 'cannot become root: sudo rejected the password$'
says "hint: sudo needs the login user's own password"
sed '/^ansible_become_password=/d' "$state/inventory-ops-password.ini" >"$scratch/inventory.ini"
windlass playbook -i "$scratch/inventory.ini" "$scratch/ping.yml"
exits 2
says 'fatal: \[h1\]: cannot become root: sudo asks for a password, and none was given$'
says 'task: .*/ping.yml:5:7$'
says 'hint: pass it with -K, or set ansible_become_password$'
windlass playbook -i "$state/inventory-plain.ini" "$scratch/ping.yml"
exits 2
says 'cannot become root: sudo'
