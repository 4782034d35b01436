# shellcheck shell=bash
# A host loses its power, its network or hangs at a random line of a run's output.
pick 2; bare=$picked
pick 80; at=$((picked + 1))
one_of kill cut pause; fault=$picked
one_of h1 h2 h3; victim=$picked
settings="{\"etcd_flags\": {\"snapshot-count\": $((30000 + SEED))}}"
echo "== hosts $fault $victim after line $at, $([ "$bare" = 1 ] && echo "bare hosts" || echo "a cluster that serves")"
if [ "$bare" = 1 ]; then fresh; else a_healthy_cluster; writer_start; fi
in_the_background "$scratch/run" -T 5 -e "$settings"
after_lines "$scratch/run" $at
hosts "$fault" "$victim"
ends_within 240
cat "$scratch/run"
echo "+ exit code $code"
# A run that says 0 has reached all hosts before the fault.
if [ "$code" = 0 ] && [ "$(wc -l <"$scratch/run")" -lt $at ]; then broken "exit code 0 though $victim was gone"; fi
whole_hosts
converges -e "$settings"
[ "$bare" = 1 ] || writer_stop
