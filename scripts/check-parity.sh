#!/usr/bin/env bash
# Every test of ours that tests/PARITY.md names exists.
set -euo pipefail
cd "$(dirname "$0")/.."

missing=0
while read -r name; do
    if ! grep -rqE "(static void|TEST\() ?$name\b|$name\(void \*\*" tests/unit; then
        echo "check-parity: there is no test $name"
        missing=1
    fi
done < <(awk -F'|' 'NF > 3 {print $3}' tests/PARITY.md | grep -oE '\b[a-z]+(_[a-z0-9]+){3,}\b' | sort -u)
[ "$missing" -eq 0 ] && echo "check-parity: ok"
exit "$missing"
