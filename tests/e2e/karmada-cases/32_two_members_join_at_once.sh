# Needs Karmada's own programs.
. "$ROOT/tests/e2e/karmada-lib.sh"
member_up
# Beside the two: one that nobody reaches, and one of them under another name.
sed "s/$(address_of h4)/192.0.2.1/" "$state/members/h4.kubeconfig" >"$state/members/nowhere.kubeconfig"
told="member_provider=metal member_region=here member_zones='[\"a\", \"b\"]' member_labels='{\"tier\": \"gold\"}' member_taints='[{\"key\": \"new\", \"value\": \"yes\", \"effect\": \"NoSchedule\"}]'"
with_members '[members]' "$m1 $told" "$m2" "nowhere ansible_connection=local member_kubeconfig=members/nowhere.kubeconfig"
karmada add-member --check
[ "$code" != 0 ] || broken "a member that nobody reaches is no failure"
! kubectl get cluster m1 || broken "check mode joined it"
tokens_to_join() { kubectl -n kube-system get secret -o name | grep bootstrap-token || true; }
tokens_to_join >"$scratch/before"
karmada add-member -vvv
[ "$code" != 0 ] || broken "a member that nobody reaches is no failure"
says 'fatal: \[nowhere\]: .*192.0.2.1:6443'
for m in m1 m2; do recap "$m" failed 0; done
joined m1 Push || broken "m1 has not joined"
joined m2 Pull || broken "m2 has not joined"
[ "$(kubectl get cluster m1 -o 'jsonpath={.spec.provider} {.spec.region} {.spec.zones} {.metadata.labels.tier} {.spec.taints[0].key}')" = 'metal here ["a","b"] gold new' ] \
  || broken "what is said of m1 is not on its Cluster: $(kubectl get cluster m1 -o yaml)"
# What a removal needs is there, and no secret.
kubectl get cluster m2 -o 'jsonpath={.metadata.annotations.windlass\.dev/member}' | tee "$scratch/recorded"
grep -q '"host": "m2"' "$scratch/recorded" || broken "the agent's host is not recorded"
[ "$(kubectl get cluster m1 m2 -o 'jsonpath={.items[*].metadata.annotations.windlass\.dev/deployment-uid}')" = \
  "$(kubectl -n karmada-system get configmap windlass -o 'jsonpath={.metadata.uid} {.metadata.uid}')" ] || broken "whose they are is not recorded"

# Tokens and keys stand in no words of ours, not even the loudest, nor in what others may read.
tokens() { for n in m1 m2; do kubectl -n karmada-cluster get secret "$n" "$n-impersonator" -o 'jsonpath={range .items[*]}{.data.token}{"\n"}{end}'; done; }
tokens | grep . >"$scratch/tokens"
[ "$(wc -l <"$scratch/tokens")" = 4 ] || broken "there are not four tokens"
! grep -qFf "$scratch/tokens" "$output" || broken "a token is shown"
while read -r token; do echo "$token" | base64 -d; echo; done <"$scratch/tokens" >"$scratch/plain"
! grep -qFf "$scratch/plain" "$output" || broken "a token is shown"
found=$(find "$state/credentials/karmada/members" -type f ! -name '*.crt' -perm /077)
[ -z "$found" ] || broken "others can read credentials here"
[ "$(on h5 "stat -c '%U %a' /etc/windlass/karmada/agent-m2/pki/member.kubeconfig /etc/windlass/karmada/agent-m2/pki/agent.key" | sort -u)" = 'karmada-agent-m2 600' ] \
  || broken "others can read what the agent has"
# The agent's certificate was signed on the hosts, for it alone, with a token that is gone.
openssl x509 -in "$state/credentials/karmada/members/m2/agent.crt" -noout -issuer -subject | tee "$scratch/names"
grep -q 'issuer=CN *= *karmada-signing' "$scratch/names" || broken "another authority has signed it"
grep -q 'subject=O *= *system:karmada:agents, CN *= *system:karmada:agent:m2' "$scratch/names" || broken "it is not an agent's"
tokens_to_join | diff "$scratch/before" - || broken "the token is still there"
[ "$(on h5 systemctl show -p User --value karmada-agent-m2)" = karmada-agent-m2 ] || broken "the agent is no service of its own user"

# Again: nothing. One that is new does not disturb the others, and is refused under another name.
with_members '[members]' "$m1 $told" "$m2"
karmada add-member
exits 0
for m in h1 m1 m2; do recap "$m" changed 0; done
# What is no longer said of it is taken away.
with_members '[members]' "$m1" "$m2"
karmada add-member
exits 0
recap m1 changed 2
found=$(kubectl get cluster m1 -o 'jsonpath={.spec.region}{.metadata.labels.tier}{.spec.taints}')
[ -z "$found" ] || broken "it is still said of m1"
with_members '[members]' "$m1" "$m2" "again ansible_connection=local member_kubeconfig=members/h4.kubeconfig"
karmada add-member
says 'fatal: \[again\]: again is refused: it is the same cluster as m1.* it has already joined as m1: the namespace kube-system has the uid [0-9a-f-]+'
recap m2 changed 0
# The member has other keys: its tokens are renewed.
on h4 'cd /srv/member/pki && openssl genrsa -out sa.key 2048 2>/dev/null && openssl rsa -in sa.key -pubout -out sa.pub 2>/dev/null && systemctl restart member-apiserver && sleep 5 && systemctl restart member-kcm'
eventually member get --raw /livez
with_members '[members]' "$m1" "$m2"
karmada add-member
exits 0
! kubectl -n karmada-cluster get secret m1 -o 'jsonpath={.data.token}' | matches -Ff "$scratch/tokens" || broken "the token is the old one"
eventually joined m1 Push
