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
# wl_stat PID: the process's name to wl_v, its parent to wl_i, when it began to wl_j.
wl_stat() {
read -r wl_j </proc/$1/stat || return 1
wl_v=${wl_j#*(}
wl_v=${wl_v%)*}
set -- ${wl_j##*) }
wl_i=$2
wl_j=${20}
} 2>/dev/null
# wl_enrol SSH: makes this shell known beside the lock, so that whoever takes it over can end it; of an SSH connection the
# process of the server, too, through which tunnels lead.
wl_enrol() {
read -r wl_o </proc/sys/kernel/random/boot_id && wl_stat $$ || return 1
wl_g=$wl_f/sessions/$wl_o.$$.$wl_j.@RUN@
wl_o=-
while [ "$1" ] && [ "${wl_i:-0}" -gt 1 ]; do
wl_c=$wl_i
wl_stat $wl_i || break
case $wl_v in
sshd*) wl_o=$wl_c.$wl_j; break ;;
esac
done
echo "$wl_o" >"$wl_g"
}
