#!/usr/bin/env bash
# Fails when the shared library exports a name outside kinf_, or one that is internal (kinf__), or when a
# function that a public header declares is missing: check-symbols.sh LIBRARY
set -euo pipefail
cd "$(dirname "$0")/.."

exported=$(nm -D --defined-only "$1" | awk '{print $3}' | sort)
failed=0

wrong=$(grep -vE '^kinf_[a-z]' <<<"$exported" || true)
if [ -n "$wrong" ]; then
    echo "check-symbols: exported, and not public:" $wrong
    failed=1
fi
# Declared: KINF_API ... kinf_name(
# testing.h is of a library of its own.
declared=$(find src/include/kinformer -name "*.h" ! -name testing.h -exec cat {} + | tr '\n' ' ' | grep -oE 'KINF_API[^;{]*' |
    grep -oE 'kinf_[a-z0-9_]+\(' | tr -d '(' | sort -u)
missing=$(comm -13 <(echo "$exported") <(echo "$declared"))
if [ -n "$missing" ]; then
    echo "check-symbols: declared, and not exported:" $missing
    failed=1
fi
[ "$failed" -eq 0 ] && echo "check-symbols: ok, $(wc -l <<<"$exported") names"
exit "$failed"
