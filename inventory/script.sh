#!/bin/sh
# An inventory that asks something else for its hosts; here, a file of lines "NAME ADDRESS":
#     HOSTS=/etc/cluster-hosts windlass playbook -i inventory/script.sh playbooks/etcd.yml
# It is called with --list, and answers with groups, and with the variables of all hosts under _meta.hostvars.
set -eu

[ "${1:-}" = --list ] || { echo '{}'; exit 0; }
file=${HOSTS:?set HOSTS to a file of lines NAME ADDRESS}

awk '
    NF >= 2 && $1 !~ /^#/ {
        names = names comma "\"" $1 "\""
        vars = vars comma "\"" $1 "\": {\"ansible_host\": \"" $2 "\"}"
        comma = ", "
    }
    END {
        printf "{\"etcd\": {\"hosts\": [%s], \"vars\": {\"ansible_become\": true}}, ", names
        printf "\"_meta\": {\"hostvars\": {%s}}}\n", vars
    }
' "$file"
