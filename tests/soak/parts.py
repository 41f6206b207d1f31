"""The parts of a soak: programs that are killed, halted and started again."""

import os
import re
import subprocess

import clients

# What a process may have more than at the first quiet: connections that are kept or about to be closed, of which it may
# have had none yet; the sidecar's history.
MORE_FILES, MORE_THREADS = 32, 4
MORE_KIB = 96 * 1024


class Diverged(Exception):
    pass


class Part:
    """A program that is killed, halted and started again; its log is appended to."""

    def __init__(self, name, folder, command, env=None, stdout=None, is_judged=True):
        self.name, self.command, self.env, self.stdout = name, command, env, stdout
        self.log = os.path.join(folder, name + ".log")
        self.is_judged = is_judged  # it tells the oracle by this name
        self.level = None
        self.n_starts = 0
        self.start()

    def start(self):
        if self.n_starts:
            self.process.stdin.close()
        out = self.stdout() if self.stdout else None
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=out or log, stderr=log,
                                            env={**os.environ, **(self.env or {})})
        if out:
            out.close()
        self.level = None
        self.n_starts += 1

    def check(self):
        """It must not end by itself, for which a sanitizer has reasons, too; but who is refused before it is synced may, or
        finds that what it follows is not served, and is started again, as a supervisor would."""
        code = self.process.poll()
        if code == 1 and re.search(r"answered 40[134]\b|has no resource ", self.log_text().rstrip().rpartition("\n")[2]):
            self.start()
        elif code is not None:
            raise Diverged(f"{self.name} ended with {code}: {self.log_text()[-3000:]}")

    def log_text(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()  # some of the clients run until then

    def status(self, field):
        """Of the process, a line of the kernel's."""
        with open(f"/proc/{self.process.pid}/status", encoding="utf-8") as file:
            return next(line.split()[1] for line in file if line.startswith(field + ":"))

    def catches(self, number):
        """Whether it lives on behind this signal, which a program that has just been started does not."""
        return int(self.status("SigCgt"), 16) >> (number - 1) & 1

    def usage(self):
        """Descriptors, threads, and KiB of memory."""
        place = f"/proc/{self.process.pid}"
        return len(os.listdir(place + "/fd")), len(os.listdir(place + "/task")), int(self.status("VmRSS"))

    def is_level(self, has_sanitizer):
        """Whether it has no more than at its first quiet."""
        files, threads, kib = self.usage()
        if self.level is None:
            self.level = (files, threads, kib)
        return files <= self.level[0] + MORE_FILES and threads <= self.level[1] + MORE_THREADS and \
            (has_sanitizer or kib <= 2 * self.level[2] + MORE_KIB)


class Client(Part):
    """One whose lines are read here (clients.py), and not by the oracle. It may end when its watch does."""

    def __init__(self, name, folder, command):
        self.state, self.n_events = None, 0
        super().__init__(name, folder, command, stdout=self.make_pipe, is_judged=False)

    def make_pipe(self):
        self.n_events += self.state.n_events if self.state else 0
        read, write = os.pipe()
        self.state = clients.State(os.fdopen(read, encoding="utf-8"))
        return os.fdopen(write, "wb")

    def check(self):
        if self.process.poll() is not None:
            self.start()
