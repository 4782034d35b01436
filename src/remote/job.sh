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
echo started
exec >/dev/null 2>&1 3<in
rm -f in
{ umask "$u"; exec setsid sh ./run "$2"; } <&3 >out 2>err 3<&- &
p=$!
exec 3<&-
setsid sh -c 'sleep "$1"; : >late; kill -KILL "-$2"' sh "$1" "$p" &
t=$!
wait "$p"
c=$?
kill -KILL "-$t"
kill -KILL "$t"
[ -e late ] && kill -KILL "-$p"
now >ended
echo "$c" >code.new
mv code.new code
