#!/usr/bin/env bash
# Installs @kubernetes/client-node into build/clients/node, from package-lock.json (made of package.json by
# `npm install --omit-lockfile-registry-resolved`). A run that finds nothing changed returns at once.
set -euo pipefail
cd "$(dirname "$0")"

to=../../../build/clients/node
key=$(node --version; cat package-lock.json install.sh | sha256sum)
if [ -f "$to/stamp" ] && [ "$(cat "$to/stamp")" = "$key" ]; then
    exit 0
fi
rm -rf "$to"
mkdir -p "$to"
cp package.json package-lock.json "$to"
(cd "$to" && npm ci --silent --ignore-scripts --no-audit --no-fund)
echo "$key" >"$to/stamp"
