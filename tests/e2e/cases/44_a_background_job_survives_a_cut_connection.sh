# shellcheck shell=bash
# A task with async is followed while its connection is cut; a job that is left alone ends after windlass has.
cat >"$scratch/playbook.yml" <<'PLAY'
- hosts: h1
  gather_facts: false
  tasks:
    - name: Left alone
      shell: sleep 4; touch /run/went-on
      async: 60
      poll: 0
      register: left
    - name: The connection ends under this one
      shell: echo begun >/run/begun; sleep 15; echo "whole"
      async: 60
      poll: 1
      register: followed
    - debug:
        msg: "stdout is {{ followed.stdout }}, {{ left.ansible_job_id }}"
PLAY
on h1 'rm -f /run/begun /run/went-on'
windlass playbook -i "$inventory" "$scratch/playbook.yml" >"$scratch/log" 2>&1 &
run=$!
for _ in $(seq 1200); do
  ! on h1 'test -e /run/begun' || break
  sleep 0.1
done
# Until windlass knows that the job has begun.
sleep 3
# Every SSH connection of the host ends; its sshd stays.
on h1 'for p in $(pgrep -P "$(systemctl show -p MainPID --value ssh)"); do kill -KILL $p || true; done'
wait $run || true
cat "$scratch/log"
tail -1 "$scratch/log" | matches 'exit code 0$' || broken "the run failed"
grep -q 'stdout is whole' "$scratch/log" || broken "the job did not go on"
on h1 'test -e /run/went-on' || broken "the job that was left alone did not go on"
job=$(grep -o 'j[0-9]*\.[0-9]*' "$scratch/log" | tail -1)
[ "$(on h1 'ls /root/.ansible_async')" = "$job" ] || broken "more than the job that was left alone is on the host"
[ "$(on h1 'stat -c %a /root/.ansible_async /root/.ansible_async/*' | sort -u)" = 700 ] || broken "others may read it"
# A later run asks after it, and cleans up.
cat >"$scratch/later.yml" <<'PLAY'
- hosts: h1
  gather_facts: false
  tasks:
    - async_status: {jid: "{{ job }}"}
      register: status
      failed_when: not status.finished or status.rc != 0
    - async_status: {jid: "{{ job }}", mode: cleanup}
PLAY
windlass playbook -i "$inventory" -e "job=$job" "$scratch/later.yml"
exits 0
found=$(on h1 'test ! -d /root/.ansible_async || ls /root/.ansible_async')
[ -z "$found" ] || broken "something is left on the host"
