"""The documents as somebody follows them, and what makes and checks them."""

import contextlib
import glob
import importlib.util
import os
import shutil
import subprocess
import tempfile
import unittest

from harness import ROOT, TOOLS, cluster, lack, need_cluster
from test_install import make
from walkthrough import Shell, free_ports, steps, unmarked

DOCS = os.path.join(ROOT, "docs")


def setUpModule():
    need_cluster("kubectl is built with it")


def read(name):
    with open(os.path.join(DOCS, name), encoding="utf-8") as file:
        return file.read()


class Walkthroughs(unittest.TestCase):
    """Each in a folder that looks like a clone, with what is installed."""

    @classmethod
    def setUpClass(cls):
        cls.prefix = cls.enterClassContext(tempfile.TemporaryDirectory())
        make("install", "PREFIX=" + cls.prefix)

    def shell(self, ports, **env):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        for name in ("charts", "config"):
            os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
        shutil.copytree(os.path.join(ROOT, "examples"), os.path.join(folder, "examples"))
        for path in glob.glob(folder + "/examples/*/*.yaml"):
            with open(path, "r+", encoding="utf-8") as file:
                text = ports(file.read())
                file.seek(0)
                file.truncate()
                file.write(text)
        shell = Shell(folder, PATH=f"{self.prefix}/bin:{TOOLS}:{os.environ['PATH']}", LD_LIBRARY_PATH=self.prefix + "/lib",
                      PKG_CONFIG_PATH=self.prefix + "/lib/pkgconfig", **env)
        self.addCleanup(shell.close)
        return shell

    def follow(self, page, at_least, **env):
        text = read(page)
        ports = free_ports(text)
        shell = self.shell(ports, **env)
        commands = list(steps(ports(text), "run"))
        for command, wanted in commands:
            shell.follow(command, wanted)
        self.assertGreaterEqual(len(commands), at_least)

    def test_tutorial(self):
        self.follow("tutorial.md", 20)

    def test_sidecar(self):
        self.follow("sidecar.md", 25)

    def test_node_agent(self):
        self.follow("node-agent.md", 10)

    def test_sharding(self):
        self.follow("sharding.md", 15)

    def test_testing(self):
        self.follow("testing.md", 5)

    def test_operations(self):
        self.follow("operations.md", 7)

    def test_security(self):
        if shutil.which("systemd-analyze") is None:
            lack("systemd-analyze (scripts/install-deps.sh test)")
        self.follow("security.md", 1)

    def test_clusters(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        files = [shutil.copy(cluster().kubeconfig(name), folder) for name in ("admin", "admin-files")]
        self.follow("clusters.md", 15, KUBECONFIG=":".join(files))

    def test_in_a_cluster(self):
        self.follow("kubernetes.md", 8, KUBECONFIG=cluster().kubeconfig())

    def test_handlers(self):
        if shutil.which("go") is None:
            lack("go")
        self.follow("handlers.md", 8)


class Site(unittest.TestCase):
    def test_it_is_built(self):
        """mkdocs takes a link to a page that is not there for an error."""
        if shutil.which("mkdocs") is None or shutil.which("dot") is None:
            lack("mkdocs, dot (scripts/install-deps.sh docs)")
        make("docs")
        for page in ("index.html", "docs/tutorial.html", "docs/reference/informer.html"):
            self.assertTrue(os.path.exists(os.path.join(ROOT, "build", "docs", page)), page)


class Blocks(unittest.TestCase):
    def test_each_block_of_commands_says_whether_it_is_run(self):
        for page in sorted(os.listdir(DOCS)):
            if page.endswith(".md"):
                self.assertEqual(unmarked(read(page)), [], page)


class Operations(unittest.TestCase):
    """What `make check-docs` finds of states and lines of the log."""

    @classmethod
    def setUpClass(cls):
        spec = importlib.util.spec_from_file_location("check_docs", os.path.join(ROOT, "scripts", "check-docs.py"))
        cls.check = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(cls.check)
        cls.enterClassContext(contextlib.chdir(ROOT))

    def complaints(self, old="", new=""):
        text = read("operations.md")
        if old:
            self.assertEqual(text.count(old), 1)
        return [*self.check.wrong_log_lines(text.replace(old, new)), *self.check.wrong_states(text.replace(old, new))]

    def test_all_are_there(self):
        self.assertEqual(self.complaints(), [])
        lines = self.check.log_lines()
        self.assertGreater(sum(lines.values()), 40)
        self.assertFalse(lines.get(""), "a warning that is nothing but a value")

    def test_one_that_is_missing_or_made_up_is_named(self):
        self.assertEqual(self.complaints("| `review failed: ...`", "| `judged`"),
                         ["the log may say: review failed", "no line of the log is like: judged"])
        self.assertEqual(self.complaints("| `stopped` |", "| `asleep` |"), ["states: ['asleep', 'stopped']"])


class Reference(unittest.TestCase):
    """What `make docs` and `make check-docs` demand of a header."""

    def complaints(self, header="", old="", new=""):
        folder = shutil.copytree(os.path.join(ROOT, "src", "include", "kinformer"), self.enterContext(tempfile.TemporaryDirectory()),
                                 dirs_exist_ok=True)
        if header:
            with open(os.path.join(folder, header), "r+", encoding="utf-8") as file:
                text = file.read()
                self.assertEqual(text.count(old), 1)
                file.seek(0)
                file.truncate()
                file.write(text.replace(old, new))
        done = subprocess.run([os.path.join(ROOT, "scripts", "make-reference.py"), "--check", folder], text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 1 if header else 0, done.stdout)
        return done.stdout

    def test_the_headers_as_they_are_have_it_all(self):
        self.assertEqual(self.complaints(), "")

    def test_what_a_function_lacks_is_said(self):
        for header, old, new, complaint in (
                ("queue.h", " * Threads: any thread.\n", "", "its head does not say Threads:"),
                ("str.h", "/* Whether both show the same bytes; all empty ones are equal. */\n", "", "kinf_str_equal() has no comment"),
                ("lister.h", " * Mirrors: cache.GenericLister", " * See: cache.GenericLister", "its head does not say Mirrors:"),
                ("queue.h", " Errors: KINF_ERR_INVALID (a negative time), KINF_ERR_NO_MEMORY.", "",
                 "kinf_queue_new() may fail: with which errors?"),
                ("client.h", "it names none. The client's own. */", "it names none. */",
                 "kinf_client_server() hands something out: whose is it?"),
                ("informer.h", "/* Returns false for any other text. */\n", "", "kinf_initial_parse() has no comment")):
            with self.subTest(complaint):
                self.assertIn(complaint, self.complaints(header, old, new))


if __name__ == "__main__":
    unittest.main()
