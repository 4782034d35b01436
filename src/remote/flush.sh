# wl_flush FILE: has a file written to its disk. An old sync takes no operands, flushes every disk and reports no error: dd
# flushes the file then. Which it is, is found out once: a sync that takes operands refuses one that is not there. Comment
# lines are not sent.
wl_sync=
wl_flush() {
if [ -z "$wl_sync" ]; then
wl_sync="dd"
if command -v sync >/dev/null && ! sync "$1.none" 2>/dev/null; then
wl_sync=sync
fi
fi
if [ "$wl_sync" = sync ]; then
sync "$1"
else
wl_i=$(dd if=/dev/null of="$1" conv=notrunc,fsync 2>&1) && return
# Its figures follow the reason.
printf '%s\n' "${wl_i%%
*}" >&2
return 1
fi
}
