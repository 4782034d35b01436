# shellcheck shell=bash
fresh
hosts shrink h2 /opt 5m
etcd_playbook -e preflight_skip=space
exits 2
recap h2 failed 1
says 'cannot write /opt/windlass/.*: No space left on device$'
says 'hint: free disk space on the host'
on h2 "test -z \"\$(find /opt -type f)\"" || broken "half a file is on h2"
etcd_playbook
exits 2
says 'space: /opt/windlass has'
hosts unmount h2 /opt
etcd_playbook
exits 0
healthy
