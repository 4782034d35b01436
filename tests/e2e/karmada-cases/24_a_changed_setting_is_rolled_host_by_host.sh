# Takes its turn: every third day, with stand-ins.
. "$ROOT/tests/e2e/karmada-lib.sh"
a_control_plane
runs_with() { on "$1" 'tr "\0" " " </proc/$(systemctl show -p MainPID --value karmada-scheduler)/cmdline' | matches -- "$2"; }
karmada karmada -e '{"karmada_scheduler_extra_args": {"kube-api-burst": 77}}'
exits 0
for h in h1 h2 h3; do runs_with "$h" --kube-api-burst=77 || broken "$h runs without the flag"; done
# A flag that does not exist is refused before any host is touched.
karmada karmada -e '{"karmada_scheduler_extra_args": {"kube-api-brust": 77}}'
exits 2
says 'kube-api-brust'
# One that the program refuses stops at the first host; the others go on as they were.
karmada karmada -e '{"karmada_scheduler_extra_args": {"leader-elect-lease-duration": "1s"}, "karmada_ready_retries": 10}'
exits 2
running=0
for h in h1 h2 h3; do if runs_with "$h" --kube-api-burst=77; then running=$((running + 1)); fi; done
[ "$running" = 2 ] || broken "$running schedulers run as they were, not 2"
karmada karmada
exits 0
