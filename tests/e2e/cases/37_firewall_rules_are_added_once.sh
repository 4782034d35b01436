# shellcheck shell=bash
# The kernel's own rules, in a network namespace of their own.
command -v iptables >/dev/null || cannot_run "this machine has no iptables"
cat >"$scratch/rules.yml" <<'EOF'
- hosts: localhost
  connection: local
  gather_facts: false
  tasks:
    - iptables: { chain: MINE, chain_management: true }
    - iptables: { chain: INPUT, protocol: tcp, source: 10.0.0.0/24, destination_ports: [2379, 2380], jump: ACCEPT, comment: etcd }
    - iptables: { chain: INPUT, protocol: tcp, destination_port: '22', ctstate: [NEW], syn: match, jump: MINE, action: insert, rule_num: '1' }
    - iptables: { chain: FORWARD, policy: DROP }
EOF
sed 's/ }$/, state: absent }/; /policy/d' "$scratch/rules.yml" | sed '/MINE, chain_management/d' >"$scratch/gone.yml"
cat >"$scratch/all" <<EOF
set -e
run() { "$WINDLASS" playbook "\$@"; }
iptables -S >before
run --check "$scratch/rules.yml" | grep -E 'changed=4'
iptables -S >after; diff before after
run "$scratch/rules.yml" | grep -E 'changed=4'
iptables -S
run "$scratch/rules.yml" | grep -E 'changed=0'
iptables -S | grep -x -- '-P FORWARD DROP'
iptables -S | grep -- '--dports 2379,2380'
run "$scratch/gone.yml" | grep -E 'changed=2'
run "$scratch/gone.yml" | grep -E 'changed=0'
EOF
cd "$scratch" || exit
unshare -n bash "$scratch/all" || broken "the rules are not as they should be"
