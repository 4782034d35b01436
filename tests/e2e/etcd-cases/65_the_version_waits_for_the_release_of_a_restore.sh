# shellcheck shell=bash
# Takes its turn: every third day.
# The data from before a restore cannot be moved back to another minor version: until the restore is released, the version does not change,
# and an undo compares the versions before it touches anything.
. "$ROOT/tests/e2e/etcd-lib.sh"
"$ROOT/tests/etcd-binaries" 3.6.15 || broken "there is no etcd to upgrade to"
fresh_three_at 3.5.34
etcdctl put key/then 1
windlass etcd backup "$scratch/backups" "${change_options[@]}"
exits 0
backup=$(find "$scratch/backups" -mindepth 1 -maxdepth 1 -name '*-r*')
change upgrade 3.6.15 --yes
exits 0
versions_are 3.6.15 3.6.0
etcdctl put key/later 1
windlass etcd restore "$backup" --name karmada "${change_options[@]}"
exits 0
versions_are 3.6.15 3.6.0
for command in downgrade upgrade; do
  release=3.5.34
  [ $command = downgrade ] || release=3.7.2
  "$ROOT/tests/etcd-binaries" $release || broken "there is no etcd $release"
  change $command $release --yes
  exits 2
  says "the restore of $(basename "$backup") is not released: after this change, its old data could no longer be moved back. Nothing has been changed"
done
versions_are 3.6.15 3.6.0

echo "== programs that are older than the old data"
for h in h1 h2 h3; do
  grep -q '"version_before": "3.6.15"' "$state/$h/root/var/lib/etcd/data.restore.json" || broken "$h does not record the version"
  sed -i 's/"version_before": "3.6.15"/"version_before": "3.7.2"/' "$state/$h/root/var/lib/etcd/data.restore.json"
done
starts >"$scratch/before"
windlass etcd restore --undo --name karmada "${change_options[@]}"
exits 2
says 'is of etcd 3.7.2, and h[123] has 3.6.15, which would not start with it. Nothing has been changed. Change the version back first: windlass etcd upgrade with a bundle of 3.7'
starts | diff "$scratch/before" - || broken "a member was restarted"
for h in h1 h2 h3; do sed -i 's/"version_before": "3.7.2"/"version_before": "3.6.15"/' "$state/$h/root/var/lib/etcd/data.restore.json"; done

windlass etcd restore --undo --name karmada "${change_options[@]}"
exits 0
versions_are 3.6.15 3.6.0
[ "$(etcdctl get key/ --prefix --keys-only | grep . | sort | xargs)" = 'key/later key/then' ] || broken "the old data is not back"
change downgrade 3.5.34 --yes
exits 0
versions_are 3.5.34 3.5.0
