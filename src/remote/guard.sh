# The guard of a session: a process beside its shell that looks at it now and then. Sent after the prelude, comment lines
# are not.
#
# A cut connection: the controller sends an empty line every 10 s, so the program that passes the requests on wakes up. One
# that has slept for 45 s is ended, and the watcher then ends all that the session runs.
# An output without end: a program whose output takes more than @MOST@ bytes is ended, together with its group.
#
# wl_stat FILE: puts a process's /proc/PID/stat into wl_j, in one line: the name in it may contain newlines.
wl_stat() {
wl_j=
while read -r wl_line; do
wl_j="$wl_j $wl_line"
done <"$1"
[ "$wl_j" ]
}
# wl_processes: puts the process ids of the children of $1 into wl_v. Not every kernel lists them.
wl_processes() {
wl_v=
read -r wl_v </proc/$1/task/$1/children
[ -z "$wl_v" ] || return 0
for wl_i in /proc/[0-9]*/stat; do
wl_stat "$wl_i" || continue
set -- "$1" ${wl_j##*) }
wl_i=${wl_i#/proc/}
[ "$3" != "$1" ] || wl_v="$wl_v ${wl_i%/stat}"
done
}
# wl_parent PID: puts its parent into wl_v.
wl_parent() {
wl_v=
wl_stat /proc/$1/stat || return 1
set -- ${wl_j##*) }
wl_v=$2
}
# wl_forwarder: finds the program that passes the requests on, the one child of the other half of the watcher.
wl_forwarder() {
wl_parent $$ && wl_half=$wl_v && wl_parent $wl_half && wl_processes $wl_v || return
for wl_k in $wl_v; do
[ "$wl_k" = "$wl_half" ] || wl_other=$wl_k
done
wl_processes "$wl_other"
wl_cat=${wl_v# }
wl_cat=${wl_cat% }
case $wl_cat in
'' | *' '*) wl_cat= ;;
esac
}
# wl_silent: adds up for how long the forwarder has slept, in wl_quiet.
wl_silent() {
read -r wl_i </proc/$wl_cat/wchan
while read -r wl_j wl_k; do
case $wl_j in
voluntary*) break ;;
esac
done </proc/$wl_cat/status
case $wl_i in
# The host itself is slow to take what came.
*pipe_write*) wl_woke= ;;
esac
# Until the shell is ready for content it is sent nothing: a disk may hang before that.
[ ! -e "$wl_d/w" ] || wl_woke=
if [ "$wl_k" = "$wl_woke" ]; then
wl_quiet=$((wl_quiet+wl_pause))
else
wl_quiet=0
fi
wl_woke=$wl_k
}
# wl_excess: whether an output of the program takes too much.
wl_excess() {
for wl_i in $(stat -L -c %s /proc/$$/fd/5 /proc/$$/fd/6); do
[ "$wl_i" -le @MOST@ ] || return 0
done
return 1
}
wl_guard() {
wl_c=
trap 'kill $wl_c; exit' 1 2 13 15
trap - 0
read -r wl_own </proc/self/stat
wl_own=${wl_own%% *}
wl_cat=
wl_woke=
wl_quiet=0
wl_pause=1
wl_age=0
while :; do
sleep $wl_pause &
wl_c=$!
wait $wl_c
wl_parent $wl_own
[ "$wl_v" = $$ ] || exit
# Without its directory the session can do nothing more, so it ends.
[ -d "$wl_d" ] || { kill -HUP $$; exit; }
wl_age=$((wl_age+wl_pause))
# Most sessions are over before that.
[ "$wl_cat" ] || [ "$wl_age" -lt 5 ] || wl_forwarder
if [ "$wl_cat" ]; then
wl_silent
# The shell ends without an answer first: what it runs is ended for the cut, and its exit code says nothing.
[ "$wl_quiet" -lt 45 ] || { kill -HUP $$; kill -KILL "$wl_cat"; }
fi
wl_pause=3
if [ -e /proc/$$/fd/5 ]; then
wl_pause=1
# Somebody may fill the file system and make room again before the program ends.
wl_fits || rm -f "$wl_d/r"
if wl_excess; then
echo . >"$wl_d/x"
wl_processes $$
for wl_i in $wl_v; do
[ "$wl_i" = "$wl_own" ] || kill -KILL "-$wl_i" || kill -KILL "$wl_i"
done
fi
fi
done
}
if [ "$wl_d" ]; then
wl_guard </dev/null >/dev/null 2>&1 &
wl_pid=$!
fi
