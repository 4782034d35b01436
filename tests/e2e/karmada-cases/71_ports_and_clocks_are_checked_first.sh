. "$ROOT/tests/e2e/karmada-lib.sh"
a_control_plane
# What will be new wants a port that somebody else has; ours stay where they are.
on h2 "systemd-socket-activate -a -l 9443 cat >/dev/null 2>&1 & echo \$! >/run/stranger"
# A clock that is ten minutes slow: all hosts here have the same one, so h3 is given a program that says so.
on h3 'printf "#!/bin/sh\nexec /bin/date -d @\$((\$(/bin/date +%%s) - 600)) \"\$@\"\n" >/usr/local/bin/date && chmod 0755 /usr/local/bin/date'
karmada karmada -e karmada_search_enabled=true
on h3 rm /usr/local/bin/date
on h2 'kill $(cat /run/stranger); rm /run/stranger'
exits 2
says 'h2.*ports: TCP port 9443 is already in use'
does_not_say 'TCP port (5443|7443|8443)'
says 'h[123].*clock: the clocks of the hosts differ by (599|60[0-9]) s'
says 'h3.*clock: (599|60[0-9]) s behind the controller, more than 240(\.0)? s: new certificates would not be valid yet'
nothing_touched
