# Runs a job apart from the session that started it: $1 is the job's directory, $2 its limit in seconds, $3 where it
# begins. Comment lines are not sent. Its own session, so that neither the end of the connection nor the watcher reaches
# it; the program has a further one, so that its whole process group can be ended.
trap '' 1
u=$(umask)
umask 077
cd "$1" || exit
now() { date '+%s.%N %Y-%m-%d %H:%M:%S'; }
read -r x </proc/$$/stat
x=${x##*) }
set -- "$2" "$3" $x
echo "$$ ${22}" >pid
now >begun
# A file that has a line has a block of the file system: a small output after it cannot fail for want of room.
for f in out err ended code.new; do
echo . >$f || { head -c 65536 /dev/zero >$f; exit; }
done
echo started
exec >/dev/null 2>&1 3<in
rm -f in
{ umask "$u"; exec setsid sh ./run "$2"; } <&3 >>out 2>>err 3<&- &
p=$!
exec 3<&-
# shellcheck disable=SC2016  # of that shell
setsid sh -c '
n=0
while [ -e code ] || [ "$n" -lt "$1" ]; do
sleep 1
n=$((n+1))
# Without its files a job still has its limit.
[ -e err ] || { kill -0 "-$2" || exit; continue; }
[ "$(( $(stat -c "%s +" out err) 0 ))" -le @MOST@ ] || { true >much; kill -KILL "-$2"; : >out; : >err; exit; }
[ ! -e code ] || kill -0 "-$2" || exit
done
true >late
kill -KILL "-$2"' sh "$1" "$p" &
t=$!
wait "$p"
c=$?
# What the program left running may still fill the disk.
kill -0 "-$p" || { kill -KILL "-$t"; kill -KILL "$t"; }
[ -e late ] && kill -KILL "-$p"
# What is larger than a block is whole only if there is room still.
f=0
head -c 65536 /dev/zero >full || f=1
# Nor is what has reached the size that the login allows files.
for n in out err; do
dd if=/dev/zero of=full bs=1 seek="$(stat -c %s $n)" count=1 || f=1
done
rm -f full
now >>ended
echo "$c $f" >>code.new
mv code.new code
