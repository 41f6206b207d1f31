#!/usr/bin/env python3
"""make try-tutorial: docs/tutorial.md as an ordinary user of a fresh Debian follows them, and how long that takes.

In a chroot, made by mmdebstrap with this machine's own sources of packages, there are sudo, kubectl, a clone of HEAD, and nothing
else. Whatever the tutorial forgets to install is missing. Needs root. Ports are free ones. Processes and mounts end with the
namespaces that they are in.
"""

import glob
import os
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))

from walkthrough import Shell, free_ports, steps  # pylint: disable=wrong-import-position

KUBECTL = os.path.join(ROOT, "build", "cluster", "bin", "kubectl")
HOME = "/home/newcomer"
MINUTES = 15


def say(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def apt_options():
    """How this machine gets at its packages: proxies, and whether old lists are good enough."""
    for line in say("apt-config", "dump", "Acquire").splitlines():
        if line.lower().startswith(("acquire::http", "acquire::check-")) and not line.endswith('"";'):
            yield line.rstrip(";")


def make_chroot(folder):
    sources = ""
    for path in glob.glob("/etc/apt/sources.list") + sorted(glob.glob("/etc/apt/sources.list.d/debian.*")):
        with open(path, encoding="utf-8") as file:
            sources += file.read() + "\n"
    subprocess.run(["mmdebstrap", "--quiet", "--variant=apt", "--include=ca-certificates,sudo",
                    *("--aptopt=" + option for option in apt_options()), "bookworm", folder, "-"],
                   input=sources, text=True, check=True)
    subprocess.run(["chroot", folder, "useradd", "-m", "-s", "/bin/bash", "newcomer"], check=True)
    with open(folder + "/etc/sudoers.d/newcomer", "w", encoding="utf-8") as file:
        file.write("newcomer ALL=(ALL) NOPASSWD: ALL\n")
    subprocess.run(["install", KUBECTL, folder + "/usr/local/bin/kubectl"], check=True)
    subprocess.run(["git", "clone", "-q", "--no-local", "--depth=1", "file://" + ROOT, folder + HOME + "/kinformer"], check=True)
    subprocess.run(["chroot", folder, "chown", "-R", "newcomer:", HOME], check=True)


def enter(folder):
    """A login of the newcomer."""
    script = f'mount -t proc proc "{folder}/proc" && mount --rbind /dev "{folder}/dev" && exec chroot "{folder}" su -l newcomer -c bash'
    shell = Shell(command=("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script))
    shell.run("cd kinformer")
    return shell


def prepare(shell, text):
    """What says much, or takes long, and only has to end well."""
    for command, _ in steps(text, "run once"):
        began = time.monotonic()
        said = shell.run(command + " </dev/null; echo status=$?")
        if not said.endswith("status=0\n"):
            raise AssertionError(f"$ {command}\n{said}")
        print(f"{time.monotonic() - began:7.1f} s  $ {command}", flush=True)


def follow(shell, text):
    n, began = 0, time.monotonic()
    for command, wanted in steps(text, "run"):
        shell.follow(command, wanted)
        n += 1
    print(f"{time.monotonic() - began:7.1f} s  {n} commands print what the document says", flush=True)


def main():
    with tempfile.TemporaryDirectory(prefix="kinformer-try-", ignore_cleanup_errors=True) as folder:
        make_chroot(folder)
        clone = folder + HOME + "/kinformer"
        with open(clone + "/docs/tutorial.md", encoding="utf-8") as file:
            text = file.read()
        expected = {*os.listdir(clone), "build"}
        shell = enter(folder)
        try:
            began = time.monotonic()
            prepare(shell, text)
            if littered := set(os.listdir(clone)) - expected:
                raise AssertionError(f"installed into the clone: {littered}")
            follow(shell, free_ports(text)(text))  # which others could take while it is built
        finally:
            shell.close()
        minutes = (time.monotonic() - began) / 60
        print(f"{minutes:5.1f} min, of {MINUTES}")
        return minutes > MINUTES


if __name__ == "__main__":
    sys.exit(main())
