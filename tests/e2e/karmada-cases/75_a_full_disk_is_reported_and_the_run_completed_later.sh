. "$ROOT/tests/e2e/karmada-lib.sh"
a_control_plane
hosts shrink h2 /opt/windlass 5m
karmada karmada
hosts unmount h2 /opt/windlass
exits 2
says 'h2.*space: /opt/windlass has 5 MB free and needs 1024 MB'
nothing_touched
# Room for all but one program, which has to be copied again.
program=$(on h2 readlink -f /opt/windlass/karmada/scheduler/current/karmada-scheduler)
before=$(on h2 sha256sum "$program")
on h2 rm "$program"
hosts shrink h2 /opt/windlass/karmada/scheduler 5m
karmada karmada
exits 2
says 'cannot write /opt/windlass/karmada/scheduler/.*: No space left on device'
says 'hint: free disk space on the host'
hosts unmount h2 /opt/windlass/karmada/scheduler
karmada karmada
exits 0
recap h1 changed 0
[ "$(on h2 sha256sum "$program")" = "$before" ] || broken "it was not completed"
