# shellcheck shell=bash
# A host whose /dev/shm is nearly full, and a local user who fills and empties it and /tmp in the middle of runs. What a
# program said is whole, or the task fails. Needs h1 only, in any state.
cat >"$scratch/large.yml" <<'PLAY'
- hosts: h1
  gather_facts: false
  tasks:
    - shell: "seq 1 1000000; true"
      register: large
    - assert: {that: large.stdout_lines | length == 1000000}
PLAY
cat >"$scratch/small.yml" <<'PLAY'
- hosts: h1
  gather_facts: false
  tasks:
    - command: hostname
      register: small
      loop: "{{ range(20) | list }}"
    - assert: {that: item.stdout == 'h1'}
      loop: "{{ small.results }}"
      loop_control: {label: ''}
PLAY

on h1 mount -o remount,size=2m /dev/shm
for user in root dashy busy; do
  windlass playbook -i "$inventory" -e ansible_user="$user" -b "$scratch/large.yml"
  exits 0
done
# A user without become has no other place, unless a login gives one.
windlass playbook -i "$inventory" -e ansible_user=plain "$scratch/large.yml"
[ "$code" = 0 ] || says 'cannot store the whole output of the shell command on the host: /dev/shm: No space left on device'
[ "$code" = 0 ] || says 'hint: free disk space on the host'

hosts ssh plain@h1 'while [ ! -e /tmp/enough ]; do head -c 3000000 /dev/zero >/dev/shm/fill; sleep 0.05; rm -f /dev/shm/fill; done 2>/dev/null' &
filler=$!
for user in root dashy busy plain; do
  become=(-b)
  [ "$user" != plain ] || become=()
  windlass playbook -i "$inventory" -e ansible_user="$user" "${become[@]}" "$scratch/small.yml"
  # A user without free space gets an error; an empty output does not count as an answer.
  [ "$code" = 0 ] || { says 'No space left on device|has room' && does_not_say 'Assertion failed'; }
  [ "$user" = plain ] || exits 0
done
on h1 touch /tmp/enough
wait $filler
on h1 'rm -f /tmp/enough /dev/shm/fill; mount -o remount,size=50% /dev/shm'
found=$(on h1 'find /run -ignore_readdir_race -name ".windlass.*"')
[ -z "$found" ] || broken "a session's directory is left in /run"
