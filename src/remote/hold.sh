# What a session's shell knows of the lock that its run holds: sent after the prelude, comment lines are not. wl_f is the
# lock's directory, wl_y its first line as the run knows it, @RUN@ the run.
wl_f=@DIRECTORY@
wl_y='@TOKEN@ @RUN@'
# wl_may: whether the run still holds the lock on this host. Starts no program.
wl_may() {
wl_i=
wl_v=
{ { read -r wl_i; read -r wl_v; } <"$wl_f/lock"; } 2>/dev/null
[ "$wl_i" != "$wl_y" ] || return 0
case $wl_i in
'' | *' -') echo ': the run does not hold the lock of the deployment any more' >&2 ;;
*) echo ": the lock of the deployment was taken over by ${wl_v#* }" >&2 ;;
esac
return 1
}
# wl_me: this shell's process, when it began, and whether it may make itself known beside the lock.
wl_me() {
read -r wl_j </proc/$$/stat || return 1
set -- ${wl_j##*) }
wl_j=${20}
if [ -w "$wl_f/sessions" ]; then
echo "$$ $wl_j 1"
else
echo "$$ $wl_j 0"
fi
}
