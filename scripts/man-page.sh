#!/usr/bin/env bash
# Writes a man page, with what is said elsewhere filled in: man-page.sh docs/man/NAME.scd VERSION SCDOC.
# @VERSION@ is the release; a line @HEADERS@ becomes the list of the public headers, each with the first sentence of
# its comment; a line @PROGRAM@ becomes examples/pod-logger.
set -euo pipefail
cd "$(dirname "$0")/.."

headers() {
    local header
    for header in src/include/kinformer/*; do
        echo "*kinformer/$(basename "$header")*"
        awk 'NR == 1 { next }
             { sub(/^ \* ?/, "") }
             $0 == "" || /^\// { exit }
             { text = text (text == "" ? "" : " ") $0 }
             # In scdoc these characters would begin something.
             END { sub(/\. .*/, ".", text); gsub(/[_*\\`]/, "\\\\&", text); print "\t" text "\n" }' "$header"
    done
}

fill_in() {
    local line
    while IFS= read -r line; do
        case $line in
        @HEADERS@) headers ;;
        @PROGRAM@) sed '1,/^ \*\/$/d; s/\\/&&/g' examples/pod-logger/main.c ;;
        *) printf '%s\n' "${line//@VERSION@/$2}" ;;
        esac
    done < "$1"
}

# man(7)'s macros switch the hyphens on again that scdoc switches off, and names of functions would get some; options
# would be broken behind one of their own.
fill_in "$1" "$2" | $3 | sed 's/^\.nh$/&\n.nr HY 0\n.cflags 0 -/'
