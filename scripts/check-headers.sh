#!/usr/bin/env bash
# Every header compiles by itself; public ones as C++ too, kinformer.hpp as C++17: check-headers.sh "CC FLAGS" CXX
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
$2 -std=c++17 -Wall -Wextra -Wpedantic -Werror -Isrc/include -fsyntax-only -x c++ src/include/kinformer/kinformer.hpp || failed=1
[ "$failed" -eq 0 ] && echo "check-headers: ok"
exit "$failed"
