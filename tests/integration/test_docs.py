"""The documents as somebody follows them, and what makes and checks them."""

import os
import subprocess
import tempfile
import unittest

from harness import ROOT, TOOLS, need_cluster
from test_install import make
from walkthrough import Shell, on_free_ports, steps, unmarked

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

    def shell(self, **env):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        for name in ("config", "examples"):
            os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
        shell = Shell(folder, PATH=f"{self.prefix}/bin:{TOOLS}:{os.environ['PATH']}", LD_LIBRARY_PATH=self.prefix + "/lib",
                      PKG_CONFIG_PATH=self.prefix + "/lib/pkgconfig", **env)
        self.addCleanup(shell.close)
        return shell

    def follow(self, page, at_least, **env):
        shell = self.shell(**env)
        commands = list(steps(on_free_ports(read(page)), "run"))
        for command, wanted in commands:
            shell.follow(command, wanted)
        self.assertGreaterEqual(len(commands), at_least)

    def test_tutorial(self):
        self.follow("tutorial.md", 20)


class Blocks(unittest.TestCase):
    def test_each_block_of_commands_says_whether_it_is_run(self):
        for page in sorted(os.listdir(DOCS)):
            if page.endswith(".md"):
                self.assertEqual(unmarked(read(page)), [], page)


if __name__ == "__main__":
    unittest.main()
