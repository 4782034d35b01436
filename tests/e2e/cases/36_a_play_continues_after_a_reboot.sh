# shellcheck shell=bash
hosts reset h1
cat >"$scratch/reboot.yml" <<'EOF'
- hosts: h1
  gather_facts: false
  tasks:
    - command: cat /proc/sys/kernel/random/boot_id
      register: before
      check_mode: false
    - reboot: { reboot_timeout: 600 }
      register: reboot
    - command: cat /proc/uptime
    - wait_for_connection: { timeout: 120 }
    - service_facts:
    - assert:
        that:
          - reboot.rebooted
          - ansible_check_mode or ansible_facts.services['ssh.service'].state == 'running'
          - ansible_check_mode or ansible_facts.services['ssh.service'].source == 'systemd'
    - hostname: { name: other-name }
    - mount_facts: { fstypes: [overlay] }
    - assert: { that: "ansible_facts.mount_points['/'].size_total > 0" }
EOF
before=$(on h1 'stat -c %Y /proc/1')
windlass playbook -i "$inventory" --check "$scratch/reboot.yml"
exits 0
[ "$(on h1 'stat -c %Y /proc/1')" = "$before" ] || broken "check mode restarted the host"
windlass playbook -i "$inventory" "$scratch/reboot.yml"
exits 0
found=$(on h1 'stat -c %Y /proc/1')
[ "$found" != "$before" ] || broken "the host did not restart"
[ "$(on h1 cat /etc/hostname)" = other-name ] || broken "the host's name is not kept"
windlass playbook -i "$inventory" --check "$scratch/reboot.yml"
recap h1 changed 2
