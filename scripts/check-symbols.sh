#!/usr/bin/env bash
# Fails when the shared library exports a name outside kinf_, or one that is internal (kinf__), or when a
# function that a public header declares is missing, or takes a pointer and is not in the test of misuse:
# check-symbols.sh LIBRARY
set -euo pipefail
cd "$(dirname "$0")/.."

exported=$(nm -D --defined-only "$1" | awk '$2 != "A" {print $3}' | sort)
failed=0

unversioned=$(grep -v '@@KINFORMER_0$' <<<"$exported" || true)
if [ -n "$unversioned" ]; then
    echo "check-symbols: exported without the version of src/kinformer.map:" $unversioned
    failed=1
fi
exported=$(sed 's/@.*//' <<<"$exported" | sort)

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
untried=$(find src/include/kinformer -name "*.h" -exec cat {} + | tr '\n' ' ' | grep -oE 'KINF_API[^;{]*;' |
    grep -oE 'kinf_[a-z0-9_]+\([^)]*\*.*' | grep -vE '^kinf_[a-z0-9_]+\(struct kinf_error \*err\)' |
    grep -oE '^kinf_[a-z0-9_]+' | grep -vxFf <(grep -oE 'kinf_[a-z0-9_]+' tests/unit/test_misuse.c | sort -u) || true)
if [ -n "$untried" ]; then
    echo "check-symbols: takes a pointer, and is not in tests/unit/test_misuse.c:" $untried
    failed=1
fi
[ "$failed" -eq 0 ] && echo "check-symbols: ok, $(wc -l <<<"$exported") names"
exit "$failed"
