#!/usr/bin/env bash
# Writes the source archive: what git knows of this folder, or, where it is an archive unpacked, all of it that is not built. Its
# bytes depend on nothing else: names are sorted, owners and rights are everybody's, and the time is that of the last commit
# (or SOURCE_DATE_EPOCH), which an unpacked archive has on its files: make-dist.sh VERSION ARCHIVE
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

if [ -e .git ]; then
    files() { git ls-files -z; }
    time=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
else
    files() { find . \( -path ./build -o -path ./compile_commands.json \) -prune -o ! -type d -printf '%P\0'; }
    time=${SOURCE_DATE_EPOCH:-$(stat -c %Y CHANGELOG.md)}
fi
mkdir -p "$(dirname "$2")"
files | sort -z | tar --create --format=gnu --mtime="@$time" --owner=root:0 --group=root:0 --mode=u=rwX,go=rX \
    --transform="s,^,kinformer-$1/,S" --null --no-recursion --files-from=- | xz -T1 >"$2.part"
mv "$2.part" "$2"
