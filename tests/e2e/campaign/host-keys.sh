# shellcheck shell=bash
# What known_hosts says of a host, what checking is asked for, and how windlass logs in, all at random; the outcome must be OpenSSH's.
address=$(hosts list | awk '$1 == "h2" {print $2}')
other=$(awk '/ssh-ed25519/ && $1 !~ /[.]12$/ {print $3; exit}' "$state/known_hosts")
right=$(awk -v a="$address" '$1 == a && /ssh-ed25519/ {print $3; exit}' "$state/known_hosts")
{ [ -n "$right" ] && [ -n "$other" ]; } || broken "known_hosts lacks keys: $(cat "$state/known_hosts")"
for round in $(seq 12); do
  one_of none right hashed wildcard negated changed changed-hashed revoked other-port authority; known=$picked
  one_of true yes accept-new false no stirct; policy=$picked
  one_of key password; login=$picked
  file=$scratch/known_hosts_$round
  case $known in
    none) : ;;
    right) echo "$address ssh-ed25519 $right" ;;
    hashed | changed-hashed) echo "$address ssh-ed25519 $([ "$known" = hashed ] && echo "$right" || echo "$other")" ;;
    wildcard) echo "10.* ssh-ed25519 $right" ;;
    negated) echo "10.*,!$address ssh-ed25519 $right" ;;
    changed) echo "$address ssh-ed25519 $other" ;;
    revoked) echo "$address ssh-ed25519 $right"; echo "@revoked * ssh-ed25519 $right" ;;
    other-port) echo "[$address]:2222 ssh-ed25519 $right" ;;
    authority) echo "@cert-authority * ssh-ed25519 $right" ;;
  esac >"$file"
  case $known in *hashed) ssh-keygen -q -H -f "$file" >/dev/null 2>&1; rm -f "$file.old" ;; esac
  case $known in
    right | hashed | wildcard) expected=accepted ;;
    revoked) expected=refused ;;
    changed | changed-hashed)
      # Without checking OpenSSH still sends no password to a host whose key has changed.
      case $policy-$login in false-key | no-key) expected=accepted ;; *) expected=refused ;; esac ;;
    *) case $policy in accept-new | false | no) expected=accepted ;; *) expected=refused ;; esac ;;
  esac
  [ "$policy" != stirct ] || expected=refused
  {
    echo "h2 ansible_host=$address ansible_host_key_checking=$policy ansible_ssh_common_args='-o UserKnownHostsFile=$file -o GlobalKnownHostsFile=/dev/null -o IdentityAgent=none'"
    echo '[all:vars]'
    if [ "$login" = key ]; then
      echo 'ansible_user=root'
      echo "ansible_private_key_file=$state/id_ed25519"
    else
      printf 'ansible_user=ops\nansible_password=opspass\n'
    fi
  } >"$scratch/inventory_$round.ini"
  echo "== known_hosts: $known; checking: $policy; login: $login; expected: $expected"
  windlass run h2 -i "$scratch/inventory_$round.ini" -T 10 -m command -a id
  if [ "$code" = 0 ]; then outcome=accepted; else outcome=refused; fi
  does_not_say opspass
  [ "$outcome" = $expected ] || broken "$outcome instead of $expected (known_hosts: $known, checking: $policy, login: $login)"
  case $known-$policy in
    none-accept-new) grep -qF "$right" "$file" || broken "the new key was not recorded" ;;
  esac
done
