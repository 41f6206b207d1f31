"""make dist, make deb and the SBOM: what they make, and the life of the packages in a fresh Debian."""

import hashlib
import json
import os
import re
import select
import shutil
import subprocess
import tempfile
import unittest

from debian import Debian, archive, codename, need_chroot, run
from harness import PATIENCE, ROOT, needs_sim, wait_until
from test_install import compiler, make, read, version

DEBS = os.path.join(ROOT, "build", "deb")
PACKAGES = ("libkinformer0", "libkinformer-dev", "libkinformer-testing-dev", "kinformerd", "kinformerd-nats", "kinformer-sim")
LINKED = ("libkinformer0", "kinformerd", "kinformerd-nats", "kinformer-sim")
CONFIG = "/etc/kinformer/kinformerd.yaml"
# What the README's command line needs beside libkinformer-dev.
COMPILER = "gcc,libc6-dev,pkg-config"


def deb_path(package):
    return next(os.path.join(DEBS, name) for name in os.listdir(DEBS) if name.startswith(f"{package}_{version()}_"))


def fresh_debian(folder):
    """One with a compiler, where our packages were installed without a network: what they depend on is in its archive."""
    debs = [deb_path(package) for package in PACKAGES]
    debian = Debian(folder)
    debian.unpack(archive(codename(), COMPILER, [run("dpkg-deb", "--field", deb, "Depends") for deb in debs], "--skip=cleanup/apt",
                          "--customize-hook=APT_CONFIG=\"$MMDEBSTRAP_APT_CONFIG\" apt-get install --yes --no-install-recommends "
                          "--download-only " + " ".join(debs)))
    os.mkdir(debian.path("/debs"))
    for deb in debs:
        shutil.copy(deb, debian.path("/debs"))
    debian.shell("unshare --net apt-get install --yes --no-install-recommends /debs/*.deb")
    return debian


@needs_sim("which server it is makes no difference")
class DistTest(unittest.TestCase):
    def test_the_archive_is_the_same_from_a_clone_and_from_an_archive(self):
        first = os.path.join(ROOT, make("dist").splitlines()[-1])
        self.assertEqual(os.path.basename(first), f"kinformer-{version()}.tar.xz")
        with tempfile.TemporaryDirectory() as folder:
            run("tar", "--extract", "--file=" + first, "--directory=" + folder)
            unpacked = os.path.join(folder, f"kinformer-{version()}")
            run("sh", "-c", f"umask 077 && touch README.md && make dist", cwd=unpacked)
            with open(first, "rb") as one, open(os.path.join(unpacked, "build", "dist", os.path.basename(first)), "rb") as other:
                self.assertTrue(one.read() == other.read())
            if os.path.exists(os.path.join(ROOT, ".git")):
                known = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], stdout=subprocess.PIPE, text=True, check=True).stdout
                found = {os.path.relpath(os.path.join(path, name), unpacked) for path, _, names in os.walk(unpacked) for name in names}
                self.assertEqual(set(known.split("\0")[:-1]), {path for path in found if not path.startswith("build/")})


