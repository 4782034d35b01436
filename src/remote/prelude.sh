# What a session's shell knows before its first request. Comment lines are not sent.
# Every name begins with wl_; none of them is exported. @NONCE@ and @NAME@ are put in by the controller.
wl_n=@NONCE@
# The login's language is for the programs that tasks run; our own tools must speak C, as we read their words.
wl_l=${LC_ALL-}
wl_L=${LC_ALL+x}
LC_ALL=C
export LC_ALL
for wl_i in /usr/local/sbin /usr/sbin /sbin; do
case :$PATH: in
*:$wl_i:*) ;;
*) PATH=$PATH:$wl_i ;;
esac
done
export PATH
# A program's output is where these two are open, which the guard looks at.
exec 5>&- 6>&-
# Another user may have no access to the login's directory.
[ -x . ] || cd /
# Outputs of programs go to files here, not to the session's own stdout: a background process may write forever without
# disturbing the session. A user who can write to the same file system can fill it, so root's files are where no other user can
# write, if possible, and a user's files in the file system of the login. A directory of another user is not used: its owner
# could replace the files in it.
wl_d=
wl_dir() {
if [ -O /run ]; then
set -- /run /var/lib /root /dev/shm /tmp /var/tmp
[ "${XDG_RUNTIME_DIR-}" != /run/user/0 ] || set -- /run/user/0 "$@"
else
# logind removes what a user has in /dev/shm when the last login of that user ends (RemoveIPC).
set -- "${XDG_RUNTIME_DIR-}" "${TMPDIR:-/tmp}" /tmp /var/tmp /dev/shm "$HOME"
fi
for wl_i do
[ -O "$wl_i" ] || [ -k "$wl_i" ] || continue
wl_d=$wl_i/.windlass.@NAME@
mkdir -m 700 "$wl_d" 2>/dev/null || continue
# Nothing can be written where there is no room. The login's umask, to come back to.
{ wl_fits && umask >"$wl_d/e" && read -r wl_w <"$wl_d/e"; } 2>/dev/null && return
rm -rf "$wl_d"
done
wl_d=
}
# wl_fits: whether there is still room where outputs are kept.
wl_fits() {
{ printf %65536s '' >"$wl_d/f" && true >"$wl_d/f"; } 2>/dev/null
}
# wl_grows: whether an output that is as long as wl_j says could have been longer: the login may limit the size of files.
wl_grows() {
[ "$(ulimit -f)" = unlimited ] ||
{ dd if=/dev/zero of="$wl_d/f" bs=1 seek="$wl_j" count=1 && true >"$wl_d/f"; } 2>/dev/null
}
wl_t=
wl_k=
# What makes the session known beside a lock.
wl_g=
# The guard's process.
wl_pid=
wl_bye() {
trap - 0
# Unless another process has its number now.
[ -z "$wl_pid" ] || { wl_parent "$wl_pid" && [ "$wl_v" = $$ ] && kill "$wl_pid"; } 2>/dev/null
[ -z "$wl_t$wl_g" ] || rm -f "$wl_t" "$wl_g"
[ -z "$wl_k" ] || eval "rm -rf $wl_k"
[ -z "$wl_d" ] || exec rm -rf "$wl_d"
exit 0
}
trap wl_bye 0
trap 'exit 129' 1
trap 'exit 141' 13
trap 'exit 143' 15
wl_dir
wl_s=
[ -z "$wl_d" ] || wl_s=$(command -v setsid)
# wl_r CODE: the end of an answer, with what went to stderr.
wl_r() {
if [ -s "$wl_d/e" ]; then
printf '\n%s.%s|\n' "$wl_n" "$wl_q"
cat "$wl_d/e"
printf '\n%s.%s=%s\n' "$wl_n" "$wl_q" "$1"
else
printf '\n%s.%s|\n\n%s.%s=%s\n' "$wl_n" "$wl_q" "$wl_n" "$wl_q" "$1"
fi
}
# wl_open: begins the two files of a program's output, which are open as 5 and 6. A file that has a line has a block of
# the file system: a small output after it cannot fail for want of room.
wl_open() {
[ -e "$wl_d/r" ] || : >"$wl_d/r"
{ echo . >&5 && echo . >&6; } 2>/dev/null
}
# wl_small FD FILE: puts what a program wrote to FILE, of which FD is the writing end, into wl_v. A new process costs more
# than reading a few lines here does; the position of FD tells whether they came through whole, as a shell loses NUL bytes.
wl_small() {
wl_j=0
{ read -r wl_i wl_j </proc/self/fdinfo/$1; } 2>/dev/null
wl_j=${wl_j:-0}
[ "$wl_j" -ge 2 ] && [ "$wl_j" -le 1024 ] || return 1
wl_v=
while IFS= read -r wl_i; do
wl_v=$wl_v$wl_i'
'
# A program that opened the file itself has written more than the position tells.
[ ${#wl_v} -le "$wl_j" ] || return 1
done <"$2"
wl_v=$wl_v$wl_i
[ ${#wl_v} = "$wl_j" ] || return 1
case $wl_v in
.'
'*) wl_v=${wl_v#??} ;;
*) return 1 ;;
esac
}
# wl_large FILE: prints what a program wrote to it, or changes the code wl_c: it is not whole if there is no more room now,
# nor if the program was ended because of its size. wl_j is the position of wl_small.
wl_large() {
if [ "$wl_j" -gt @MOST@ ] || [ -s "$wl_d/x" ]; then
wl_c=@TOO_MUCH@
elif ! [ -e "$wl_d/r" ] || ! wl_fits || ! wl_grows; then
wl_c=@NO_ROOM@
elif IFS= read -r wl_i <"$1" && [ "$wl_i" = . ]; then
{ read -r wl_i && cat; } <"$1" || wl_c=@NO_ROOM@
else
# The program opened it again, which may have truncated it.
cat "$1" || wl_c=@NO_ROOM@
fi
}
# wl_x CODE: the answer of a program, from its files, which are still open as 5 and 6.
wl_x() {
wl_c=$1
wl_a=$wl_q
wl_o=
if wl_small 5 "$wl_d/o.$wl_q"; then
wl_o=$wl_v
else
wl_large "$wl_d/o.$wl_q"
fi
if wl_small 6 "$wl_d/e.$wl_q"; then
printf '%s\n%s.%s|\n%s\n%s.%s=%s\n' "$wl_o" "$wl_n" "$wl_q" "$wl_v" "$wl_n" "$wl_q" "$wl_c"
else
printf '%s\n%s.%s|\n' "$wl_o" "$wl_n" "$wl_q"
wl_large "$wl_d/e.$wl_q"
printf '\n%s.%s=%s\n' "$wl_n" "$wl_q" "$wl_c"
fi
}
# wl_u: back to the login's language, for a program.
wl_u() {
if [ "$wl_L" ]; then
LC_ALL=$wl_l
else
unset LC_ALL
fi
}
# wl_go PROGRAM ARGUMENT...: becomes the program, in a process group of its own if that can be had.
wl_go() {
case $1 in
-*) ;;
*) if [ "$wl_s" ] && command -v "$1" >/dev/null 2>&1; then
exec "$wl_s" "$@"
fi ;;
esac
exec "$@"
}
# wl_new TEMPORARY PATH UMASK: makes the temporary file of a write. What takes the place of something, or changes hands, is
# for this user alone until then (umask 077). The file is known in wl_t as long as it is there, so that it goes with the
# session if need be.
wl_new() {
wl_p=$2
wl_c=$3
if [ -e "$2" ] || [ -L "$2" ]; then
wl_c=077
if [ -d "$2" ] && ! [ -L "$2" ]; then
echo ': Is a directory' >&2
return 1
fi
if [ -e "$2" ] && ! [ -f "$2" ] && ! [ -L "$2" ]; then
echo ': it is a device, a socket or a pipe, which no file may replace' >&2
return 1
fi
fi
# Here and not in a shell of its own, which costs a process.
umask "$wl_c"
set -C
command exec 7>"$1" && wl_t=$1
wl_i=$?
set +C
umask "$wl_w"
# The open file itself: the directory's owner may have replaced the name meanwhile.
wl_at=/proc/$$/fd/7
[ -e "$wl_at" ] || wl_at=$wl_t
return $wl_i
}
# wl_why FILE: has a program say why a file cannot be written: a shell, and busybox's head, say `I/O error`, whatever it
# was. Fails.
wl_why() {
wl_i=$(dd if=/dev/zero of="$1" bs=4096 count=16 2>&1) || printf '%s\n' "${wl_i%%
*}" >&2
return 1
}
# wl_drop: gives a write up. Fails, so that it can end a chain.
wl_drop() {
[ -z "$wl_t" ] || rm -f "$wl_t"
wl_t=
exec 7>&-
return 1
}
# wl_is: looks at the temporary file: what it is to wl_v, its mode to wl_i. Fails if it is not of the size wl_z.
wl_is() {
wl_v=$(stat -L -c '@FORMAT@' "$wl_at") || return 1
set -- $wl_v
wl_i=$1
if [ "$4" != "$wl_z" ]; then
echo ": it has ${4:-no} bytes after writing $wl_z" >&2
return 1
fi
}
# wl_sum NAME WANTED FOUND...: compares a digest with what a tool printed.
wl_sum() {
[ "$2" = "${3#\\}" ] && return
echo ": its $1 is ${3:-unknown} after the upload, not $2" >&2
return 1
}
# wl_own OWNER MODE HEX: gives a temporary file the attributes of the file that it replaces, then those that are asked for
# (HEX is the mode as `stat` prints it); flushes it; prints what it is.
wl_own() {
wl_o=$1
wl_m=$2
wl_h=$3
wl_flush "$wl_at" || return 1
# A link is replaced, and what it leads to has nothing to do with the new file: a local user may have made it.
if [ -f "$wl_p" ] && ! [ -L "$wl_p" ]; then
# shellcheck disable=SC2046  # several words
set -- $(stat -c '%u:%g %a %f %h' "$wl_t" "$wl_p" 2>/dev/null)
case $7 in
8???)
[ "$5" = "$1" ] || chown "$5" "$wl_at" 2>/dev/null || chgrp "${5#*:}" "$wl_at" 2>/dev/null
# Another name of the file may be a program of root with its set-user-ID bit.
case $6,$8 in
????,1) ;;
????,*) set -- "$1" "$2" "$3" "$4" "$5" "${6#?}" ;;
esac
wl_m=${wl_m:-$6}
[ ! -e /sys/fs/selinux/enforce ] || chcon --reference="$wl_p" "$wl_at" 2>/dev/null
;;
esac
fi
[ -z "$wl_o" ] || chown "$wl_o" "$wl_at" || return 1
case $wl_c,$wl_m in
077,600) ;;
# The umask decides.
077,) chmod "=rw" "$wl_at" || return 1 ;;
077,*) chmod "$wl_m" "$wl_at" || return 1 ;;
esac
wl_is || return 1
# A directory with an access control list of its own may have had its way.
if [ "$wl_h" ] && [ "$wl_i" != "$wl_h" ]; then
chmod "$wl_m" "$wl_at" && wl_is || return 1
fi
printf '%s\n' "$wl_v"
}
# wl_label: gives the file in its place the SELinux label of the place.
wl_label() {
[ ! -e /sys/fs/selinux/enforce ] || ! command -v restorecon >/dev/null || restorecon "$wl_p" 2>/dev/null
return 0
}
# wl_mv: puts the temporary file in its place, and never into a directory. Old busybox has no -T, and busybox follows a
# link to a directory: then the link has to go first.
wl_mv() {
exec 7>&-
mv -f -T "$wl_t" "$wl_p" 2>"$wl_d/m" || {
if [ -L "$wl_p" ] && [ -d "$wl_p" ]; then
rm -f "$wl_p"
fi
! [ -d "$wl_p" ] && mv -f "$wl_t" "$wl_p"
} || {
cat "$wl_d/m" >&2
return 1
}
wl_t=
wl_label
}
# wl_link: as wl_mv, but only if nothing is in the place. Where the file system has no hard links, another process may still create
# the file between the check and the rename.
wl_link() {
if ! [ -d "$wl_p" ] && ln "$wl_t" "$wl_p" 2>"$wl_d/m"; then
exec 7>&-
rm -f "$wl_t"
wl_t=
wl_label
elif [ -e "$wl_p" ]; then
echo ': another process created it meanwhile' >&2
return 1
elif [ -L "$wl_p" ]; then
echo ': it is a link to a file that does not exist' >&2
return 1
else
wl_mv
fi
}
