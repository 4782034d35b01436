# shellcheck shell=bash
# kill -9 at a random line of a run's output, on bare hosts or while a cluster that serves is being changed.
pick 2; bare=$picked
pick 90; at=$((picked + 1))
settings="{\"etcd_flags\": {\"snapshot-count\": $((20000 + SEED))}}"
echo "== kill -9 after line $at, $([ "$bare" = 1 ] && echo "bare hosts" || echo "a cluster that serves")"
if [ "$bare" = 1 ]; then fresh; else a_healthy_cluster; writer_start; fi
in_the_background "$scratch/run" -e "$settings"
after_lines "$scratch/run" $at
kill -9 "$run" 2>/dev/null || true
wait "$run" 2>/dev/null || true
tail -3 "$scratch/run"
converges -e "$settings"
[ "$bare" = 1 ] || writer_stop
for h in h1 h2 h3; do
  on $h '! find /etc/etcd /opt/windlass /etc/systemd/system -name ".windlass*" | grep .' || broken "half a file is left on $h"
done
