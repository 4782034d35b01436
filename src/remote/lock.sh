# What is done to a deployment's lock on one host, as root: what is asked follows these lines. Comment lines are not sent.
# f: the lock's directory. Everybody may read it and only root may write it, or it is refused. In it: `lock` (first line
# `TOKEN RUN`, or `TOKEN -` when nobody holds it), `beat` (written by the holder again and again), `.mutex` (mode 0600),
# and `sessions` (mode 0700) with `BOOT.PID.START.RUN` for a shell of a run, which names the server's process or says `-`.
f=@DIRECTORY@
umask 022
boot() {
b=
{ read -r b </proc/sys/kernel/random/boot_id; } 2>/dev/null
# An entry without it would be a hidden file, which no pattern finds.
b=${b:-none}
}
# line_of FILE: a process's /proc/PID/stat to x, in one line: the name in it may contain newlines, so that its first line alone
# may name any parent.
line_of() {
x=
while read -r y; do
x="$x $y"
done <"$1"
[ "$x" ]
} 2>/dev/null
# stat_of PID: the process's name to n, its state to x, its parent to y, when it began to z.
stat_of() {
line_of /proc/$1/stat || return 1
n=${x#*(}
n=${n%)*}
set -- ${x##*) }
x=$1
y=$2
z=${20}
}
# alive PID START: whether that very process is there.
alive() {
stat_of "$1" && [ "$z" = "$2" ] && [ "$x" != Z ]
}
# of NAME: the process of an entry of sessions/, to p and t.
of() {
p=${1#*.}
t=${p#*.}
p=${p%%.*}
t=${t%%.*}
}
# closed PATH: whether it is a directory of this user, and nobody else can write it.
closed() {
[ -d "$1" ] || return 1
# shellcheck disable=SC2046  # two words
set -- $(stat -L -c '%u %a' "$1")
[ "$1" = "$(id -u)" ] || return 1
case $2 in
*[2367] | *[2367]?) return 1 ;;
esac
}
# private: refuses a lock that others can change.
private() {
for i in "${f%/*}" "$f"; do
closed "$i" && continue
echo ": $i is not a directory that only $(id -un) can write" >&2
return 1
done
}
# below PID: ends what the process started, then itself. It is stopped first, so that it starts nothing more.
below() {
kill -STOP $1
l=" $1 "
n=1
while [ $n = 1 ]; do
n=0
for i in /proc/[0-9]*/stat; do
line_of $i || continue
y=${i#/proc/}
y=${y%/stat}
x=${x##*) }
x=${x#* }
case "$l" in
*" $y "*) ;;
*" ${x%% *} "*) l="$l$y "; n=1 ;;
esac
done
done
kill -KILL $l
} 2>/dev/null
# look: the host's time, the last beat, how many shells of the holder are there, and the lock itself. `unknown`: windlass
# 0.1.0 made a directory for sessions that everybody can write, so what is in it proves nothing.
look() {
[ -e "$f" ] || [ -L "$f" ] || { echo none; return 0; }
private || return 1
a=
c=
{ read -r a c <"$f/lock"; } 2>/dev/null || { echo none; return 0; }
boot
k=0
if closed "$f/sessions"; then
for s in "$f"/sessions/"$b".*."$c"; do
of "${s##*/}"
! [ -f "$s" ] || ! alive "$p" "$t" || k=$((k+1))
done
elif [ -e "$f/sessions" ]; then
k=unknown
fi
echo "seen $(date +%s) $(stat -c %Y "$f/beat" 2>/dev/null || echo 0) $k"
cat "$f/lock"
}
# lock_up RUN: no other process works on the lock's files until this shell ends. The files of 0.1.0 are replaced: every user could
# write to its directory for sessions and keep its mutex locked. Directories that other users created there are kept, unused.
lock_up() {
command -v flock >/dev/null || { echo ': the host has no program flock (part of util-linux)' >&2; return 1; }
mkdir -p "$f" && private || return 1
umask 077
exec 9>>"$f/.mutex" || return 1
umask 022
n=0
until flock -n 9; do
n=$((n+1))
[ $n -lt 100 ] || { echo ": another process keeps $f/.mutex locked" >&2; return 1; }
sleep 0.1 || sleep 1
done
rm -f "$f/mutex"
closed "$f/sessions" && return
if [ -e "$f/sessions" ] || [ -L "$f/sessions" ]; then
i=$f/.sessions.$1
mv "$f/sessions" "$i" && chmod 700 "$i" || return 1
find "$i" -mindepth 1 -maxdepth 1 ! -type d -exec rm -f {} +
rmdir "$i" 2>/dev/null
fi
mkdir -m 700 "$f/sessions"
}
# put RUN: makes standard input the lock.
put() {
rm -f "$f"/.lock.*
cat >"$f/.lock.$1" && sync "$f/.lock.$1" && mv -f "$f/.lock.$1" "$f/lock" && sync "$f"
}
# claim TOKEN RUN OVER: standard input becomes the lock if it is free, or held by OVER (`TOKEN RUN`, or `any`).
# Prints the seconds since the last heartbeat of the former lock holder.
claim() {
lock_up "$2" || return 1
a=
c=
{ read -r a c <"$f/lock"; } 2>/dev/null
a=${a:-0}
if [ "$a $c" = "$1 $2" ]; then
echo taken 86400
return 0
fi
x=86400
case $c in
'' | -) ;;
*)
case $3 in
any | "$a $c") ;;
*) echo held; cat "$f/lock"; return 0 ;;
esac
x=$(($(date +%s) - $(stat -c %Y "$f/beat" 2>/dev/null || echo 0)))
[ "$x" -ge 0 ] || x=0 ;;
esac
if [ "$1" -le "$a" ]; then
echo "low $a"
return 0
fi
put "$2" && echo >"$f/beat" && echo "taken $x"
}
# release TOKEN RUN: standard input becomes the lock if it is that run's.
release() {
lock_up "$2" || return 1
a=
{ read -r a <"$f/lock"; } 2>/dev/null
[ "$a" = "$1 $2" ] || return 0
put "$2" || return 1
boot
for s in "$f"/sessions/*."$2"; do
of "${s##*/}"
alive "$p" "$t" || rm -f "$s"
done
}
# others TOKEN RUN: ends the shells of all other runs, with their programs and connections, as long as this run holds
# the lock. It checks the lock after it made the list, so a run that takes the lock over is not in the list.
others() {
boot
q="$1 $2"
r=$2
e=0
while :; do
w=
set -- "$f"/sessions/*
a=
{ read -r a <"$f/lock"; } 2>/dev/null
[ "$a" = "$q" ] || { echo ': the run does not hold the lock of the deployment any more' >&2; return 1; }
for s; do
[ -f "$s" ] || continue
of "${s##*/}"
case ${s##*/} in
"$b".*."$r") alive "$p" "$t" || rm -f "$s"; continue ;;
"$b".*) ;;
*) rm -f "$s"; continue ;;
esac
o=-
{ read -r o <"$s"; } 2>/dev/null
d=
if [ "$o" != - ] && alive "${o%.*}" "${o#*.}"; then
d=1
if [ $e -lt 30 ]; then kill "${o%.*}"; else kill -KILL "${o%.*}"; fi 2>/dev/null
fi
if alive "$p" "$t"; then
d=1
if [ "$o" = - ] || [ $e -ge 40 ]; then below "$p"; fi
fi
if [ "$d" ]; then w="$w $p"; else rm -f "$s"; fi
done
[ "$w" ] || return 0
if [ $e -ge 100 ]; then
echo ": processes of the former holder do not end:$w" >&2
return 1
fi
e=$((e+1))
sleep 0.1 || sleep 1
done
}
# enrol TOKEN RUN PID START USER SSH: ends the shells of all other runs, and registers this one of USER, so that a run that
# takes the lock over can end it; for an SSH connection also the process of the server, which carries its tunnels. Prints
# the entry. USER may be hostile: only USER's own processes are accepted.
enrol() {
private && closed "$f/sessions" && others "$1" "$2" || return 1
case $5 in
*[!0-9]*) u=$(id -u "$5") || return 1 ;;
*) u=$5 ;;
esac
v=
alive "$3" "$4" && while read -r x y z; do
[ "$x" != Uid: ] || v=$y
done </proc/$3/status
[ "$u" = "$v" ] || { echo ": process $3 is not a shell of $5 any more" >&2; return 1; }
o=-
i=$3
while [ "$6" ] && stat_of "$i" && [ "$y" -gt 1 ]; do
i=$y
stat_of "$i" || break
case $n in
sshd*) o=$i.$z; break ;;
esac
done
s=$f/sessions/$b.$3.$4.$2
(umask 077 && echo "$o" >"$s") && printf %s "$s"
}
