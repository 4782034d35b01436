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
running() { on h1 'pgrep -f "[s]leep 31[0-9]" || true; ls -d /run/.windlass.* /run/user/*/.windlass.* /dev/shm/.windlass.* 2>/dev/null || true'; }
# The last processes of a session take a moment to end.
nothing_runs() {
  for _ in $(seq 1200); do
    [ -n "$(running)" ] || return 0
    sleep 0.1
  done
  broken "$1: left on the host: $(running)"
}

# interrupted INVENTORY SIGNAL SECONDS TIMES: a run that gets the signal so often while its task is under way.
interrupted() {
  on h1 'rm -f /run/begun /run/ended /run/too-far'
  # A run that was started with nohup, as these tests may be, ignores HUP.
  env --default-signal=HUP "$WINDLASS" playbook -i "$state/$1.ini" -e "seconds=$3" "$scratch/playbook.yml" >"$output" 2>&1 </dev/null &
  local run=$!
  for _ in $(seq 1200); do
    ! on h1 'test -e /run/begun' || break
    sleep 0.1
  done
  on h1 'test -e /run/begun' || { cat "$output"; broken "the task did not begin"; }
  for _ in $(seq "$4"); do
    kill -"$2" $run || true
    sleep 0.5
  done
  code=0
  wait $run || code=$?
  cat "$output"
  exits 99
  ! on h1 'test -e /run/too-far' || broken "a further task was begun"
}

interrupted inventory INT 10 1
says 'stopping when the running tasks have finished'
recap h1 changed 1
on h1 'test -e /run/ended' || broken "the task in flight was cut off"
nothing_runs inventory

# A terminal that is closed, twice, is no second Ctrl-C.
interrupted inventory HUP 10 2
says 'stopping when the running tasks have finished'
on h1 'test -e /run/ended' || broken "the task in flight was cut off"
nothing_runs inventory

# As root; through sudo, which passes signals on; through su.
for way in inventory:TERM inventory-deploy:INT inventory-su:TERM; do
  interrupted "${way%:*}" "${way#*:}" 315 2
  says 'stopped at once'
  nothing_runs "$way"
done
