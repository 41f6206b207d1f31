#!/usr/bin/env python3
"""make try-arm64: compiles all for 64-bit ARM without a warning, and runs the unit tests there, by an emulator.

With NEON in place of AVX2, and char without a sign. The compiler is of this machine, so that this takes minutes. In a chroot of
both architectures, made by mmdebstrap of packages from where this machine has its own, and kept in build/chroot. Needs root.
"""

import os
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))

from debian import Debian, archive, codename, need_chroot, run  # pylint: disable=wrong-import-position

PREFIX = "aarch64-linux-gnu-"
TOOLS = [f"g++-{PREFIX[:-1]}", f"gcc-{PREFIX[:-1]}", "ca-certificates", "make", "pkg-config", "python3", "qemu-user-static"]
LIBRARIES = ["libc6-dev", "libcmocka-dev", "libcjson-dev", "libcurl4-openssl-dev", "libgnutls28-dev", "libmicrohttpd-dev", "libnats-dev",
             "libssl-dev", "libyaml-dev", "libzstd-dev", "zlib1g-dev"]
# The emulator tells no failure of an execve() behind a vfork(), has another /proc and no MADV_POPULATE_WRITE, and takes all the memory
# of a stack that is far too large.
OTHERWISE_EMULATED = {"base", "credentials", "exec", "exec_handler", "process_metrics", "state_file"}
# Of several minutes.
TOO_SLOW = {"controller_sync", "swept_library", "swept_server"}


def main():
    need_chroot()
    included = TOOLS + [library + ":arm64" for library in LIBRARIES]
    with tempfile.TemporaryDirectory(prefix="kinformer-try-") as folder:
        debian = Debian(os.path.join(folder, "arm64"))
        debian.unpack(archive(codename(), ",".join(included), None, "--architectures=" + run("dpkg", "--print-architecture").strip() + ",arm64",
                              name="arm64"))
        debian.copy_project("/kinformer")
        said = debian.shell("cd /kinformer && PKG_CONFIG_LIBDIR=/usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig "
                            f"make -s -j$(nproc) MODE=debug CC={PREFIX}gcc CXX={PREFIX}g++ AR={PREFIX}ar all build-tests 2>&1")
        if said != "":
            raise AssertionError(said)
        tests = sorted(name for name in os.listdir(debian.path("/kinformer/build/debug/tests"))
                       if name.startswith("test_") and "." not in name and name[5:] not in OTHERWISE_EMULATED | TOO_SLOW)
        print(debian.shell("cd /kinformer && scripts/run-unit-tests.sh arm64 " + " ".join("build/debug/tests/" + name for name in tests)), end="")
        print("not run there: " + " ".join(sorted(OTHERWISE_EMULATED | TOO_SLOW)))


if __name__ == "__main__":
    try:
        main()
    except (AssertionError, unittest.SkipTest) as error:  # what was run has failed, or there is no tool for it
        sys.exit(str(error))
