# shellcheck shell=bash
# Without `fresh`: the hosts may be anyone's, only what is made here matters.
ssh-keygen -q -t ed25519 -N '' -C guest@here -f "$scratch/key"
cat >"$scratch/keys.yml" <<'PLAY'
- hosts: h1
  become: true
  gather_facts: false
  tasks:
    - name: A guest
      ansible.builtin.user:
        name: guest
        shell: /bin/sh
    - name: May log in
      ansible.posix.authorized_key:
        user: guest
        key: "{{ lookup('file', key) }}"
        key_options: no-port-forwarding
        state: "{{ state }}"
        exclusive: "{{ state == 'present' }}"
PLAY
guest() {
  local address
  address=$(grep -oE '^h1 .*ansible_host=[0-9.]+' "$inventory" | sed 's/.*ansible_host=//')
  ssh -F none -i "$scratch/key" -o IdentitiesOnly=yes -o BatchMode=yes -o UserKnownHostsFile="$state/known_hosts" \
    "guest@$address" id -un
}
keys() { windlass playbook -i "$state/inventory-deploy.ini" -e "key=$scratch/key.pub" "$@" "$scratch/keys.yml"; }
on h1 userdel -rf guest || true
keys -e state=present --check
exits 0
on h1 "! id guest" || broken "check mode made the user"
keys -e state=present
exits 0
[ "$(guest)" = guest ] || broken "sshd does not take the key"
[ "$(on h1 stat -c %U:%a /home/guest/.ssh /home/guest/.ssh/authorized_keys | tr '\n' ' ')" = "guest:700 guest:600 " ] || broken "wrong owners or modes"
keys -e state=present
recap h1 changed 0
keys -e state=absent
recap h1 changed 1
! guest || broken "the key still counts"
