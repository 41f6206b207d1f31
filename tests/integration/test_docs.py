"""Documents, as somebody follows them: each command behind `<!-- run -->` prints what the document says it prints."""

import os
import re
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from harness import ROOT, TOOLS, cluster, need_cluster

BLOCK = re.compile(r"^<!-- run -->\n```console\n(.*?)^```", re.M | re.S)
END = "end-of-output"
PATIENCE = 30.0  # for what the document does not wait for, but its reader does


def setUpModule():
    need_cluster("kubectl is built with it")


def steps(text):
    """(command, what it prints) of each."""
    for block in BLOCK.findall(text):
        for step in block.split("$ ")[1:]:
            command, _, output = step.partition("\n")
            yield command, output


def without_ages(text):
    return [re.sub(r"\b\d+m?s\b", "AGE", " ".join(line.split())) for line in text.splitlines()]


def document(name):
    with open(os.path.join(ROOT, "docs", name), encoding="utf-8") as file:
        return file.read()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


class Shell:
    """bash in a folder that looks like a clone."""

    def __init__(self, folder, **env):
        for name in ("charts", "config", "examples"):
            os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
        # pylint: disable-next=consider-using-with
        self.bash = subprocess.Popen(["bash"], cwd=folder, env={**os.environ, **env}, stdin=subprocess.PIPE, text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)

    def run(self, command):
        self.bash.stdin.write(f"{command}\necho {END}\n")
        self.bash.stdin.flush()
        lines = []
        for line in self.bash.stdout:
            if line.rstrip("\n").endswith(END):
                return "".join(lines) + line[:-len(END) - 1]
            lines.append(line)
        raise AssertionError("bash has ended: " + "".join(lines))

    def close(self):
        os.killpg(self.bash.pid, signal.SIGTERM)
        self.bash.wait()
        self.bash.stdin.close()
        self.bash.stdout.close()


class Documents(unittest.TestCase):
    def check(self, shell, command, wanted):
        deadline = time.monotonic() + PATIENCE
        while True:
            printed = shell.run(command)
            if without_ages(printed) == without_ages(wanted):
                return
            if time.monotonic() > deadline:
                self.assertEqual(printed, wanted, command)
            time.sleep(0.2)

    def follow(self, text, **env):
        """Returns how many commands that were."""
        shell = Shell(self.enterContext(tempfile.TemporaryDirectory()), **env)
        self.addCleanup(shell.close)
        told = list(steps(text))
        for command, wanted in told:
            self.check(shell, command, wanted)
        return len(told)

    def test_the_tutorial(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        prefix = os.path.join(folder, "installed")
        subprocess.run(["make", "-s", "install", "PREFIX=" + prefix], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        text = document("tutorial.md")
        for port in ("8080", "8001"):
            text = text.replace("127.0.0.1:" + port, f"127.0.0.1:{free_port()}")
        n = self.follow(text, PATH=f"{prefix}/bin:{TOOLS}:{os.environ['PATH']}", LD_LIBRARY_PATH=prefix + "/lib",
                        PKG_CONFIG_PATH=prefix + "/lib/pkgconfig")
        self.assertGreater(n, 15)

    def test_in_a_cluster(self):
        n = self.follow(document("kubernetes.md"), PATH=f"{TOOLS}:{os.environ['PATH']}",
                        KUBECONFIG=cluster().kubeconfig())
        self.assertGreater(n, 8)


if __name__ == "__main__":
    unittest.main()
