# Needs Karmada's own programs.
. "$ROOT/tests/e2e/karmada-lib.sh"
# Every object of Karmada's on both sides, without what differs each time, and without the marks of who joined it.
objects() {
  local which
  for which in "$1" kubectl; do
    echo "== ${which%% *}"
    $which get namespaces,clusterroles,clusterrolebindings -o name | sed -n '/karmada\|windlass/p' | sort | while read -r name; do of_object "$which" "" "$name"; done
    for namespace in karmada-cluster karmada-system; do
      $which -n "$namespace" get serviceaccounts,secrets,roles,rolebindings,deployments -o name 2>/dev/null | sort | while read -r name; do of_object "$which" "$namespace" "$name"; done
    done
  done
  kubectl get clusters -o json | sed -E '\,"(uid|id|resourceVersion|creationTimestamp|generation|lastTransitionTime)":|windlass.dev,d' | sed -n '/"metadata"/,/"status"/p' | plain
}
of_object() {
  echo "-- $2 $3"
  $1 ${2:+-n "$2"} get "$3" -o json --show-managed-fields=false | sed -E '\,"(uid|resourceVersion|creationTimestamp|generation|token|caBundle|ca.crt|kubernetes.io/service-account.uid|karmada-kubeconfig|work.karmada.io/permanent-id|lastTransitionTime|lastUpdateTime)":|windlass.dev,d' | plain
}
# Without commas at the ends of lines, and without labels and annotations that are empty by now.
plain() { sed -E 's/,$//' | sed -E '/"(annotations|labels)": \{$/{N;/\n *\}$/d}'; }

objects member >"$scratch/nobody"
karmadactl join m1 --cluster-kubeconfig "$state/members/h4.kubeconfig"
eventually joined m1 Push
sleep 5
objects member >"$scratch/theirs"
# One that others have joined is left alone.
with_members '[del_member]' "$m1"
karmada del-member
exits 2
says 'm1 is not removed: it was not joined for the deployment karmada of this control plane, but for an unknown deployment'
with_members '[members]' "$m1"
karmada add-member
exits 2
says 'm1 is refused: its Cluster was not joined for the deployment karmada: the label windlass\.dev/deployment is missing'
joined m1 Push || broken "it was removed all the same"
karmadactl unjoin m1 --cluster-kubeconfig "$state/members/h4.kubeconfig" --cluster-context member
gone() { ! member get namespace karmada-cluster; }
eventually gone
objects member >"$scratch/theirs-gone"

with_members '[members]' "$m1"
karmada add-member
exits 0
sleep 5
objects member >"$scratch/ours"
diff "$scratch/theirs" "$scratch/ours" || broken "it has not joined as by karmadactl"
with_members '[del_member]' "$m1"
karmada del-member
exits 0
objects member >"$scratch/ours-gone"
diff "$scratch/theirs-gone" "$scratch/ours-gone" || broken "it has not left as by karmadactl"
grep -c '^-- ' "$scratch/theirs"
[ "$(grep -c '^-- ' "$scratch/theirs")" -gt 12 ] || broken "there was nothing to compare"

# In pull mode with the agent as a Deployment, beside karmadactl register. Nothing runs Pods here: the agent is run as they would.
agent() {
  member -n karmada-system get secret karmada-kubeconfig -o 'jsonpath={.data.karmada-kubeconfig}' | base64 -d >"$scratch/agent.kubeconfig"
  on h4 'cat >/srv/member/agent.kubeconfig' <"$scratch/agent.kubeconfig"
  on h4 "systemctl stop member-agent; systemd-run --collect --unit=member-agent --property=Restart=always --property=RestartSec=2 /srv/member/agent/current/karmada-agent \
    --karmada-kubeconfig=/srv/member/agent.kubeconfig --kubeconfig=/srv/member/kubeconfig --cluster-name=m1 \
    --cluster-api-endpoint=https://$(address_of h4):6443 --cluster-status-update-frequency=10s \
    --metrics-bind-address=127.0.0.1:19080 --health-probe-bind-address=127.0.0.1:19081"
}
given() { member -n karmada-system get deployment karmada-agent; }
command=$(karmadactl token create --print-register-command)
karmadactl_there register "$(address_of h1):5443" --cluster-name m1 --kubeconfig /srv/member/kubeconfig --karmada-agent-image example.org/karmada-agent:v1 \
  "$(echo "$command" | grep -o -- '--token [^ ]*')" "$(echo "$command" | grep -o -- '--discovery-token-ca-cert-hash [^ ]*')" >"$scratch/registered" 2>&1 &
registering=$!
eventually given
agent
member -n karmada-system patch deployment karmada-agent --subresource=status --type=merge \
  -p '{"status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}}'
wait "$registering" || { cat "$scratch/registered"; broken "karmadactl register failed"; }
eventually joined m1 Pull
sleep 5
# Flags may stand in any order; nothing here runs Pods, so there is no status.
objects_of_both() { objects member | sort_flags | sed -E '\,"(observedGeneration|replicas|updatedReplicas|readyReplicas|availableReplicas|deployment.kubernetes.io/revision)":,d' | sed -E '/"status": \{\}$/d; /"status": \{$/,/^ *\}$/d'; }
sort_flags() { awk '/^ *"--/ {print | "sort"; next} {close("sort"); print; fflush()}'; }
objects_of_both >"$scratch/theirs"
"$(bundled karmadactl)" unregister m1 --cluster-kubeconfig "$state/members/h4.kubeconfig" --karmada-config "$kubeconfig"
on h4 systemctl stop member-agent
eventually gone
objects member >"$scratch/theirs-gone"

with_members '[members]' "${m1} member_sync_mode=Pull member_agent='{\"image\": \"example.org/karmada-agent:v1\"}'"
karmada add-member &
adding=$!
eventually given
eventually member -n karmada-system get secret karmada-kubeconfig
agent
wait "$adding"
joined m1 Pull || broken "it has not joined"
sleep 5
objects_of_both >"$scratch/ours"
diff "$scratch/theirs" "$scratch/ours" || broken "it has not joined as by karmadactl register"
with_members '[del_member]' "${m1} member_sync_mode=Pull member_agent='{\"image\": \"example.org/karmada-agent:v1\"}'"
karmada del-member
exits 0
on h4 systemctl stop member-agent
objects member >"$scratch/ours-gone"
diff "$scratch/theirs-gone" "$scratch/ours-gone" || broken "it has not left as by karmadactl unregister"
member_down
