#!/bin/sh
# WANT_JSON: gives back what it was given.
printf '{"changed": true, "msg": "given", "given": %s, "said": "%s", "mine": "%s"}' "$(sed 's/_ansible_/told_/g' "$1")" "$WORD" "$(id -un)"
