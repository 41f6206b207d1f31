#!/usr/bin/env bash
# Every header compiles by itself; public ones as C++ too: check-headers.sh "CC FLAGS" CXX
set -euo pipefail
cd "$(dirname "$0")/.."

failed=0
for header in $(find src -name '*.h' | sort); do
    # shellcheck disable=SC2086
    $1 -fsyntax-only -x c "$header" -Wno-pragma-once-outside-header || failed=1
done
for header in src/include/kinformer/*.h; do
    $2 -std=c++11 -Wall -Wextra -Isrc/include -fsyntax-only -x c++ "$header" || failed=1
done
[ "$failed" -eq 0 ] && echo "check-headers: ok"
exit "$failed"
