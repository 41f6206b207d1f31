"""Debian in a chroot, made by mmdebstrap of packages from where this machine has its own."""

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile

from harness import ROOT, lack
from test_install import read

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def run(*command, **options):
    """What it says."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          **options)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.returncode}: {done.stdout}")
    return done.stdout


def need_chroot(*tools):
    for tool in ("mmdebstrap", *tools):
        if shutil.which(tool) is None:
            lack(tool + " (scripts/install-deps.sh packages)")
    if os.geteuid() != 0:
        lack("root here, who alone may make a chroot")


def codename():
    return re.search(r"^VERSION_CODENAME=(\w+)", read("/etc/os-release"), re.M)[1]


def sources():
    """Where this machine has Debian from."""
    folder = "/etc/apt/sources.list.d"
    found = ["/etc/apt/sources.list"] + sorted(os.path.join(folder, name) for name in os.listdir(folder)
                                               if name.endswith((".list", ".sources")))
    texts = {path: read(path) for path in found if os.path.exists(path)}
    return {path: text for path, text in texts.items() if re.search(rf"\b{codename()}\b", text)}


def options_of_apt():
    """Proxies, and what a mirror needs."""
    return "".join(line + "\n" for line in run("apt-config", "dump").splitlines()
                   if re.match(r"Acquire::(https?|Check-[\w-]+)\b.* \"..*\";", line))


def archive(suite, include, key, *options, name=None):
    """The archive of a Debian of the suite. It is kept for as long as the sources, what is included, and `key` are the same,
    one of each name, which is that of the suite if none is given."""
    lists = {path: re.sub(rf"\b{codename()}\b", suite, text) for path, text in sources().items()}
    digest = hashlib.sha256(json.dumps([suite, include, lists, key]).encode()).hexdigest()[:16]
    path = os.path.join(ROOT, "build", "chroot", name or suite, digest + ".tar")
    if not os.path.exists(path):
        shutil.rmtree(os.path.dirname(path), ignore_errors=True)
        os.makedirs(os.path.dirname(path))
        with tempfile.TemporaryDirectory() as folder:
            apt, listed = os.path.join(folder, "apt.conf"), []
            with open(apt, "w", encoding="ascii") as file:
                file.write(options_of_apt())
            for i, (original, text) in enumerate(lists.items()):
                listed.append(os.path.join(folder, f"{i}-{os.path.basename(original)}"))
                with open(listed[-1], "w", encoding="utf-8") as file:
                    file.write(text)
            run("mmdebstrap", "--mode=root", "--variant=minbase", "--include=" + include, "--format=tar", "--aptopt=" + apt,
                "--aptopt=Acquire::Languages \"none\"", *options, suite, path + ".part", *listed)
        os.rename(path + ".part", path)
    return path


class Debian:
    """A chroot. Each command has mounts and processes of its own, which end with it."""

    def __init__(self, folder):
        self.folder = folder

    def unpack(self, path):
        os.mkdir(self.folder)
        run("tar", "--extract", "--file=" + path, "--directory=" + self.folder)

    def path(self, path):
        return self.folder + path

    def copy_project(self, path):
        """This tree, without what was built in it."""
        os.mkdir(self.path(path))
        run("sh", "-c", f"tar --create --exclude=./build --exclude=./.git . | tar --extract --directory={self.path(path)}", cwd=ROOT)

    def command(self, *command):
        return ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc=" + self.path("/proc"), "chroot", self.folder,
                "env", "-i", "PATH=" + PATH, "LC_ALL=C.UTF-8", "DEBIAN_FRONTEND=noninteractive", *command]

    def run(self, *command):
        return run(*self.command(*command))

    def shell(self, script):
        return self.run("sh", "-e", "-c", script)

    @contextlib.contextmanager
    def start(self, *command):
        with subprocess.Popen(self.command(*command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def write(self, path, text, mode=0o644):
        with open(self.path(path), "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(self.path(path), mode)

    def read(self, path):
        return read(self.path(path))

    def owner(self, path):
        """rw-r----- root:kinformerd"""
        return self.run("stat", "--format=%A %U:%G", path).strip()

    def users(self):
        return {line.split(":")[0]: line.split(":") for line in self.read("/etc/passwd").splitlines()}
