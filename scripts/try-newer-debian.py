#!/usr/bin/env python3
"""make try-newer-debian: builds on Debian 13 without a warning, and runs the unit tests there.

Its compiler, libcurl 8.14, libmicrohttpd 1.0, GnuTLS 3.8 and OpenSSL 3.5 are ahead of Debian 12's, and behave otherwise where
ours went by what those do. In a chroot, made by mmdebstrap of packages from where this machine has its own, and kept in
build/chroot. Needs root. Four minutes of two processors.
"""

import os
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))

from debian import Debian, archive, need_chroot  # pylint: disable=wrong-import-position

SUITE = "trixie"
# What `make deps` and the unit tests need.
PACKAGES = ("build-essential,pkg-config,libcurl4-openssl-dev,libcjson-dev,libyaml-dev,libssl-dev,zlib1g-dev,libmicrohttpd-dev,"
            "libgnutls28-dev,libzstd-dev,libcmocka-dev,libnats-dev,ca-certificates,python3")


def main():
    need_chroot()
    with tempfile.TemporaryDirectory(prefix="kinformer-try-") as folder:
        debian = Debian(os.path.join(folder, SUITE))
        debian.unpack(archive(SUITE, PACKAGES, None))
        debian.copy_project("/kinformer")
        said = debian.shell("cd /kinformer && make -s -j$(nproc) MODE=debug all build-tests 2>&1")
        if said != "":
            raise AssertionError(said)
        print(debian.shell("cd /kinformer && make -s MODE=debug unit 2>&1"), end="")


if __name__ == "__main__":
    try:
        main()
    except (AssertionError, unittest.SkipTest) as error:  # what was run has failed, or there is no tool for it
        sys.exit(str(error))
