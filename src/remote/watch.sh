# What every session starts with: a watcher that passes the requests on to the shell that answers them, and that ends
# what this shell runs when they end, so when the connection is lost.
# Given to `sh -c` by whatever shell the login has (csh, fish, ...): lines are joined by spaces, and there is no quote,
# backslash or exclamation mark in them.
#
# The processes: ours, its two halves (the watcher, and what guards the shell), below them `cat` and the shell, below
# these what the shell runs.
# f: finds `cat` and the shell, in $v, and what the shell runs, in $g. A leader of a process group stands as -PID for all
# its group, as `kill` takes it.
# k: the children of $1, in $x; nothing where the kernel has no such lists.
# q: whether the shell runs anything. Mostly not when a session is over, and then there is no need to look at all processes
# of the host, as f does. A list may lack a child while another one ends, but is never empty while there is one.
# e: ends what the shell runs. At the end of a session its guard is still there for a moment, so it looks a few times.
# 137: the guard ended `cat`, as the connection is cut. A shell that is stuck in writing to it does not end by itself.
# Signals to the whole group, or to this shell through sudo, must not end the watcher before it has done its work; what
# it runs gets them as ever.
trap : 1 2 15;
f() {
a=;
for i in /proc/[0-9]*/stat; do
x=;
while read -r p; do x="$x $p"; done <$i;
[ "$x" ] || continue;
p=${i#/proc/}; p=${p%/stat};
set -- ${x##*) };
a="$a $2:$p:$3";
done;
t=" "; v=; g=;
for i in $a; do
case $i in $$:*) i=${i#*:}; t="$t${i%:*} ";; esac;
done;
u=$t;
for i in $a; do
case "$t" in *" ${i%%:*} "*) i=${i#*:}; v="$v ${i%:*}"; u="$u${i%:*} ";; esac;
done;
n=1;
while [ $n = 1 ]; do
n=0;
for i in $a; do
p=${i%%:*}; c=${i#*:}; r=${c#*:}; c=${c%:*};
case "$t" in *" $p "*) continue;; esac;
case "$u" in
*" $c "*) ;;
*" $p "*) u="$u$c "; n=1; [ $r = $c ] && c=-$c; g="$g $c";;
esac;
done;
done;
};
k() {
x=;
read -r x </proc/$1/task/$1/children;
};
q() {
k $$; [ "$x" ] || return 0;
for i in $x; do
k $i;
for v in $x; do k $v; [ "$x" ] && return 0; done;
done;
return 1;
};
e() {
n=0;
while q; do n=$((n+1)); [ $n -lt 200 ] || break; done;
[ $n = 200 ] || return;
sleep 0.1 || sleep 1;
q || return;
f;
for i in $g; do kill -TERM $i; done;
n=0;
while [ $n -lt 20 ]; do
l=;
for i in $g; do kill -0 $i && l=1; done;
[ "$l" ] || return;
sleep 0.1 || sleep 1;
n=$((n+1));
done;
h=$g; f;
for i in $h $g; do kill -KILL $i; done;
};
{ trap : 1 2 15; cat; d=$?; e; [ $d = 137 ] && { exec >/dev/null; sleep 2; f; kill -KILL $v; }; } 2>/dev/null | { trap : 1 2 15; sh || { f; kill $v; } 2>/dev/null; }
