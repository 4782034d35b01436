# Takes its turn: every third day, with stand-ins.
. "$ROOT/tests/e2e/karmada-lib.sh"
a_control_plane
for dead in h1 h2 h3; do
  hosts kill "$dead"
  for h in h1 h2 h3; do
    [ "$h" = "$dead" ] && continue
    # It can be repeated: a write may be done although its answer was lost with the dead.
    write() { kubectl_at "$h" annotate --overwrite namespace default "written=by-$h-without-$dead" && kubectl_at "$h" get clusters; }
    eventually write
  done
  hosts start "$dead"
  eventually on "$dead" systemctl is-active karmada-apiserver
done
eventually kubectl get --raw /readyz
karmada karmada
exits 0
