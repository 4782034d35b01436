# shellcheck shell=bash
# Needs h1 up, and nothing on it.
# What the filters make of hostile text is, for systemd itself, that very text: one argument, one variable.
cat >"$scratch/play.yml" <<'END'
- hosts: h1
  gather_facts: false
  vars:
    hostile: >-
      %h %% $HOME ${HOME} "two" 'one' back\slash \t `id` $(id) ; & | < > # é
  tasks:
    - name: Write a unit and its environment file
      ansible.builtin.copy:
        dest: "{{ item.key }}"
        content: "{{ item.value }}"
      loop: "{{ files | dict2items }}"
      vars:
        files:
          /run/hostile.env: "TEXT={{ hostile | environment_quote }}\n"
          /run/systemd/system/hostile.service: |
            [Unit]
            Description={{ hostile | systemd_value }}
            [Service]
            Type=oneshot
            EnvironmentFile=/run/hostile.env
            ExecStart=/bin/sh -c {{ 'printf "%s" "$1" >/run/hostile.argument; printf "%s" "$TEXT" >/run/hostile.variable' | systemd_quote }} sh {{ hostile | systemd_quote }}
            {{ {'CPUQuota': '200%', 'MemoryMax': '2G'} | systemd_limits }}
    - name: Start the unit
      ansible.builtin.systemd_service:
        name: hostile
        state: started
        daemon_reload: true
    - name: Read what it was given
      ansible.builtin.command: cat /run/hostile.{{ item | quote }}
      loop: [argument, variable]
      register: given
      changed_when: false
    - name: Check that it was the text
      ansible.builtin.assert:
        that: item.stdout == hostile
      loop: "{{ given.results }}"
END
windlass playbook -i "$inventory" "$scratch/play.yml"
on h1 'rm -f /run/hostile.* /run/systemd/system/hostile.service; systemctl daemon-reload'
exits 0
