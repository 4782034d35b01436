# Something other than the plan showed would be done, or it would be done to other hosts.
fresh
cat >"$state/program.py" <<'P'
#!/usr/bin/env python3
import json, os, random, sys
here = os.path.dirname(os.path.abspath(__file__))
variables = json.load(open(os.path.join(here, "variables.json")))
# As programs do that are written in languages whose maps have no order.
variables["labels"] = dict(random.sample(sorted(variables["labels"].items()), 5))
variables = dict(random.sample(sorted(variables.items()), len(variables)))
hosts = open(os.path.join(here, "program.hosts")).read().split()
random.shuffle(hosts)
print(json.dumps({"etcd": {"hosts": hosts}, "_meta": {"hostvars": {host: variables for host in hosts}}}))
P
chmod +x "$state/program.py"
variables() {
  printf '{"ansible_host": "%s", "ansible_user": "root", "ansible_ssh_private_key_file": "%s", "ansible_ssh_common_args": "-o UserKnownHostsFile=%s", "etcd_bundle": "%s", "labels": {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5}, "etcd_flags": {"snapshot-count": "%s"}}\n' \
    "$(sed -n 's/^h1 ansible_host=//p' "$inventory")" "$state/id_ed25519" "$state/known_hosts" "$ROOT/target/etcd/3.5" "$1" >"$state/variables.json"
}
deployment() { windlass "$1" -i "$state/program.py" --playbooks "$ROOT/playbooks" "${@:2}"; }
echo h1 >"$state/program.hosts"
setting() { on h1 cat /etc/etcd/etcd.env | matches "SNAPSHOT_COUNT=.*$1" || broken "etcd has another setting than $1"; }
variables 20000

# The order in which a program prints is not what it says.
for count in 20000 20001 20002; do
  variables $count
  deployment apply --yes
  exits 0
  setting "$count"
done

# Another setting than the plan was made for.
# shellcheck disable=SC2317  # at_question runs it
changes() { variables 30000; }
variables 20003
at_question 'Apply?' changes y apply -i "$state/program.py" --playbooks "$ROOT/playbooks"
exits 1
says 'input: host h1 has changed'
setting 20002
variables 20003

# A file that the request names: another text under the same name.
echo one >"$state/ca.crt"
sed -i 's#"labels"#"karmada_ca_cert": "ca.crt", &#' "$state/variables.json"
# shellcheck disable=SC2317  # at_question runs it
changes() { echo two >"$state/ca.crt"; }
at_question 'Apply?' changes y apply -i "$state/program.py" --playbooks "$ROOT/playbooks"
exits 1
says 'input: file .*/ca\.crt has changed'

# The user's own playbooks: their variables and roles count. A log next to them does not, and a pipe blocks nothing.
rm -rf "$state/own"
mkdir "$state/own"
cp -r "$ROOT/playbooks" "$ROOT/roles" "$state/own"
mkdir "$state/own/playbooks/group_vars"
mkfifo "$state/own/playbooks/pipe" "$state/own/roles/pipe"
# shellcheck disable=SC2317  # at_question runs it
changes() {
  date >>"$state/own/playbooks/log"
  echo '{}' >"$state/own/playbooks/group_vars/all.yml"
}
at_question 'Apply?' changes y apply -i "$state/program.py" --playbooks "$state/own/playbooks"
exits 1
says 'input: playbooks and roles has changed'
# shellcheck disable=SC2317  # at_question runs it
changes() { date >>"$state/own/playbooks/log"; }
at_question 'Apply?' changes y apply -i "$state/program.py" --playbooks "$state/own/playbooks"
exits 0

# Other hosts than were named.
# shellcheck disable=SC2317  # at_question runs it
changes() { echo h2 >"$state/program.hosts"; }
at_question 'Name of the deployment' changes karmada destroy -i "$state/program.py" --playbooks "$ROOT/playbooks"
exits 1
says 'now names other hosts for karmada'
[ "$(on h1 systemctl is-active etcd)" = active ] || broken "etcd of h1 is gone"
on h2 '[ ! -e /var/lib/windlass ]' || broken "something was done to h2"
