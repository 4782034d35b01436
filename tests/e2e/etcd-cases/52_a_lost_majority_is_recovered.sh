# Takes its turn: every third day.
# shellcheck shell=bash
# Members that are stopped are started. If too few are left, windlass shows the survivors and restores nothing on its own.
. "$ROOT/tests/e2e/etcd-lib.sh"
fresh_five
members h1 h2 h3
exits 0
etcdctl put key/old 1
mapfile -t three < <(printf '%s\n' -i "$(inventory_of h1 h2 h3)" -e "etcd_bundle=$ROOT/target/etcd/3.5" --playbooks "$ROOT/playbooks")
windlass etcd backup "$scratch/backups" "${three[@]}"
exits 0
etcdctl put key/new 1
windlass etcd recover "${three[@]}"
exits 0
says 'there is nothing to recover'

for h in h2 h3; do on $h systemctl stop etcd; done
windlass etcd recover --check "${three[@]}"
exits 2
says 'h2 +inactive +yes +no'
[ "$(on h2 'systemctl is-active etcd || true')" = inactive ] || broken "a look started a member"
windlass etcd recover --yes "${three[@]}"
exits 0
are_members h1 h2 h3

# A learner that never started has no vote.
# etcd adds nobody before all members have been connected for five seconds.
for _ in $(seq 30); do ! etcdctl member add later --learner --peer-urls=https://127.0.0.9:2380 || break; sleep 1; done
etcdctl member list | matches 127.0.0.9:2380 || broken "etcd adds no learner"

# A member that runs without a leader is not lost. New connections to h2 fail, because it has the peer certificate of another CA.
mapfile -t one < <(printf '%s\n' -i "$(inventory_of h1)" -e "etcd_bundle=$ROOT/target/etcd/3.5" -e etcd_settle_seconds=1 --playbooks "$ROOT/playbooks")
openssl req -x509 -newkey rsa:2048 -nodes -keyout "$scratch/other.key" -subj /CN=other -days 2 -out "$scratch/other.crt" 2>/dev/null
for end in crt key; do cat "$scratch/other.$end" >"$state/h2/root/etc/etcd/pki/peer.$end"; done
hosts kill h3
hosts split h1 h2
sleep 15
hosts join h1 h2
sleep 5
! etcdctl put key/refused 1 || broken "h1 and h2 have a leader"
windlass etcd restore "$(find "$scratch/backups" -mindepth 1 -maxdepth 1 -name '*-r*')" --lost h2 --lost h3 --name karmada "${one[@]}"
exits 2
says 'h2 answers, so it is not'
inventory_of h1 h2 h3

# One is left, and knows what the others had.
hosts kill h2
sleep 5
windlass etcd recover --yes --backups "$scratch/backups" "${three[@]}"
exits 2
says 'etcd has no leader: of its members h1, h2, h3, 2 must run; running: h1'
says 'Nothing is lost if h2, h3 come back'
says 'from the data of h1, the most up to date that is left'
says 'the writes of [0-9]+ revisions? that h1 has are lost'
# Its data, restored onto itself, has everything.
inventory_of h1
windlass etcd backup "$scratch/survivor" "${one[@]}"
says 'h1 knew no leader'
windlass etcd restore "$(find "$scratch/survivor" -mindepth 1 -maxdepth 1 -name '*-r*')" --lost h2 --lost h3 --name karmada "${one[@]}"
exits 0
are_members h1
[ "$(etcdctl get key/ --prefix --keys-only | grep . | tr '\n' ' ')" = 'key/new key/old ' ] || broken "the survivor's data is not restored"
