#!/usr/bin/env bash
# Compares what a program was compiled against (src/kinformer.abi: the public types and functions) with what the
# library has now, and fails when that is not the same: check-abi.sh [--update] LIBRARY. Debian's list of the same names says
# which release each came with; --update adds new ones as of this release.
set -euo pipefail
cd "$(dirname "$0")/.."

baseline=src/kinformer.abi
symbols=debian/libkinformer0.symbols
release=$(sed -n 's/.*KINF_VERSION_STRING "\(.*\)"/\1/p' src/include/kinformer/api.h)

# The interface of a library, without places in files.
describe() {
    abidw --headers-dir src/include/kinformer --drop-private-types --exported-interfaces-only \
        --suppressions src/kinformer.abignore --no-show-locs --no-corpus-path --no-comp-dir-path --no-elf-needed "$1" |
        sed -E "s/ filepath='[^']*'//; s/ line='[0-9]+' column='[0-9]+'//"
}

# Debian's list, as it would be of the baseline.
list_symbols() {
    awk -v release="$release" 'NR == FNR { if (/^ kinf_/) since[$1] = $2; else print; next }
        /<elf-symbol / { name = $2 "@" $4; print " " name " " (name in since ? since[name] : release) }' \
        FS=" " "$symbols" FS="'" "$baseline"
}

now=$(mktemp --suffix=.abi)
trap 'rm -f "$now"' EXIT
if [ "$1" = --update ]; then
    describe "$2" > "$baseline"
    list_symbols > "$now"
    cat "$now" > "$symbols"
    echo "check-abi: $baseline and $symbols are what $2 has"
    exit 0
fi
describe "$1" > "$now"
# Both as XML: told of one library alone what is private, abidiff passes over changes of what is not.
if ! abidiff "$baseline" "$now"; then
    echo "check-abi: the interface is not that of $baseline; if that is meant: make update-abi, and look at its diff" >&2
    exit 1
fi
if ! list_symbols | diff "$symbols" - >&2; then
    echo "check-abi: $symbols is not that of $baseline: make update-abi" >&2
    exit 1
fi
echo "check-abi: ok"
