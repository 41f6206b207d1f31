"""Debian 13: its compiler, libcurl 8.14, libmicrohttpd 1.0, GnuTLS 3.8 and OpenSSL 3.5, where this machine has Debian 12's."""

import os
import tempfile
import unittest

from debian import Debian, archive, codename, need_chroot, run
from harness import ROOT, needs_sim

SUITE = "trixie"
# What `make deps` and the unit tests need.
PACKAGES = ("build-essential,pkg-config,libcurl4-openssl-dev,libcjson-dev,libyaml-dev,libssl-dev,zlib1g-dev,libmicrohttpd-dev,"
            "libgnutls28-dev,libzstd-dev,libcmocka-dev,libnats-dev,ca-certificates,python3")


@needs_sim("which server it is makes no difference")
class NewerDebian(unittest.TestCase):
    def test_it_builds_without_a_warning_and_its_unit_tests_pass(self):
        if codename() == SUITE:
            self.skipTest("all tests run on it here")
        need_chroot()
        with tempfile.TemporaryDirectory() as folder:
            debian = Debian(os.path.join(folder, SUITE))
            debian.unpack(archive(SUITE, PACKAGES, None))
            os.mkdir(debian.path("/kinformer"))
            run("sh", "-c", f"tar --create --exclude=./build --exclude=./.git . | tar --extract --directory={debian.path('/kinformer')}", cwd=ROOT)
            self.assertEqual(debian.shell("cd /kinformer && nice make -s -j$(nproc) MODE=debug all build-tests 2>&1"), "")
            self.assertRegex(debian.shell("cd /kinformer && nice make -s MODE=debug unit 2>&1"),
                             r"unit tests \(debug\): \d{4} passed, 0 programs failed\n\Z")


if __name__ == "__main__":
    unittest.main()
