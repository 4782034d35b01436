# shellcheck shell=bash
fresh
on h2 "cat >/etc/machine-id" <<<"$(on h1 cat /etc/machine-id)"
on h2 "systemd-socket-activate -a -l 2380 cat >/dev/null 2>&1 &"
hosts split h1 h3
trees >"$scratch/before"
etcd_playbook
exits 2
says 'h2.*ports: TCP port 2380 is already in use; machine_id: the same as on h1'
says 'h1.*machine_id: the same as on h2.*reachability: cannot reach .*\.13/2379'
says 'h3.*reachability: cannot reach .*\.11/2380'
trees >"$scratch/after"
same_trees "$scratch/before" "$scratch/after"
# What is left out is left out, by name.
etcd_playbook --check -e preflight_skip=machine_id,reachability
exits 2
says 'h2.*ports: TCP port 2380 is already in use'
does_not_say 'machine_id:|reachability:'
recap h1 failed 0
etcd_playbook --check -e preflight_skip=machine-id
exits 2
says 'preflight_skip has unknown checks: machine-id'
hosts join h1 h3
# Two names of one machine are no clones: no message says to remove the machine id.
sed "s/^h2 .*/$(sed -n 's/^h1 /h2 /p' "$inventory" | sed 's/[\/&]/\\&/g')/" "$inventory" >"$scratch/twice.ini"
etcd_inventory=$scratch/twice.ini etcd_playbook --check
exits 2
says 'machine_id: this is the same machine as h[12], under another name'
does_not_say 'rm /etc/machine-id'
