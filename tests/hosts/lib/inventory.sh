# shellcheck shell=bash
# inventory.sh: up, down, and what `up` writes for the person who will log in.

up() {
  local before=$SECONDS h
  while [ $# -gt 0 ]; do
    case $1 in
      --python) python=yes ;;
      --aliases) aliases=${2:?--aliases needs a number}; shift ;;
      --prefix) prefix=${2:?--prefix needs a name}; shift ;;
      --subnet) subnet=${2:?--subnet needs a network}; shift ;;
      --state) fail "--state goes before the verb" ;;
      [1-9] | [1-9][0-9]) count=$1 ;;
      *) fail "up: what is $1?" ;;
    esac
    shift
  done
  [ "$count" -ge 1 ] && [ "$count" -le 29 ] || fail "up: how many hosts, 1 to 29?"
  [ $((count * aliases)) -le 210 ] || fail "up: $count hosts with $aliases aliases each are too many for one /24"
  [ ! -e "$state/settings" ] || (settle; down)
  make_template "$(template_dir)"
  choose_network
  prepare_state
  prepare_cgroups
  prepare_limits
  make_keys
  for h in $(host_names); do
    plug_in "$h"
    blank_disk "$h"
    furnish "$h"
    boot "$h"
  done
  write_known_hosts
  write_inventories
  for h in $(host_names); do wait_for_sshd "$h"; done
  for h in $(host_names); do wait_for_systemd "$h"; done
  say "$count hosts on $subnet.0/24 after $((SECONDS - before)) s; inventory: $state/inventory.ini"
}

down() {
  local h
  for h in "$state"/h[0-9]*; do
    [ ! -d "$h" ] || power_off "${h##*/}" &
  done
  wait
  remove_disks
  remove_network
  remove_cgroups
  rm -f "$state"/inventory*.ini "$state/known_hosts" "$state"/id_* "$state/settings" "$state/apt.log"
  if mountpoint -q "$state"; then umount "$state"; fi
  rm -f "$state/settings"
  rmdir "$state" 2>/dev/null || true
}

list() {
  local h
  for h in $(host_names); do
    printf '%s %s %s\n' "$h" "$(address_of "$h")" "$(if leader_of "$h" >/dev/null; then echo running; else echo off; fi)"
  done
}

log_in() {
  local to=${1:?ssh: which host?} user=root
  shift
  case $to in *@*) user=${to%@*} to=${to#*@} ;; esac
  known "$to"
  exec ssh -i "$state/id_ed25519" -o IdentitiesOnly=yes -o UserKnownHostsFile="$state/known_hosts" \
    -o StrictHostKeyChecking=yes -o LogLevel=ERROR "$user@$(address_of "$to")" "$@"
}

write_known_hosts() {
  local h address
  for h in $(host_names); do
    for address in $(address_of "$h") $(aliases_of "$h"); do
      awk -v address="$address" '{print address, $1, $2}' "$state/$h"/keys/ssh_host_*_key.pub
    done
  done >"$state/known_hosts"
}

# One inventory for every way to log in; $1 user, then lines of further variables.
inventory_of() {
  local user=$1
  shift
  echo '[all:vars]'
  echo "ansible_user=$user"
  echo "ansible_ssh_common_args='-o UserKnownHostsFile=$state/known_hosts -o StrictHostKeyChecking=yes'"
  # The machine may be busy, and all hosts share its clock.
  printf 'preflight_clock_skew=30\npreflight_timeout=20\n'
  [ "$python" = no ] || echo 'ansible_python_interpreter=/usr/bin/python3'
  [ $# -eq 0 ] || printf '%s\n' "$@"
  echo
  echo '[etcd]'
}

write_inventories() {
  local key="ansible_ssh_private_key_file=$state/id_ed25519" h k
  inventory_of root "$key" >"$state/inventory.ini"
  inventory_of deploy "$key" ansible_become=true >"$state/inventory-deploy.ini"
  inventory_of ops ansible_password=opspass ansible_become=true ansible_become_password=opspass >"$state/inventory-ops-password.ini"
  inventory_of viasu "$key" ansible_become=true ansible_become_method=su ansible_become_password=rootpass >"$state/inventory-su.ini"
  inventory_of plain "$key" >"$state/inventory-plain.ini"
  for h in $(host_names); do
    for k in "$state"/inventory*.ini; do echo "$h ansible_host=$(address_of "$h")" >>"$k"; done
  done
  [ "$aliases" -gt 0 ] || return 0
  inventory_of root "$key" | sed 's/^\[etcd\]$/[aliases]/' >"$state/inventory-aliases.ini"
  for k in $(seq $((count * aliases))); do echo "a$k ansible_host=$subnet.$((40 + k))"; done >>"$state/inventory-aliases.ini"
}
