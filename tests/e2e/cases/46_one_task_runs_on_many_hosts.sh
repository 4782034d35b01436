# shellcheck shell=bash
fresh
windlass run all -i "$inventory" -a hostname
exits 0
for h in h1 h2 h3; do grep -aqA1 "^$h | CHANGED | rc=0 >>" "$output" && says "^$h\$"; done

# Nothing is changed in check mode, then something, then nothing more.
trees >"$scratch/before"
windlass run all -i "$state/inventory-deploy.ini" -b -m copy -a '{"dest": "/root/ad-hoc", "content": "x\n", "mode": "0600"}' -C
exits 0
[ "$(grep -ac 'CHANGED' "$output")" = 3 ] || broken "not all three would be changed"
trees >"$scratch/after"
same_trees "$scratch/before" "$scratch/after"
for word in CHANGED SUCCESS; do
  windlass run all -i "$state/inventory-deploy.ini" -b -m copy -a 'dest=/root/ad-hoc content="x\n" mode=0600' -o
  exits 0
  [ "$(grep -ac "^h[123] | $word => " "$output")" = 3 ] || broken "not all three say $word"
done
[ "$(on h2 cat /root/ad-hoc)" = x ] || broken "h2 has another content"

# Settings of a file: where the hosts are, whom to become, what counts as well.
printf '[defaults]\ninventory = %s\n[privilege_escalation]\nbecome = true\n' "$state/inventory-deploy.ini" >"$scratch/ansible.cfg"
export ANSIBLE_CONFIG=$scratch/ansible.cfg
windlass run 'all:!h1' -a 'id -un' -o
exits 0
says '^h2 \| CHANGED \| rc=0 \| \(stdout\) root'
does_not_say '^h1 '

# One host fails, one is away.
hosts kill h3
windlass run all -T 20 -m shell -a 'test $(hostname) = h1'
exits 4
says '^h1 \| CHANGED \| rc=0'
says '^h2 \| FAILED \| rc=1'
says '^h3 \| UNREACHABLE!'
hosts start h3
