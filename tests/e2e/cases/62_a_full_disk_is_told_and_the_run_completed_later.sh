# shellcheck shell=bash
fresh
hosts shrink h2 /usr/local/bin 5m
etcd_playbook -e preflight_skip=space
exits 2
recap h2 failed 1
says 'cannot write /usr/local/bin/.*: No space left on device$'
says 'hint: make room on the host'
on h2 "test -z \"\$(find /usr/local -type f)\"" || broken "half a file is on h2"
etcd_playbook
exits 2
says 'space: /usr/local/bin has'
hosts unmount h2 /usr/local/bin
etcd_playbook
exits 0
healthy
