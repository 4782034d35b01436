# shellcheck shell=bash
# Logging in and becoming root by passwords, with everything that can be told.
cat >"$scratch/id.yml" <<'PLAY'
- hosts: etcd
  gather_facts: false
  tasks:
    - ansible.builtin.command: id -un
PLAY
for way in ops-password su; do
  for level in -v -vv -vvv -vvvv; do
    windlass playbook -i "$state/inventory-$way.ini" "$level" --log-file "$scratch/log" \
      --output human --output "json=$scratch/json" --output "junit=$scratch/xml" "$scratch/id.yml"
    exits 0
    does_not_say 'opspass|viasupass|rootpass'
    ! grep -aE 'opspass|viasupass|rootpass' "$scratch/log" "$scratch/json" "$scratch/xml" || broken "a password was written"
  done
  says 'logged in'
  grep -q 'logged in' "$scratch/log" || broken "the log file has not what was logged"
done
