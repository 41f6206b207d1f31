#!/usr/bin/env bash
# What takes too long for make test, on a real kube-apiserver: how soon dead streams are found at the
# default times. Some seven minutes; one line of figures for each case, 0 when all are within their limits.
set -euo pipefail
cd "$(dirname "$0")/.."

make --no-print-directory -s MODE=asan all
tests/cluster/build.sh
exec python3 -B tests/soak/dead_streams.py
