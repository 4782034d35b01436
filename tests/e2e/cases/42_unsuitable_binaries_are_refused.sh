# shellcheck shell=bash
fresh
trees >"$scratch/before"
mkdir "$scratch/few" "$scratch/arm"
cp "$ROOT/target/etcd/3.5/etcd" "$ROOT/target/etcd/3.5/etcdctl" "$scratch/few/"
windlass playbook -i "$inventory" -e "etcd_bundle=$scratch/few" "$ROOT/playbooks/etcd.yml"
exits 2
says 'the bundle .* has no etcdutl'
# An ELF file for arm64, as far as its header goes.
cp "$ROOT"/target/etcd/3.5/* "$scratch/arm/" && printf '\267' | dd of="$scratch/arm/etcd" bs=1 seek=18 conv=notrunc
windlass playbook -i "$inventory" -e "etcd_bundle=$scratch/arm" "$ROOT/playbooks/etcd.yml"
exits 2
says 'has etcd for arm64, not for amd64'
windlass playbook -i "$inventory" -e "etcd_bundle=$ROOT/target/etcd/3.5" -e '{"etcd_flags": {"snapshot-cuont": 1}}' "$ROOT/playbooks/etcd.yml"
exits 2
says 'no setting snapshot-cuont'
trees >"$scratch/after"
same_trees "$scratch/before" "$scratch/after"
