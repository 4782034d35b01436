fresh
# A holder that is put to sleep in the middle of its work, on all hosts at once, with programs under way there.
in_background "$scratch/asleep"
asleep=$holder
until_it_says "$scratch/asleep" 'TASK \[etcd : '
kill -STOP "$asleep"
lock_of h1 | sed -n 1p | matches -E '^1 [0-9a-z]{26}$' || broken "it does not hold the lock: $(lock_of h1)"

applied
exits 1
says "locked by .*: windlass apply .* \(pid $asleep\), held for "
says 'hint: .*--break-lock'

applied --break-lock
exits 0
says 'taking over the lock from '
healthy
lock_of h1 | sed -n 1p | matches -E '^2 -$' || broken "the token did not rise: $(lock_of h1)"
settled_trees >"$scratch/before"
(cd "$state/credentials" && find . -type f -exec sha256sum {} + | sort) >"$scratch/here-before"
members=$(etcdctl member list)

kill -CONT "$asleep"
code=0
wait "$asleep" || code=$?
cat "$scratch/asleep"
[ $code != 0 ] || broken "the former lock holder reports success"
grep -aqE 'was taken over by|took it over|does not hold the lock of the deployment any more|lost the connection' "$scratch/asleep" || broken "it does not say why it ends"
settled_trees >"$scratch/after"
same_trees "$scratch/before" "$scratch/after"
(cd "$state/credentials" && find . -type f -exec sha256sum {} + | sort) >"$scratch/here-after"
diff "$scratch/here-before" "$scratch/here-after" || broken "the credentials on this machine changed"
[ "$members" = "$(etcdctl member list)" ] || broken "the members of etcd changed"
applied
exits 0
says '^Nothing to do\.$'
