#!/usr/bin/env bash
# make run: kinformerd on the current cluster, printing notifications; pods unless told otherwise.
set -euo pipefail

daemon=$1
shift
if [ $# -eq 0 ]; then
    set -- --resource pods --events text
fi
echo "$(basename "$daemon") $*"
exec "$daemon" "$@"
