# shellcheck shell=bash
fresh
trees >"$scratch/before"
sed "s#UserKnownHostsFile=$state/known_hosts#UserKnownHostsFile=$scratch/known_hosts#" "$inventory" >"$scratch/inventory.ini"
address=$(hosts list | awk '$1 == "h2" {print $2}')
other=$(awk '$1 !~ /\.12$/ && /ed25519/ {print $3; exit}' "$state/known_hosts")
grep -v "^$address " "$state/known_hosts" >"$scratch/known_hosts"
echo "$address ssh-ed25519 $other" >>"$scratch/known_hosts"
windlass playbook -i "$scratch/inventory.ini" -e "etcd_bundle=$ROOT/target/etcd/3.5" "$ROOT/playbooks/etcd.yml"
exits 4
recap h2 unreachable 1
says 'unreachable: \[h2\]: WARNING: the host key of h2 \(.*\) has changed: it shows ssh-ed25519 SHA256:.*, but .*/known_hosts:[0-9]+ has ssh-ed25519 SHA256:'
says 'hint: an attacker may be intercepting the connection; .* remove the old key: .*/known_hosts:[0-9]+'
trees >"$scratch/after"
same_trees "$scratch/before" "$scratch/after"
