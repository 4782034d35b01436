# Needs Karmada's own programs.
# The definitions of our custom resources in the control plane's own API server, which knows CEL: every bad document is
# refused for the reason that windlass gives, every good one gets the same defaults.
. "$ROOT/tests/e2e/karmada-lib.sh"
windlass crd
exits 0
kubectl apply -f "$output"
for kind in karmadadeployments etcdbackups runs; do
  kubectl wait --for=condition=Established --timeout=60s "crd/$kind.windlass.dev"
done
said="$state/said"
for document in "$ROOT"/tests/resources/bad/*.yaml; do
  name=$(basename "$document")
  ! kubectl apply --dry-run=server -f "$document" > "$said" 2>&1 || broken "the API server takes $name"
  windlass inventory -i "$document" --list
  exits 4
  reason=$(sed -n '1s/^# windlass: [0-9:]* //p' "$document")
  says "$(printf %s "$reason" | sed 's/[][\.*^$()+?{}|/]/\\&/g')"
  case $name in
    # A rule says the same words, of the same field.
    rule-*) words=${reason#*: } ;;
    *) words=$(sed -n '2s/^# API server: //p' "$document") ;;
  esac
  grep -qF -- "$words" "$said" || broken "the API server does not say of $name: $words: $(cat "$said")"
done
for document in "$ROOT"/tests/resources/good/*.yaml; do
  kubectl apply --dry-run=server -o json -f "$document" > "$said"
  python3 - "$said" "${document%.yaml}.json" <<'END' || broken "the API server has other defaults: $document"
import json, sys
there, here = (json.load(open(path)) for path in sys.argv[1:])
sys.exit(there["spec"] != here)
END
done
kubectl apply -f "$ROOT/tests/resources/good/whole.yaml"
kubectl get kd whole | matches '1[.]18' || broken "the short name or the column of the version is missing"
# The live object is foreign text, and this one refers to files of this machine.
KUBECONFIG="$kubeconfig" windlass inventory -i kube:default/whole --graph
exits 4
says 'is not allowed in a resource from an API'
# One that keeps to what such a resource may use is an inventory.
sed -e 's/^  name: .*/  name: honest/' -e 's|^  bundle: .*|  bundle: karmada|' \
  -e '/^    - name: cp-1/a\      fingerprint: SHA256:0123456789012345678901234567890123456789012' \
  "$ROOT/tests/resources/good/small.yaml" | kubectl apply -f -
WINDLASS_RESOURCE_BUNDLES=karmada=/nowhere KUBECONFIG="$kubeconfig" windlass inventory -i kube:default/honest --graph
exits 0
says '@karmada_scheduler'
says 'cp-1'
kubectl delete crd karmadadeployments.windlass.dev etcdbackups.windlass.dev runs.windlass.dev
