#!/usr/bin/env bash
# Installs the Debian packages that are missing, or says how: install-deps.sh [build|image|test|lint|fuzz|coverage|valgrind|bench|docs|clients|packages]...
# "build" is what the daemon and the library need, "image" what the container image is made of and with besides, "test"
# adds cmocka, what the real cluster and its network need, what the plugin for NATS is built with, what looks at the
# systemd unit, at manifests, man pages and completions, what reads and runs the image, and promtool, which goes to
# build/tools: its package would start a Prometheus, "lint" adds clang's tools and abidiff, "fuzz" libFuzzer,
# "coverage" gcovr, "valgrind" valgrind, "bench" what draws the results, "docs" what draws and builds documents, "clients" a browser and
# Node.js, "packages" what makes and tries those of Debian.
# Exits 1 with one plain line when something is missing and cannot be installed.
set -euo pipefail

declare -A packages=(
    [build]="build-essential pkg-config libcurl4-openssl-dev libcjson-dev libyaml-dev libssl-dev zlib1g-dev libmicrohttpd-dev libgnutls28-dev libzstd-dev"
    [image]="ca-certificates python3"
    [test]="clang libcmocka-dev openssl curl python3 python3-venv python3-yaml iproute2 systemd strace libnats-dev scdoc man-db zsh ca-certificates skopeo umoci crun"
    [lint]="clang clang-tidy clang-format abigail-tools"
    [fuzz]="clang libclang-rt-dev"
    [coverage]="gcovr"
    [valgrind]="valgrind"
    [bench]="curl python3 gnuplot-nox"
    [docs]="mkdocs graphviz clang"
    [clients]="chromium"
    [packages]="debhelper dpkg-dev libnats-dev lintian mmdebstrap scdoc xz-utils"
)

# Who has a newer Node.js than Debian's keeps it; its npm is a package of its own there.
command -v npm >/dev/null 2>&1 || packages[clients]+=" nodejs npm"

# promtool alone, out of its package; anybody may do that. Nothing happens if there is one.
fetch_promtool()
{
    local folder

    if command -v promtool >/dev/null 2>&1 || [ -x build/tools/promtool ]; then
        return 0
    fi
    folder=$(mktemp -d)
    # Package lists may be absent or old on a new machine.
    if (cd "$folder" && { apt-get download prometheus || { apt-get update && apt-get download prometheus; }; } &&
            dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x ./usr/bin/promtool) >/dev/null 2>&1; then
        mkdir -p build/tools
        mv "$folder/usr/bin/promtool" build/tools/promtool
    fi
    rm -rf "$folder"
    [ -x build/tools/promtool ]
}

groups=("$@")
missing=()
for group in "$@"; do
    for package in ${packages[$group]}; do
        if command -v dpkg-query >/dev/null 2>&1; then
            dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
        fi
    done
done
if ! command -v dpkg-query >/dev/null 2>&1; then
    # Not Debian: only look whether the build can work.
    pkg-config --exists libcurl libcjson yaml-0.1 openssl zlib libmicrohttpd gnutls libzstd 2>/dev/null && exit 0
    echo "kinformer needs the development files of libcurl (OpenSSL flavour), cJSON, libyaml, OpenSSL, zlib, libmicrohttpd, GnuTLS and zstd; on Debian: ${packages[build]}" >&2
    exit 1
fi
# Without it a test is skipped, which says so.
need_promtool()
{
    [[ " ${groups[*]} " != *" test "* ]] || fetch_promtool ||
        echo "no promtool: Debian's package prometheus cannot be downloaded, and there is none in PATH" >&2
}

if [ ${#missing[@]} -eq 0 ]; then
    need_promtool
    exit 0
fi

command="apt-get install -y --no-install-recommends ${missing[*]}"
if [ "$(id -u)" -ne 0 ]; then
    if command -v sudo >/dev/null 2>&1 && sudo -n true 2>/dev/null; then
        command="sudo $command"
    else
        command -v sudo >/dev/null 2>&1 && run="run: sudo $command" || run="run as root: $command"
        echo "missing packages; $run" >&2
        exit 1
    fi
fi
echo "installing: ${missing[*]}"
# Package lists may be absent or old on a new machine; then the first try fails.
export DEBIAN_FRONTEND=noninteractive
if ! $command >/dev/null 2>&1; then
    ${command%%apt-get*}apt-get update >/dev/null || true
    $command >/dev/null || {
        echo "could not install packages; run: $command" >&2
        exit 1
    }
fi
need_promtool
