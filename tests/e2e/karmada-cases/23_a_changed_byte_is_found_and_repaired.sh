. "$ROOT/tests/e2e/karmada-lib.sh"
a_control_plane
program=$(on h2 readlink -f /opt/windlass/karmada/scheduler/current/karmada-scheduler)
certificate=/etc/windlass/karmada/webhook/pki/karmada-webhook.crt
before=$(on h2 sha256sum "$program" "$certificate")
on h2 "cp $program $program.x && printf x | dd of=$program.x bs=1 seek=4096 conv=notrunc && mv $program.x $program; printf x | dd of=$certificate bs=1 seek=100 conv=notrunc" 2>/dev/null
karmada karmada
exits 0
recap h1 changed 0
[ "$(on h2 sha256sum "$program" "$certificate")" = "$before" ] || broken "it was not mended"
# A process that runs with former files, though none differs any more: a plan says so, and a run restarts it.
on h2 "sed -i 's/^./z/' /run/karmada-scheduler/started-with"
karmada karmada --check
exits 0
recap h2 changed 1
recap h1 changed 0
karmada karmada
exits 0
karmada karmada --check
exits 0
nothing_changed
