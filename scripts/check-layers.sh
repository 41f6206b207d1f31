#!/usr/bin/env bash
# Fails on an include that points upwards, on a third party's header outside its one folder, and on a file
# that src/ARCHITECTURE.md or src/WALKS.md names and nobody has. The layers are those of ARCHITECTURE.md.
set -euo pipefail
cd "$(dirname "$0")/.."

# folder: the folders it may include besides itself
declare -A below=(
    [base]=""
    [json]="base"
    [object]="base json"
    [yaml]="base"
    [queue]="base"
    [rest]="base json object yaml"
    [indexer]="base json object"
    [deltafifo]="base json object"
    [reflector]="base json object indexer deltafifo rest"
    [informer]="base json object indexer deltafifo rest reflector"
    [elector]="base json object rest"
    [controller]="base json object rest indexer informer queue elector"
    [recorder]="base json object rest"
    [watchcache]="base json object indexer informer"
    [table]="base json object"
    [serve]="base json object yaml rest indexer informer watchcache table"
    [document]="base json object yaml rest serve"
    [fault]="base json object indexer informer watchcache serve document"
    [apiserver]="base json object yaml rest indexer informer watchcache table serve document fault"
    [workloads]="base json object indexer serve document apiserver"
    [sim]="base json object yaml rest indexer informer controller watchcache serve document fault apiserver workloads"
    [handlers]="base json object reflector rest"
    [state]="base json object indexer"
    [daemon]="base json object yaml rest indexer deltafifo reflector informer watchcache table serve elector handlers state"
)
# header pattern: the only folders that may include it
declare -A owner=(
    ['curl/']="rest"
    ['openssl/']="rest sim"
    ['zlib.h']="rest serve"
    ['zstd.h']="object state"
    ['microhttpd.h']="serve"
    ['gnutls/']="serve"
    ['cjson/']="json document fault apiserver workloads sim"
    ['yaml.h']="yaml"
)

failed=0
complain() {
    echo "check-layers: $1"
    failed=1
}

while IFS=: read -r file line text; do
    folder=${file#src/}
    folder=${folder%%/*}
    [ "$folder" = include ] && continue
    if [ -z "${below[$folder]+known}" ]; then
        complain "$file: folder '$folder' has no layer"
        continue
    fi
    case "$text" in
    *'"'*)
        target=${text#*\"}
        target=${target%%/*}
        if [ "$target" != "$folder" ] && [[ " ${below[$folder]} " != *" $target "* ]]; then
            complain "$file:$line: $folder may not include $target"
        fi
        ;;
    *'<'*)
        target=${text#*<}
        for pattern in "${!owner[@]}"; do
            if [[ "$target" == "$pattern"* && " ${owner[$pattern]} " != *" $folder "* ]]; then
                complain "$file:$line: only ${owner[$pattern]} may include <${target%>*}>"
            fi
        done
        ;;
    esac
done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include' src --include='*.[ch]')

# Public headers include each other and the C library, kinformer.hpp that of C++ (its names have no dot); cJSON only in
# tree.h.
while IFS=: read -r file line text; do
    case "$text" in
    *'<kinformer/'* | *'<std'*.h'>'* | *'<string.h>'*) ;;
    *'<cjson/cJSON.h>'*) [ "$(basename "$file")" = tree.h ] || complain "$file:$line: a third party's type in a public header" ;;
    *) [[ $file == *.hpp && ${text#*<} != *[./]* ]] || complain "$file:$line: a public header includes${text#*include}" ;;
    esac
done < <(grep -rnE '^[[:space:]]*#[[:space:]]*include' src/include)

while IFS=: read -r file line name; do
    name=${name//\`/}
    [ -n "$(find . -path ./build -prune -o -path "*/$name" -print -quit)" ] || complain "$file:$line: there is no $name"
done < <(grep -noE '`[a-z_/-]+\.(c|h|py|sh|txt|html)`' src/ARCHITECTURE.md src/WALKS.md)

[ "$failed" -eq 0 ] && echo "check-layers: ok"
exit "$failed"
