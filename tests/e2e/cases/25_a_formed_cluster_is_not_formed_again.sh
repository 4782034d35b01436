# shellcheck shell=bash
# Other credentials are another cluster, even under the same name.
mv "$state/credentials" "$scratch/credentials"
etcd_playbook
exits 2
says 'belongs to another cluster'
rm -rf "$state/credentials"
mv "$scratch/credentials" "$state/credentials"
etcd_playbook -e etcd_cluster_name=other
exits 2
says 'belongs to another cluster named etcd'
rm -rf "$state/credentials/other"
healthy
