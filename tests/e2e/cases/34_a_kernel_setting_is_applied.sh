# shellcheck shell=bash
# Settings of the network belong to the host alone.
cat >"$scratch/setting.yml" <<'PLAY'
- hosts: h1
  become: true
  gather_facts: false
  tasks:
    - name: Forwarding
      ansible.posix.sysctl:
        name: net.ipv4.ip_forward
        value: "{{ value }}"
        sysctl_file: /etc/sysctl.d/50-e2e.conf
        sysctl_set: true
PLAY
setting() { windlass playbook -i "$state/inventory-deploy.ini" -e "value=$1" "${@:2}" "$scratch/setting.yml"; }
on h1 "command -v sysctl" || broken "h1 has no sysctl: its packages are in tests/hosts/lib/template.sh"
now() { on h1 cat /proc/sys/net/ipv4/ip_forward; }
setting 0
setting 1 --check
recap h1 changed 1
[ "$(now)" = 0 ] || broken "check mode set it"
setting 1
recap h1 changed 1
[ "$(now)" = 1 ] || broken "it is not in force"
setting 1
recap h1 changed 0
setting 0
[ "$(now) $(on h1 cat /etc/sysctl.d/50-e2e.conf)" = "0 net.ipv4.ip_forward=0" ] || broken "it was not set back"
on h1 rm /etc/sysctl.d/50-e2e.conf
