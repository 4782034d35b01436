# What is done to a deployment's lock on one host, as root: what is asked follows these lines. Comment lines are not sent.
# f: the lock's directory. In it: `lock` (first line `TOKEN RUN`, or `TOKEN -` when nobody holds it), `beat` (written by the
# holder again and again), `sessions/BOOT.PID.START.RUN` (a shell of a run, and in it the server's process or `-`), `mutex`.
f=@DIRECTORY@
umask 022
boot() {
read -r b </proc/sys/kernel/random/boot_id
}
# alive PID START: whether that very process is there.
alive() {
{ read -r x </proc/$1/stat; } 2>/dev/null || return 1
x=${x##*) }
set -- "$2" $x
[ "${21}" = "$1" ] && [ "$2" != Z ]
}
# of NAME: the process of an entry of sessions/, to p and t, its run to r.
of() {
r=${1#*.}
p=${r%%.*}
r=${r#*.}
t=${r%%.*}
r=${r#*.}
}
# owned FILE PID: anybody may leave an entry; so it speaks for processes of its own user only.
owned() {
u=$(stat -c %u "$1") || return 1
[ "$u" = 0 ] && return 0
while read -r x y z; do
[ "$x" != Uid: ] || { [ "$y" = "$u" ]; return; }
done </proc/$2/status
return 1
} 2>/dev/null
# below PID: ends what the process started, then itself. It is stopped first, so that it starts nothing more.
below() {
kill -STOP $1
l=" $1 "
n=1
while [ $n = 1 ]; do
n=0
for i in /proc/[0-9]*/stat; do
{ read -r x <$i; } || continue
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
# look: the host's time, the last beat, how many shells of the holder are there, and the lock itself.
look() {
a=
c=
{ read -r a c <"$f/lock"; } 2>/dev/null || { echo none; return 0; }
boot
k=0
for s in "$f"/sessions/"$b".*."$c"; do
of "${s##*/}"
! [ -e "$s" ] || ! alive "$p" "$t" || k=$((k+1))
done
echo "seen $(date +%s) $(stat -c %Y "$f/beat" 2>/dev/null || echo 0) $k"
cat "$f/lock"
}
# lock_up: nobody else is at work on the lock's files until this shell ends.
lock_up() {
command -v flock >/dev/null || { echo ': there is no flock on the host (util-linux has it)' >&2; return 1; }
mkdir -p "$f" && exec 9>"$f/mutex" && flock 9 || return 1
[ -d "$f/sessions" ] || { mkdir "$f/sessions" && chmod 1733 "$f/sessions"; }
}
# put RUN: makes standard input the lock.
put() {
rm -f "$f"/.lock.*
cat >"$f/.lock.$1" && sync "$f/.lock.$1" && mv -f "$f/.lock.$1" "$f/lock" && sync "$f"
}
# claim TOKEN RUN OVER: standard input becomes the lock if that may be: nobody holds it, or whoever OVER says does
# (`TOKEN RUN`, or `any`). Says for how many seconds the one before was not heard of.
claim() {
lock_up || return 1
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
lock_up || return 1
a=
{ read -r a <"$f/lock"; } 2>/dev/null
[ "$a" = "$1 $2" ] || return 0
put "$2"
}
# others RUN: ends the shells of all other runs, with what they run and the connections that they came by.
others() {
boot
e=0
while :; do
w=
for s in "$f"/sessions/*; do
[ -e "$s" ] || continue
case ${s##*/} in
"$b".*."$1") continue ;;
"$b".*) ;;
*) rm -f "$s"; continue ;;
esac
of "${s##*/}"
o=-
{ read -r o <"$s"; } 2>/dev/null
d=
if [ "$o" != - ] && alive "${o%.*}" "${o#*.}" && owned "$s" "${o%.*}"; then
d=1
if [ $e -lt 30 ]; then kill "${o%.*}"; else kill -KILL "${o%.*}"; fi 2>/dev/null
fi
if alive "$p" "$t" && owned "$s" "$p"; then
d=1
[ "$o" != - ] && [ $e -lt 40 ] || below "$p"
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