@needs_sim("they are the same with either server")
class PackagesTest(unittest.TestCase):
    """They are built once, and installed without a network."""

    @classmethod
    def setUpClass(cls):
        need_chroot("dh", "lintian")
        make("deb", nice=10)  # beside tests that measure times
        folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.debian = fresh_debian(os.path.join(folder, "debian"))

    # --- what they are ---

    def test_lintian_has_nothing_to_say(self):
        changes = os.path.join(DEBS, f"kinformer_{version()}_{run('dpkg', '--print-architecture').strip()}.changes")
        self.assertEqual(run("lintian", "--allow-root", "--display-info", "--pedantic", "--tag-display-limit=0", changes), "")

    def test_there_are_these_and_each_has_its_files(self):
        listed = {package: set(self.debian.run("dpkg", "--listfiles", package).split("\n")) for package in PACKAGES}
        triplet = self.debian.run("gcc", "-print-multiarch").strip()
        for package, paths in {
                "libkinformer0": [f"/usr/lib/{triplet}/libkinformer.so.0"],
                "libkinformer-dev": [f"/usr/lib/{triplet}/libkinformer.so", f"/usr/lib/{triplet}/libkinformer.a",
                                     f"/usr/lib/{triplet}/pkgconfig/kinformer.pc", "/usr/share/man/man3/libkinformer.3.gz"],
                "libkinformer-testing-dev": [f"/usr/lib/{triplet}/libkinformer-testing.a", "/usr/include/kinformer/testing.h"],
                "kinformerd": ["/etc/kinformer/kinformerd.yaml", "/lib/systemd/system/kinformerd.service",
                               "/usr/share/man/man5/kinformerd.yaml.5.gz", "/usr/share/man/man8/kinformerd.8.gz",
                               "/usr/share/bash-completion/completions/kinformerd", "/usr/share/zsh/vendor-completions/_kinformerd"],
                "kinformer-sim": ["/usr/share/man/man1/kinformer-sim.1.gz", "/usr/share/bash-completion/completions/kinformer-sim",
                                  "/usr/share/zsh/vendor-completions/_kinformer-sim"]}.items():
            self.assertLessEqual(set(paths), listed[package], package)
        headers = {"/usr/include/kinformer/" + name for name in os.listdir(os.path.join(ROOT, "src", "include", "kinformer"))}
        self.assertLessEqual(headers, set().union(*listed.values()))

    def test_the_build_ends_when_the_symbols_are_others(self):
        """As debian/rules has it checked, by the packaged library."""
        level = re.search(r"DPKG_GENSYMBOLS_CHECK_LEVEL = (\d)$", read("debian/rules"), re.M)[1]
        library = self.debian.shell("readlink -f /usr/lib/*/libkinformer.so.0").strip()
        lines = read("debian/libkinformer0.symbols").splitlines(keepends=True)
        for what, changed, is_good in (("as it is", lines, True), ("without a name", lines[:-1], False),
                                       ("with a name that is gone", lines + [" kinf_gone@KINFORMER_0 0.1.0\n"], False)):
            with self.subTest(what), tempfile.NamedTemporaryFile("w", encoding="utf-8") as symbols:
                symbols.writelines(changed)
                symbols.flush()
                done = subprocess.run(["dpkg-gensymbols", "-plibkinformer0", "-v" + version(), "-c" + level, "-I" + symbols.name, "-O/dev/null",
                                       "-e" + self.debian.path(library)], cwd=ROOT, check=False, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.PIPE, text=True)
                self.assertEqual(done.returncode == 0, is_good, done.stderr)

    def test_the_sbom_names_what_the_dynamic_linker_loads(self):
        path = os.path.join(DEBS, f"kinformer-{version()}.spdx.json")
        run(os.path.join(ROOT, "tests", "clients", "python", "install.sh"), os.path.join(ROOT, "tests", "spdx"))
        run(os.path.join(ROOT, "build", "clients", "spdx", "bin", "pyspdxtools"), "--infile", path)
        sbom = json.loads(read(path))
        names = {package["SPDXID"]: package["name"] for package in sbom["packages"]}
        links = [(names.get(link["spdxElementId"]), names[link["relatedSpdxElement"]], link["relationshipType"])
                 for link in sbom["relationships"]]
        self.assertEqual({name for _, name, verb in links if verb == "DESCRIBES"}, set(LINKED))
        for package in LINKED:
            loaded = {package}
            while more := {b for a, b, verb in links if verb == "DYNAMIC_LINK" and a in loaded} - loaded:
                loaded |= more
            self.assertEqual(loaded - {package}, self.loaded_packages(package), package)
        checksums = {package["name"]: package["checksums"][0]["checksumValue"] for package in sbom["packages"] if "checksums" in package}
        for package in LINKED:
            with open(deb_path(package), "rb") as file:
                self.assertEqual(checksums[package], hashlib.sha256(file.read()).hexdigest())

    def loaded_packages(self, package):
        """As the chroot has them installed."""
        files = f"dpkg --listfiles {package} | grep -E '/bin/|[.]so'"
        libraries = self.debian.shell(f"for file in $({files}); do ldd $file; done").splitlines()
        paths = {line.split()[-2] for line in libraries if line.split()[-2].startswith("/")}
        said = self.debian.shell("for path in " + " ".join(paths) + "; do dpkg -S $path 2>/dev/null || dpkg -S /usr$path; done")
        return {line.partition(":")[0] for line in said.splitlines()}

    # --- what is installed ---

    def test_programs_say_their_version(self):
        for program in ("kinformerd", "kinformer-sim"):
            self.assertEqual(self.debian.run(program, "--version").strip(), f"{program} {version()}")
        self.assertEqual(self.debian.run("pkg-config", "--modversion", "kinformer", "kinformer-testing").split(), [version()] * 2)

    def test_the_configuration_is_good_and_for_the_daemon_alone(self):
        self.assertIn("good", self.debian.run("setpriv", "--reuid=kinformerd", "--regid=kinformerd", "--clear-groups", "kinformerd",
                                              "--check-config", "--config", CONFIG))
        self.assertEqual(self.debian.owner(CONFIG), "-rw-r----- root:kinformerd")
        self.assertEqual(self.debian.owner("/etc/kinformer"), "drwxr-xr-x root:root")

    def test_the_user_cannot_log_in(self):
        _, _, uid, _, _, home, shell = self.debian.users()["kinformerd"]
        self.assertLess(int(uid), 1000)
        self.assertEqual((home, shell), ("/var/lib/kinformer", "/usr/sbin/nologin"))

    def test_the_service_is_for_systemd_and_waits_to_be_enabled(self):
        self.assertEqual(self.debian.shell("systemctl is-enabled kinformerd || true").strip(), "disabled")
        self.assertEqual(self.debian.run("systemd-analyze", "verify", "--man=no", "kinformerd.service"), "")
        unit = self.debian.read("/lib/systemd/system/kinformerd.service")
        self.assertIn("\nUser=kinformerd\n", unit)
        self.assertNotIn("DynamicUser", unit)
        told = self.debian.run("systemd-analyze", "security", "--offline=true", "--no-pager", "kinformerd.service")
        self.assertLess(float(re.search(r"exposure level for \S+: ([\d.]+)", told)[1]), 3)

    def test_the_daemon_loads_the_plugin(self):
        self.assertIn("nats", self.debian.shell("kinformerd --check-plugin /usr/lib/*/kinformer/kinformer-nats.so"))

    # --- what it is good for ---

    def test_daemon_and_readmes_program_see_the_simulated_cluster(self):
        readme = read("README.md")
        self.debian.write("/program.c", re.search(r"^```c\n(.*?)^```", readme, re.M | re.S)[1])
        self.debian.shell("cd / && " + re.search(r"^    (cc program\.c .*)$", readme, re.M)[1])
        kubeconfig = "/sim.kubeconfig"
        with self.debian.start("kinformer-sim", "--load", "/usr/share/doc/kinformer-sim/examples/sample.yaml",
                               "--write-kubeconfig", kubeconfig):
            wait_until(lambda: os.path.exists(self.debian.path(kubeconfig)), "kinformer-sim writes a kubeconfig")
            self.assertIn("good", self.debian.run("kinformerd", "--kubeconfig", kubeconfig, "--config", CONFIG, "--check-config", "--online"))
            with self.debian.start("env", "KUBECONFIG=" + kubeconfig, "stdbuf", "--output=L", "/program") as program:
                self.assertTrue(select.select([program.stdout], [], [], PATIENCE)[0])
                self.assertRegex(program.stdout.readline(), r"^shop/\S+ runs on node-\d$")

    def test_a_program_has_its_test(self):
        self.debian.shell("cd /usr/share/doc/libkinformer-dev/examples/tested-program && "
                          "cc main.c counter.c $(pkg-config --cflags --libs kinformer-testing) -o /tested && /tested")

    # --- its end ---

    def test_upgraded_removed_and_purged(self):
        debian = Debian(self.debian.folder + ".copy")
        run("cp", "--archive", self.debian.folder, debian.folder)
        asked = "/asked"
        debian.write("/usr/local/sbin/systemctl", f"#!/bin/sh\necho \"$@\" >> {asked}\n", 0o755)
        os.makedirs(debian.path("/run/systemd/system"))
        os.makedirs(debian.path("/var/lib/kinformer/state"))
        debian.shell(f"echo '# mine' >> {CONFIG}")

        debian.shell("dpkg --install /debs/kinformerd_*.deb")
        self.assertIn("try-restart --no-block kinformerd.service\n", debian.read(asked))
        self.assertNotRegex(debian.read(asked), r"(?m)^(re)?start|^stop|^enable")
        self.assertTrue(debian.read(CONFIG).endswith("# mine\n"))
        self.assertEqual(debian.owner(CONFIG), "-rw-r----- root:kinformerd")

        debian.run("dpkg", "--remove", *PACKAGES)
        self.assertIn("stop kinformerd.service\n", debian.read(asked))
        self.assertTrue(os.path.exists(debian.path(CONFIG)))
        self.assertTrue(os.path.exists(debian.path("/var/lib/kinformer/state")))

        debian.run("dpkg", "--purge", *PACKAGES)
        shutil.rmtree(debian.path("/debs"))
        self.assertEqual(run("find", debian.folder, "-mindepth", "1", "-iname", "*kinformer*"), "")
        self.assertIn("kinformerd", debian.users())


if __name__ == "__main__":
    unittest.main()
