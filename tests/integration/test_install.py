"""make install and what it takes away again, one version everywhere, make help, and what editors are told."""

import glob
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from harness import ROOT

# Of a make around the tests: what it was told is not meant for these.
ENV = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MODE")}
PAGES = ("man1/kinformer-sim.1", "man3/libkinformer.3", "man5/kinformerd.yaml.5", "man8/kinformerd.8")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def compiler():
    """That of the release build, so that nothing is built anew."""
    return read("build/release/flags.stamp").partition(" -std=")[0]


def make(*arguments, nice=0):
    """What it says."""
    done = subprocess.run(["nice", f"-n{nice}", "make", "-C", ROOT, "--no-print-directory", "CC=" + compiler(), *arguments], env=ENV,
                          text=True, check=False, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        raise AssertionError(f"make {' '.join(arguments)}: {done.stderr}")
    return done.stdout


def version():
    return re.search(r'#define KINF_VERSION_STRING "(.*)"', read("src/include/kinformer/api.h"))[1]


def soname():
    return "libkinformer.so." + re.search(r"^KINFORMER_(\d+) \{", read("src/kinformer.map"), re.M)[1]


def files_in(folder):
    return {os.path.relpath(os.path.join(path, name), folder)
            for path, _, names in os.walk(folder) for name in names}


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.prefix = os.path.join(cls.folder, "usr")
        make("install", "DESTDIR=" + cls.folder, "PREFIX=/usr")

    def run_installed(self, program, *arguments):
        return subprocess.run([os.path.join(self.prefix, "bin", program), *arguments], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.strip()

    def test_everything_has_its_place(self):
        headers = {"include/kinformer/" + name for name in os.listdir(os.path.join(ROOT, "src", "include", "kinformer"))}
        pages = {"share/man/" + name for name in PAGES} if shutil.which("scdoc") else set()
        has_nats = subprocess.run(["pkg-config", "--exists", "libnats"], check=False).returncode == 0
        plugins = {"lib/kinformer/kinformer-nats.so"} if has_nats else set()
        self.assertEqual(files_in(self.prefix), headers | pages | plugins | {
            "bin/kinformerd", "bin/kinformer-sim", "lib/libkinformer.a", "lib/libkinformer-testing.a",
            "lib/libkinformer.so", "lib/" + soname(), "lib/libkinformer.so." + version(),
            "lib/pkgconfig/kinformer.pc", "lib/pkgconfig/kinformer-testing.pc",
            "share/bash-completion/completions/kinformerd", "share/bash-completion/completions/kinformer-sim",
            "share/zsh/site-functions/_kinformer"})

    def test_nothing_is_left_behind(self):
        folder = os.path.join(self.folder, "again")
        make("install", "DESTDIR=" + folder, "PREFIX=/opt/kinformer")
        self.assertTrue(files_in(folder))
        make("uninstall", "DESTDIR=" + folder, "PREFIX=/opt/kinformer")
        self.assertEqual(files_in(folder), set())

    def test_without_scdoc_it_says_that_there_are_no_man_pages(self):
        folder = os.path.join(self.folder, "bare")
        said = make("install", "DESTDIR=" + folder, "PREFIX=/usr", "SCDOC=/nowhere/scdoc")
        self.assertIn("no man pages are installed: there is no scdoc", said)
        self.assertTrue(os.path.exists(os.path.join(folder, "usr/bin/kinformerd")))
        self.assertFalse(os.path.exists(os.path.join(folder, "usr/share/man")))

    @unittest.skipUnless(shutil.which("scdoc") and shutil.which("man"), "there is no scdoc, or no man")
    def test_man_finds_the_pages(self):
        for page in PAGES:
            folder, _, name = page.partition("/")
            found = subprocess.run(["man", "-M", os.path.join(self.prefix, "share/man"), "-w", folder[3:],
                                    name.rpartition(".")[0]], text=True, stdout=subprocess.PIPE, check=True).stdout
            self.assertEqual(os.path.realpath(found.strip()), os.path.realpath(os.path.join(self.prefix, "share/man", page)))

    def test_all_say_the_version_of_the_header(self):
        self.assertRegex(version(), r"^\d+\.\d+\.\d+$")
        for program in ("kinformerd", "kinformer-sim"):
            self.assertEqual(self.run_installed(program, "--version"), f"{program} {version()}")
        for package in ("kinformer", "kinformer-testing"):
            said = subprocess.run(["pkg-config", "--modversion", package], check=True, text=True, stdout=subprocess.PIPE,
                                  env={**ENV, "PKG_CONFIG_PATH": os.path.join(self.prefix, "lib/pkgconfig")}).stdout
            self.assertEqual(said.strip(), version())
        manifests = [f"config/{name}/{name}.yaml" for name in ("sidecar", "daemonset", "deployment", "sharded")]
        for path in ("Dockerfile", *manifests):
            self.assertEqual(set(re.findall(r"kinformerd:(\d\S*)", read(path))), {version()}, path)
        for path in glob.glob("docs/*.md", root_dir=ROOT):
            self.assertLessEqual(set(re.findall(r"kinformerd[:-](\d+\.\d+\.\d+)", read(path))), {version()}, path)
        self.assertEqual(re.findall(r"^(?:v|appV)ersion: (\S+)$", read("charts/kinformerd/Chart.yaml"), re.M), 2 * [version()])
        self.assertEqual(re.search(r"^## (\S+)", read("CHANGELOG.md"), re.M)[1], version())
        self.assertEqual(re.match(r"kinformer \((.*)\)", read("debian/changelog"))[1], version())

    def test_the_soname_and_the_version_of_the_symbols_go_together(self):
        library = os.path.join(self.prefix, "lib", "libkinformer.so")
        shown = subprocess.run(["readelf", "--dynamic", "--version-info", "--wide", library], check=True, text=True,
                               stdout=subprocess.PIPE).stdout
        self.assertEqual(re.search(r"soname: \[(.*?)\]", shown)[1], soname())
        self.assertIn("Name: KINFORMER_" + soname().rpartition(".")[2] + "\n", shown)
        self.assertEqual(os.readlink(os.path.join(self.prefix, "lib", soname())), "libkinformer.so." + version())


class MakefileTest(unittest.TestCase):
    def test_help_has_every_documented_target_in_a_group(self):
        groups = {part.partition(":\n")[0]: part.partition(":\n")[2] for part in make("help").strip().split("\n\n")}
        self.assertLess({"build", "tests", "lint", "install"}, set(groups))
        listed = [line.split()[0] for text in groups.values() for line in text.splitlines()]
        self.assertEqual(sorted(listed), sorted(re.findall(r"^(\S+):.*## ", read("Makefile"), re.M)))

    def test_editors_are_told_how_each_file_is_compiled(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "compile_commands.json")
            make("compile_commands.json", "COMPILE_COMMANDS=" + path)
            with open(path, encoding="utf-8") as file:
                entries = json.load(file)
        sources = {os.path.join("src", folder, name) for folder in os.listdir(os.path.join(ROOT, "src"))
                   if os.path.isdir(os.path.join(ROOT, "src", folder))
                   for name in os.listdir(os.path.join(ROOT, "src", folder)) if name.endswith(".c")}
        self.assertEqual(sources - {entry["file"] for entry in entries}, set())
        entry = next(entry for entry in entries if entry["file"] == "src/base/error.c")
        subprocess.run(entry["command"] + " -fsyntax-only", shell=True, cwd=entry["directory"], check=True)


class EditorConfigTest(unittest.TestCase):
    @staticmethod
    def sections():
        """(whether a path is meant, what is said of it) in the order of the file."""
        found = []
        for line in read(".editorconfig").splitlines():
            if line.startswith("["):
                pattern = re.sub(r"[{},.]", lambda char: {"{": "(", "}": ")", ",": "|", ".": r"\."}[char[0]], line[1:-1])
                pattern = re.sub(r"\*+", lambda stars: "[^/]*" if stars[0] == "*" else ".*", pattern)
                found.append((re.compile(pattern if "/" in pattern.replace("[^/]*", "") else "(.*/)?" + pattern), {}))
            elif " = " in line and found:
                key, _, value = line.partition(" = ")
                found[-1][1][key] = value
        return found

    def test_the_source_is_as_editors_are_told(self):
        done = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              text=True, check=False)
        if done.returncode != 0:
            self.skipTest("this is no clone")
        sections = self.sections()
        for path in filter(os.path.isfile, (os.path.join(ROOT, path) for path in done.stdout.split("\0")[:-1])):
            wanted = {}
            for meant, values in sections:
                wanted.update(values if meant.fullmatch(os.path.relpath(path, ROOT)) else {})
            with open(path, "rb") as file:
                lines = file.read().splitlines(keepends=True)
            if wanted["indent_style"] == "space":
                self.assertFalse([line for line in lines if line.startswith(b"\t")], path)
            if wanted["trim_trailing_whitespace"] == "true":
                self.assertFalse([line for line in lines if re.search(rb"[ \t\r]+\n$", line)], path)
            if wanted["insert_final_newline"] == "true" and lines:
                self.assertTrue(lines[-1].endswith(b"\n"), path)


if __name__ == "__main__":
    unittest.main()
