# shellcheck shell=bash
# A local user of a host and the deployment's lock: nothing that he can write is written through, waited for or believed.
# First against what windlass 0.1.0 left on hosts, where everybody may write sessions/ and lock the mutex.
fresh
d=/var/lib/windlass/karmada
as_plain() { local h=$1; shift; hosts exec "$h" su plain -s /bin/sh -c "$*"; }
# in_time ARGUMENT...: an apply that has to end soon.
in_time() {
  local a
  mapfile -t a < <(apply_arguments)
  code=0
  timeout -k 5 900 "$WINDLASS" apply "${a[@]}" --yes "$@" >"$output" 2>&1 </dev/null || code=$?
  cat "$output"
  [ "$code" != 124 ] || broken "it waits for a local user: apply $*"
}

run=0123456789abcdef0123456789abcdef
for h in h1 h2 h3; do
  on $h "mkdir -p $d && install -d -m 1733 $d/sessions && touch $d/mutex $d/beat && touch -d '-1 hour' $d/beat"
  on $h "printf '7 $run\nholder ann@elsewhere\npid 7\nprocess gone 1\nsince 1763645954\ncommand windlass apply\n' >$d/lock"
  on $h 'echo precious >/etc/victim'
done
# He keeps the mutex locked, a dead holder alive, and leaves a pipe and a link where root reads and writes.
hosts exec h1 su plain -s /bin/sh -c "flock $d/mutex sleep 3600 >/dev/null 2>&1 & echo \$!" >"$scratch/sleeper"
sleeper=$(tail -1 "$scratch/sleeper" | tr -d '\r')
as_plain h1 "cd $d/sessions && boot=\$(cat /proc/sys/kernel/random/boot_id) && x=\$(sed 's/.*) //' /proc/$sleeper/stat | cut -d' ' -f20) &&
  echo - >\$boot.$sleeper.\$x.$run && mkfifo \$boot.1.1.pipe && mkdir directory && ln -s /etc/victim \$boot.2.2.$run"

# Whether a run of 0.1.0 is still there cannot be known: that is said, and nothing is waited for.
in_time
exits 1
says 'windlass 0.1.0'
says 'hint: .*--break-lock'
in_time --break-lock
exits 0
healthy
for h in h1 h2 h3; do
  [ "$(on $h cat /etc/victim)" = precious ] || broken "root wrote through a link on $h"
  lock_of $h | sed -n 1p | matches -E '^8 -$' || broken "the lock of $h is not given back: $(lock_of $h)"
  [ "$(on $h stat -c %a:%U $d $d/sessions $d/.mutex | tr '\n' ' ')" = "755:root 700:root 600:root " ] || broken "others may open what is beside the lock of $h"
  no_sessions $h
done

# Now he has no place to write to, and nothing to lock.
as_plain h1 "cat $d/lock" || broken "the local user can do nothing at all, so nothing was tried"
for attempt in "touch $d/x" "touch $d/sessions/x" "ls $d/sessions" "flock -n $d/.mutex true" "mv $d $d.mine" "mkdir /var/lib/windlass/other" "echo x >$d/lock"; do
  ! as_plain h1 "$attempt" 2>/dev/null || broken "a local user may: $attempt"
done
