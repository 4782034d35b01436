# shellcheck shell=bash
fresh
cat >"$scratch/who.yml" <<'PLAY'
- hosts: etcd
  become: true
  gather_facts: true
  tasks:
    - name: Who
      ansible.builtin.command: id -un
      register: who
      failed_when: who.stdout != 'root'
    - name: A file of root's
      ansible.builtin.copy:
        content: "{{ ansible_facts.hostname }} {{ marker }}\n"
        dest: /root/who
        mode: "0600"
    - name: As nobody who may log in
      ansible.builtin.command: id -un
      become_user: nobody
      register: nobody
      failed_when: nobody.stdout != 'nobody'
      # su would want nobody's own password.
      when: marker != 'inventory-su'
PLAY
# The harder the better: nothing below /tmp, /var/tmp, /dev/shm and the homes can be run.
for h in h1 h2 h3; do for at in /tmp /var/tmp /dev/shm /home /root; do hosts noexec "$h" "$at"; done; done
for how in inventory inventory-deploy inventory-ops-password inventory-su; do
  windlass playbook -i "$state/$how.ini" -e "marker=$how" "$scratch/who.yml"
  exits 0
  [ "$(on h3 cat /root/who)" = "h3 $how" ] || broken "$how wrote something else"
done
for shell in dashy busy; do
  windlass playbook -i "$state/inventory-deploy.ini" -e "ansible_user=$shell marker=$shell" "$scratch/who.yml"
  exits 0
done
# A key with a passphrase is asked for; without a terminal that is an error, and no hang.
windlass playbook -i "$inventory" -e "ansible_ssh_private_key_file=$state/id_encrypted marker=x" "$scratch/who.yml"
exits 4
