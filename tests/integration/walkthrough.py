"""Follows a document as its reader does: each command of a block behind `<!-- run -->`, typed into one bash, prints what the document
says it prints. Ages, pods' addresses and ports are not compared, nor is how wide columns are. What `<!-- run once -->` marks is for who starts with nothing
(scripts/try-tutorial.py); `<!-- not run: WHY -->` says what nothing here can run.
"""

import contextlib
import os
import re
import signal
import socket
import subprocess
import time

BLOCK = re.compile(r"^<!-- (run|run once) -->\n```console\n(.*?)^```", re.M | re.S)
CONSOLE = re.compile(r"^(.*)\n```console\n", re.M)
MARK = re.compile(r"<!-- (run|run once|not run: .+) -->")
PORT = re.compile(r"(?<=127\.0\.0\.1:)\d{4}\b")
END = "end-of-output"
PATIENCE = 30.0  # for what the document does not wait for, but its reader does


def steps(text, *marks):
    """(command, what it prints) of each; lines that begin with "> " go on with a command."""
    for mark, block in BLOCK.findall(text):
        for step in re.split(r"^\$ ", block, flags=re.M)[1:] if mark in marks else ():
            command, output = re.fullmatch(r"(.*\n(?:> .*\n)*)((?:.*\n)*)", step).groups()
            yield command.replace("\n> ", "\n").rstrip("\n"), output


def unmarked(text):
    """The beginnings of blocks of commands of which nobody knows whether they are run."""
    return [before for before in CONSOLE.findall(text) if not MARK.fullmatch(before)]


def comparable(text):
    text = re.sub(r"\b127\.0\.0\.1:\d+\b", "ADDRESS", text)
    text = re.sub(r"\b10\.\d+\.\d+\.\d+\b", "IP", re.sub(r"\b\d+m?s\b", "AGE", text.strip()))
    return [" ".join(line.split()) for line in text.splitlines()]


def free_ports(text):
    """Makes of this text, and what goes with it, the same for a machine on which others are at work."""
    ports = {}
    with contextlib.ExitStack() as servers:
        for port in set(PORT.findall(text)):
            server = servers.enter_context(socket.create_server(("127.0.0.1", 0)))
            ports[port] = str(server.getsockname()[1])
    return lambda other: PORT.sub(lambda found: ports.get(found[0], found[0]), other)


class Shell:
    """A bash, or what `command` starts in its place, and all that it starts."""

    def __init__(self, folder=None, command=("bash",), **env):
        # pylint: disable-next=consider-using-with
        self.bash = subprocess.Popen(command, cwd=folder, env={**os.environ, **env}, stdin=subprocess.PIPE, text=True,
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

    def follow(self, command, wanted):
        """As somebody who looks again when it is not there yet."""
        deadline = time.monotonic() + PATIENCE
        while comparable(printed := self.run(command)) != comparable(wanted):
            if time.monotonic() > deadline:
                raise AssertionError(f"$ {command}\n{printed}--- and the document has\n{wanted}")
            time.sleep(0.2)

    def close(self):
        os.killpg(self.bash.pid, signal.SIGTERM)
        self.bash.wait()
        self.bash.stdin.close()
        self.bash.stdout.close()
