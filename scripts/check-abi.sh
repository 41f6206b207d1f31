#!/usr/bin/env bash
# Compares what a program was compiled against (src/kinformer.abi: the public types and functions) with what the
# library has now, and fails when that is not the same: check-abi.sh [--update] LIBRARY
set -euo pipefail
cd "$(dirname "$0")/.."

baseline=src/kinformer.abi

# The interface of a library, without places in files.
describe() {
    abidw --headers-dir src/include/kinformer --drop-private-types --exported-interfaces-only \
        --suppressions src/kinformer.abignore --no-show-locs --no-corpus-path --no-comp-dir-path --no-elf-needed "$1" |
        sed -E "s/ filepath='[^']*'//; s/ line='[0-9]+' column='[0-9]+'//"
}

if [ "$1" = --update ]; then
    describe "$2" > "$baseline"
    echo "check-abi: $baseline is what $2 has"
    exit 0
fi
now=$(mktemp --suffix=.abi)
trap 'rm -f "$now"' EXIT
describe "$1" > "$now"
# Both as XML: told of one library alone what is private, abidiff passes over changes of what is not.
if ! abidiff "$baseline" "$now"; then
    echo "check-abi: the interface is not that of $baseline; if that is meant: make update-abi, and look at its diff" >&2
    exit 1
fi
echo "check-abi: ok"
