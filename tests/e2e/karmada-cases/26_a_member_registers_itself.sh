# Needs Karmada's own programs.
. "$ROOT/tests/e2e/karmada-lib.sh"
member_up
# Outside of the hosts: a token, and what a member does with it.
command=$("$(bundled karmadactl)" --kubeconfig "$kubeconfig" token create --print-register-command)
token=$(echo "$command" | grep -o -- '--token [^ ]*')
hash=$(echo "$command" | grep -o -- '--discovery-token-ca-cert-hash [^ ]*')
karmadactl_there register "$(address_of h1):5443" --cluster-name member-1 --kubeconfig /srv/member/kubeconfig \
  "$token" "$hash" >"$scratch/registered" 2>&1 &
registering=$!
# In a cluster with nodes the Deployment that it makes would run the agent; here the test does, with what that was given.
given() { member -n karmada-system get deployment karmada-agent; }
eventually given
member -n karmada-system get secret karmada-kubeconfig -o 'jsonpath={.data.karmada-kubeconfig}' | base64 -d >"$scratch/agent.kubeconfig"
on h4 'cat >/srv/member/agent.kubeconfig' <"$scratch/agent.kubeconfig"
on h4 "systemd-run --collect --unit=member-agent --property=Restart=always --property=RestartSec=2 /srv/member/agent/current/karmada-agent \
  --karmada-kubeconfig=/srv/member/agent.kubeconfig --kubeconfig=/srv/member/kubeconfig --cluster-name=member-1 \
  --cluster-api-endpoint=https://$(address_of h4):6443 --cluster-status-update-frequency=10s \
  --metrics-bind-address=127.0.0.1:19080 --health-probe-bind-address=127.0.0.1:19081"
member -n karmada-system patch deployment karmada-agent --subresource=status --type=merge \
  -p '{"status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}}'
wait "$registering" || { cat "$scratch/registered"; broken "karmadactl register failed"; }
cat "$scratch/registered"
grep -q 'is joined successfully' "$scratch/registered" || broken "karmadactl register did not join it"

eventually joined member-1 Pull
# The request was signed on the hosts, by the authority that is for this alone; and what it signed is an agent.
kubectl get csr
grep -o 'client-certificate-data: .*' "$scratch/agent.kubeconfig" | cut -d' ' -f2 | base64 -d >"$scratch/agent.crt"
openssl x509 -in "$scratch/agent.crt" -noout -issuer -subject | tee "$scratch/agent.names"
grep -q 'issuer=CN *= *karmada-signing' "$scratch/agent.names" || broken "another authority has signed it"
grep -q 'subject=O *= *system:karmada:agents, CN *= *system:karmada:agent:member-1' "$scratch/agent.names" || broken "it is not an agent's"
# No other authority's key is on a host.
for key in karmada/ca.key karmada/front-proxy/ca.key etcd/ca.key; do
  line=$(sed -n 2p "$state/credentials/$key")
  [ "${#line}" = 64 ] || broken "$key has another form"
  for h in h1 h2 h3; do
    ! on "$h" grep -rlsIF "'$line'" /etc /opt /root /home /run /srv /tmp /var/lib /var/tmp || broken "$key is on $h"
  done
done
on h1 grep -rlsIF "'$(sed -n 2p "$state/credentials/karmada/signing-ca.key")'" /etc || broken "the key that is there is not found"

# What the policy says arrives there.
kubectl apply -f - <<'END2'
apiVersion: v1
kind: ConfigMap
metadata: {name: hello, namespace: default}
data: {from: the control plane}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: hello, namespace: default}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: hello}]
  placement: {clusterAffinity: {clusterNames: [member-1]}}
END2
eventually member get configmap hello

# It leaves as it came.
karmadactl_there unregister member-1 --cluster-kubeconfig /srv/member/kubeconfig
on h4 systemctl stop member-agent
! kubectl get cluster member-1 || broken "the member is still there"
