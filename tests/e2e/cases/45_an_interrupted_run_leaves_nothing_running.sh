# shellcheck shell=bash
# Interrupted once: the task in flight ends, no further one begins. Interrupted twice: all that it started is ended.
cat >"$scratch/playbook.yml" <<'PLAY'
- hosts: h1
  gather_facts: false
  tasks:
    - name: In flight
      shell: echo begun >/run/begun; sleep {{ seconds }}; echo >/run/ended
      become: true
    - name: Not begun
      command: touch /run/too-far
PLAY
running() { on h1 'pgrep -f "[s]leep 31[0-9]" || true; ls -d /dev/shm/.windlass.* 2>/dev/null || true'; }

# interrupted SIGNAL SECONDS TIMES: a run that gets the signal so often while its task is under way.
interrupted() {
  on h1 'rm -f /run/begun /run/ended /run/too-far'
  "$WINDLASS" playbook -i "$state/inventory-deploy.ini" -e "seconds=$2" "$scratch/playbook.yml" >"$output" 2>&1 </dev/null &
  local run=$!
  for _ in $(seq 200); do
    ! on h1 'test -e /run/begun' || break
    sleep 0.1
  done
  for _ in $(seq "$3"); do
    kill -"$1" $run
    sleep 0.5
  done
  code=0
  wait $run || code=$?
  cat "$output"
  exits 99
  ! on h1 'test -e /run/too-far' || broken "a further task was begun"
}

for signal in INT TERM; do
  interrupted $signal 3 1
  says 'stopping after the tasks in flight'
  recap h1 changed 1
  on h1 'test -e /run/ended' || broken "the task in flight was cut off"
  [ -z "$(running)" ] || broken "left on the host: $(running)"

  interrupted $signal 315 2
  says 'stopped at once'
  for _ in $(seq 100); do
    [ -n "$(running)" ] || break
    sleep 0.1
  done
  [ -z "$(running)" ] || broken "left on the host: $(running)"
done
