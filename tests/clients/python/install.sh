#!/usr/bin/env bash
# Installs the Kubernetes client of Python into build/clients/python, from requirements.txt (made of requirements.in by
# pip-compile --generate-hashes), or what another folder's requirements.txt has. A run that finds nothing changed returns at
# once: install.sh [FOLDER]
set -euo pipefail
here=$(realpath "$(dirname "$0")")
cd "${1:-$here}"

to=$here/../../../build/clients/$(basename "$PWD")
key=$(python3 --version; cat requirements.txt "$here/install.sh" | sha256sum)
if [ -f "$to/stamp" ] && [ "$(cat "$to/stamp")" = "$key" ]; then
    exit 0
fi
rm -rf "$to"
mkdir -p "$(dirname "$to")"
python3 -m venv "$to" || {
    echo "the Python client's tests need the module venv; on Debian: apt-get install python3-venv" >&2
    exit 1
}
"$to/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: -r requirements.txt
echo "$key" >"$to/stamp"
