#!/usr/bin/env python3
"""The soak: writers, followers of every kind, every fault, and an oracle that knows what each must be told.

    soak.py [--events N] [--seconds N] [--seed N] [--rate N] [--round SECONDS] [--mode release|asan] [--report FILE]
            [--schedule FILE] [--keep FOLDER] [--no-clients] [--server sim|cluster]

Rounds of changes and faults (schedule.py), each followed by quiet in which everybody must come to what the server has.
Ends after so many events told by followers and judged, or so much time, whichever is first. At a divergence it prints
seed and round, and looks for the shortest schedule that shows it, which --schedule repeats. The exit status is 0 without
any.

kinformer-sim is the server, or a real one, which has other faults (servers.py). The oracle (oracle.c) writes and judges;
followers are follower.c in several modes, kinformerd with its sidecar, and clients of that. tests/README.md says what is
promised where.
"""

import argparse
import collections
import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "integration"))

import clients  # pylint: disable=wrong-import-position
import schedule  # pylint: disable=wrong-import-position
import soak_report  # pylint: disable=wrong-import-position
from harness import ROOT, daemon_path, wait_until  # pylint: disable=wrong-import-position
from parts import Client, Diverged, Part  # pylint: disable=wrong-import-position
from servers import ClusterServer, SimServer  # pylint: disable=wrong-import-position

ANSWER_SECONDS, LOOK_SECONDS = 900, 0.5
MODES = ("by-key", "in-order", "coalesce", "namespaces", "shard-0-2", "shard-1-2")
WATCHING = ("watcher", *clients.NAMES)  # the sidecar
PARTS = (*MODES, "controller-a", "controller-b", "kinformerd", *WATCHING)
TYPES = ("pods", "deployments.apps", "widgets.soak.kinformer.dev", "leases.coordination.k8s.io")

MAX_TOLD = 20  # divergences of a round
MORE_VERSIONS = 50  # that may have been written while the last one was asked for


SERVERS = {"sim": SimServer, "cluster": ClusterServer}


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


# --- the oracle ------------------------------------------------------------------------------------


class Oracle:
    """The process that writes and judges; `divergences` are [[promise, text]]."""

    def __init__(self, folder, mode, *args):
        self.path = os.path.join(folder, "oracle")
        self.divergences = []
        self.answers = collections.deque()
        self.changed = threading.Condition()
        self.process = subprocess.Popen(
            [os.path.join(ROOT, "build", mode, "soak", "oracle"), "--listen", self.path, *args],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        self.wait_answer("start")

    def _read(self):
        for line in self.process.stdout:
            answer = json.loads(line)
            with self.changed:
                if "diverges" in answer:
                    self.divergences.append((answer["diverges"], answer["what"]))
                else:
                    self.answers.append(answer)
                self.changed.notify()
        with self.changed:
            self.answers.append(None)
            self.changed.notify()

    def wait_answer(self, what, meanwhile=lambda: None):
        deadline, problem = time.monotonic() + ANSWER_SECONDS, None
        while not self.has_answer():
            if time.monotonic() > deadline:
                raise AssertionError(f"the oracle does not answer: {what}")
            try:
                if problem is None:
                    meanwhile()
            except Diverged as ended:  # told behind the answer, which is of this question and no other
                problem = ended
        answer = self.answers.popleft()
        if answer is None:
            raise AssertionError(f"the oracle has ended with {self.process.wait()}: {what}")
        if problem is not None:
            raise problem
        return answer

    def has_answer(self):
        with self.changed:
            return self.changed.wait_for(lambda: self.answers, LOOK_SECONDS)

    def tell(self, *words, meanwhile=lambda: None):
        """The answer, a dictionary; until it comes `meanwhile` is called again and again."""
        command = " ".join(map(str, words))
        with contextlib.suppress(BrokenPipeError):  # then there is no answer, either
            print(command, file=self.process.stdin, flush=True)
        return self.wait_answer(command, meanwhile)

    def report(self):
        """(totals, {name: its totals})"""
        totals, streams = self.tell("report"), {}
        while "stream" in totals:
            streams[totals["stream"]] = totals
            totals = self.wait_answer("report")
        return totals, streams

    def end(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()


# --- the cast -------------------------------------------------------------------------------------


class Cast:
    """All parts of one run."""

    def __init__(self, folder, arguments, server):
        self.folder, self.mode, self.server = folder, arguments.mode, server
        self.port = free_port()
        self.oracle = Oracle(folder, arguments.mode, "--seed", str(arguments.seed), *server.oracle_arguments, "--sidecar",
                             f"http://127.0.0.1:{self.port}")
        self.n_reloads = 0
        self.parts = {}
        try:
            self.add_followers(arguments.defect)
            self.add_sidecar()
            self.add_clients(clients.NAMES if arguments.clients else ())
        except BaseException:
            self.end()
            raise

    def add(self, name, *args, **kwargs):
        self.parts[name] = Part(name, self.folder, *args, **kwargs)

    def add_followers(self, defect):
        program = os.path.join(ROOT, "build", self.mode, "soak", "follower")
        env = {"KUBECONFIG": self.server.kubeconfig}
        for mode in MODES:
            self.add(mode, [program, mode, self.oracle.path, mode, *([defect] if defect and mode == "in-order" else [])],
                     env=env)
        for name in ("controller-a", "controller-b"):
            self.add(name, [program, name, self.oracle.path, "controller"], env=env)

    def add_sidecar(self):
        self.write_config()
        self.add("kinformerd", [daemon_path(self.mode), "--config", self.config], stdout=self.connect_kinformerd)
        self.add("watcher", [sys.executable, "-B", os.path.join(HERE, "watcher.py"), "watcher", self.oracle.path,
                             f"127.0.0.1:{self.port}"])

    def add_clients(self, names):
        kubeconfig = os.path.join(self.folder, "sidecar.kubeconfig")
        with open(kubeconfig, "w", encoding="utf-8") as file:
            file.write("apiVersion: v1\nkind: Config\nclusters:\n- name: sidecar\n  cluster:\n"
                       f"    server: http://127.0.0.1:{self.port}\nusers:\n- name: soak\n  user: {{}}\n"
                       "contexts:\n- name: soak\n  context: {cluster: sidecar, user: soak}\ncurrent-context: soak\n")
        for name in names:
            command = clients.command(name, kubeconfig, self.folder)
            if command is not None:
                self.parts[name] = Client(name, self.folder, command)

    def clients(self):
        return [part for part in self.parts.values() if not part.is_judged]

    @property
    def config(self):
        return os.path.join(self.folder, "kinformerd.yaml")

    def write_config(self):
        """Each reload has another one: a type comes or goes, which does not disturb the others."""
        lines = [f"kubeconfig: {self.server.kubeconfig}", "events: json", "eventsObjects: true", "log: info",
                 f'listen: ["127.0.0.1:{self.port}"]', "passThrough: true", "resources:"]
        for resource in TYPES + (("namespaces",) if self.n_reloads % 2 else ()):
            lines += [f"- resource: {resource}", "  watchTimeout: 5s", "  silentAfter: 6s", "  backoffBase: 50ms",
                      "  backoffMax: 1s", "  maxObjectBytes: 1000000", "  maxHistoryBytes: 4194304"]
            lines.append("  indices: [{name: byApp, path: metadata.labels.app}]")
            lines.append(f"  store: {'compressed' if resource in TYPES[:2] else 'plain'}")
        with open(self.config, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")

    def connect_kinformerd(self):
        stream = socket.socket(socket.AF_UNIX)
        stream.connect(self.oracle.path)
        stream.sendall(b"hello kinformerd kinformerd\n")
        return stream

    def reload(self):
        self.n_reloads += 1
        self.write_config()
        kinformerd = self.parts["kinformerd"]
        wait_until(lambda: kinformerd.check() or kinformerd.catches(signal.SIGHUP), "kinformerd takes signals")
        kinformerd.process.send_signal(signal.SIGHUP)

    def judged(self):
        return [part.name for part in self.parts.values() if part.is_judged]

    def end(self):
        for part in self.parts.values():
            part.kill()
        self.oracle.end()


# --- a round ---------------------------------------------------------------------------------------


class Round:
    """Steps while everybody works, and then quiet."""

    def __init__(self, cast, steps, arguments):
        self.cast, self.server, self.oracle, self.steps = cast, cast.server, cast.oracle, steps
        self.rate, self.patience_ms = arguments.rate, int(1000 * arguments.patience)
        self.halted = {}  # name -> when it goes on
        self.killed = {}  # name -> when it is started again
        self.faults = {}  # line -> kind

    def run(self, seconds):
        if any(step.what == "restore" for step in self.steps):
            self.quietly(lambda: (self.server.back_up(), self.oracle.tell("backup")))
        began = time.monotonic()
        self.oracle.tell("lies", int(schedule.lies(self.steps)))
        self.oracle.tell("withdraws", int(schedule.withdraws(self.steps)))
        self.oracle.tell("go", self.rate)
        steps = collections.deque(self.steps)
        while (now := time.monotonic() - began) < seconds or steps:
            self.revive(time.monotonic())
            if steps and steps[0].at <= now:
                self.do(steps.popleft())
                continue
            time.sleep(0.02)
        self.come_to_rest()

    def signal(self, name, number):
        if name in self.server.HALTED:
            self.server.signal(name, number)
        else:
            self.cast.parts[name].process.send_signal(number)

    def quietly(self, act):
        """While nobody writes, for which nobody is halted."""
        self.go_on(list(self.halted))
        self.oracle.tell("pause")
        act()
        self.oracle.tell("go", self.rate)

    def do(self, step):
        if step.what in ("fault", "act"):
            self.go_on(self.server.HALTED)  # who is halted takes no faults
        if step.what == "fault":
            self.faults[step.detail] = step.name
            self.server.add_fault(step.detail)
        elif step.what == "act":
            self.server.act(step.name)
        elif step.what == "restore":
            self.quietly(self.restore_overtaken if step.name == schedule.OVERTAKEN else self.restore)
            self.server.tally[schedule.RESTORES[step.name]] += 1
        elif step.name in self.killed or step.name not in (*self.server.HALTED, *self.cast.parts):
            return  # it is down, or not here
        elif step.what == "reload":
            self.cast.reload()
            self.server.tally["reload"] += 1
        elif step.what == "kill":
            self.kill(step.name, time.monotonic() + step.detail / 4)
        else:
            self.halt(step.name, time.monotonic() + step.detail)
            self.server.tally["SIGSTOP" if step.name in self.cast.parts else f"SIGSTOP of {step.name}"] += 1

    def kill(self, name, until):
        """A sidecar that was killed about a restore cannot tell that a client's version was undone: whoever watches it
        is started anew, too, as docs/limits.md says."""
        is_undone = name == "kinformerd" and any(step.what == "restore" for step in self.steps)
        for victim in (name, *(WATCHING if is_undone else ())):
            if victim in self.killed or victim not in self.cast.parts:
                continue
            self.go_on([victim])
            self.cast.parts[victim].kill()
            self.killed[victim] = until
            self.server.tally["SIGKILL"] += 1

    def restore(self):
        """Everybody looks before new writes take the server past the version that was known. No fault answers in place of
        the outage: then there is none."""
        self.server.end_faults(self.faults)
        self.oracle.tell("restoring")
        self.server.restore()
        self.oracle.tell("restore")
        self.settle()

    def restore_overtaken(self):
        """Everybody looks behind that, which docs/limits.md promises to be seen if there was an outage, and something of
        each type was undone: of each who follows a part of one, something of that part."""
        self.server.end_faults(self.faults)
        self.settle()
        while not self.oracle.divergences and not self.oracle.tell("undoes", *self.cast.judged())["undoes"]:
            self.write_for(0.5)
            self.settle()
        version = self.server.version()
        self.oracle.tell("restoring")
        self.server.break_off()
        for name in self.cast.judged():
            self.halt(name, float("inf"))
        self.server.restore()
        self.oracle.tell("restore")
        self.oracle.tell("go", 0)
        wait_until(lambda: self.server.version() > version + MORE_VERSIONS, "as many writes as were undone")
        self.go_on(list(self.halted))
        self.write_for(2)
        self.settle()

    def write_for(self, seconds):
        self.oracle.tell("go", self.rate)
        time.sleep(seconds)
        self.oracle.tell("pause")

    def settle(self):
        """While nobody writes: all come to what there is. Who was refused as it started may end only now."""
        self.revive(float("inf"))
        self.oracle.tell("settle", self.patience_ms, *self.cast.judged(), meanwhile=self.check_parts)

    def halt(self, name, until):
        self.signal(name, signal.SIGSTOP)
        self.halted[name] = until

    def go_on(self, names):
        for name in names:
            if self.halted.pop(name, None) is not None:
                self.signal(name, signal.SIGCONT)

    def revive(self, now):
        self.go_on([name for name, until in self.halted.items() if until <= now])
        for name in [name for name, until in self.killed.items() if until <= now]:
            del self.killed[name]
            self.cast.parts[name].start()
        self.check_parts()

    def check_parts(self):
        for part in self.cast.parts.values():
            if part.name not in self.killed:
                part.check()

    def come_to_rest(self):
        self.revive(float("inf"))
        self.server.end_faults(self.faults)
        self.oracle.tell("pause")
        if schedule.lies(self.steps):
            self.server.act("expire")
        self.judge()

    def judge(self):
        oracle = self.oracle
        oracle.tell("lists", "server", self.patience_ms)
        self.settle()
        if not oracle.divergences:
            oracle.tell("stores", self.patience_ms)
            oracle.tell("lists", "sidecar", self.patience_ms)
            oracle.tell("mirrors", self.patience_ms)
            self.check_clients()
            oracle.tell("lies", 0)
            oracle.tell("withdraws", 0)
            oracle.tell("forget")
            self.check_levels()
        if oracle.divergences:
            lines = [f"{promise}: {what}" for promise, what in oracle.divergences]
            raise Diverged("\n".join(lines[:MAX_TOLD] + [f"and {len(lines) - MAX_TOLD} more"] * (len(lines) > MAX_TOLD)))

    def check_clients(self):
        wrong = clients.wait_equal(self.cast.clients(), self.server.pods(), self.patience_ms / 1000)
        if wrong:
            raise Diverged("\n".join(wrong))

    def check_levels(self):
        has_sanitizer = self.cast.mode != "release"
        for part in self.cast.parts.values():
            if not part.is_judged:
                continue
            part.check()
            deadline = time.monotonic() + 20
            while not part.is_level(has_sanitizer):
                if time.monotonic() > deadline:
                    raise Diverged(f"{part.name} has {part.usage()} (descriptors, threads, KiB) and had {part.level}")
                time.sleep(0.2)


# --- a run -----------------------------------------------------------------------------------------


class Run:
    def __init__(self, arguments):
        self.arguments = arguments
        self.commit = soak_report.commit()
        self.rounds = []  # that were begun
        self.totals = {}
        self.streams = {}
        self.tally = collections.Counter()
        self.n_reads = 0
        self.clients = {}  # name -> (starts, lines)
        self.seconds = 0

    def run(self, rounds):
        """`rounds(number)`: the steps of a round, or None at the end. Returns None, or how it diverged."""
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="kinformer-soak-") as folder:
            if self.arguments.keep:
                folder = tempfile.mkdtemp(dir=self.arguments.keep)
            server = SERVERS[self.arguments.server](folder, self.arguments.mode, self.arguments.seed)
            try:
                cast = Cast(folder, self.arguments, server)
                try:
                    return self.follow(cast, rounds)
                finally:
                    self.tally, self.n_reads = server.tally, server.n_reads
                    self.clients = {part.name: (part.n_starts, part.n_events + part.state.n_events)
                                    for part in cast.clients()}
                    self.seconds = time.monotonic() - began
                    cast.end()
            finally:
                server.kill()

    def follow(self, cast, rounds):
        while (steps := rounds(len(self.rounds))) is not None:
            self.rounds.append(steps)
            try:
                Round(cast, steps, self.arguments).run(self.arguments.round)
            except Diverged as problem:
                return str(problem)
            finally:
                self.totals, self.streams = cast.oracle.report()
            self.say(cast)
        return None

    def n_events(self):
        return sum(stream["events"] for stream in self.streams.values())

    def say(self, cast):
        print(f"round {len(self.rounds) - 1}: {self.n_events()} events, {self.totals['writes']} writes, "
              f"{sum(part.n_starts for part in cast.parts.values()) - len(cast.parts)} restarts", flush=True)


def is_over(arguments, run, began):
    has_all = arguments.events is not None and run.n_events() >= arguments.events
    return has_all or (arguments.seconds is not None and time.monotonic() - began >= arguments.seconds)


def soak(arguments):
    """The run, and how it diverged, if it did."""
    run, began = Run(arguments), time.monotonic()
    given = schedule.read(arguments.schedule) if arguments.schedule else None

    def rounds(number):
        if given is not None:
            return given[number] if number < len(given) else None
        return None if is_over(arguments, run, began) else \
            schedule.draw_round(arguments.seed, number, arguments.round, PARTS, arguments.server)
    return run, run.run(rounds)


def shrink(arguments, steps):
    """The shortest schedule of one round that diverges; what does so only now and then is given three tries."""
    def fails(shorter):
        for _ in range(3):
            problem = Run(arguments).run(lambda number: shorter if number == 0 else None)
            if problem:
                print(f"{len(shorter)} steps show it", flush=True)
                return True
        return False
    return schedule.shorten(steps, fails) if fails(steps) else None


def tell_divergence(arguments, run, problem):
    print(f"DIVERGED: seed {arguments.seed}, round {len(run.rounds) - 1}\n{problem}", flush=True)
    for step in run.rounds[-1]:
        print("  ", *step)
    if not arguments.shrink:
        return
    steps = shrink(arguments, run.rounds[-1])
    if steps is None:
        print("the round alone does not show it")
        return
    schedule.write(arguments.shrink, [steps])
    print(f"the shortest schedule that shows it, in {arguments.shrink}:")
    for step in steps:
        print("  ", *step)


def parse(argv):
    parser = argparse.ArgumentParser(description="writers, followers, faults, and an oracle")
    parser.add_argument("--events", type=int, help="how many, told by followers and judged")
    parser.add_argument("--seconds", type=float, help="the longest time [without --events 120]")
    parser.add_argument("--seed", type=int, help="of all that is drawn [drawn]")
    parser.add_argument("--rate", type=int, default=0, help="writes a second, at the most [as many as can be]")
    parser.add_argument("--round", type=float, default=20, help="seconds of a round [20]")
    parser.add_argument("--server", choices=SERVERS, default="sim", help="kinformer-sim, or etcd and kube-apiserver [sim]")
    parser.add_argument("--patience", type=float, default=90, help="seconds until all must have come to rest [90]")
    parser.add_argument("--mode", default="release", help="the build that is tested [release]")
    parser.add_argument("--report", help="a file for the report")
    parser.add_argument("--schedule", help="a file of rounds, in place of those of the seed")
    parser.add_argument("--shrink", default="soak-schedule.json", help="a file for the shortest schedule that diverges")
    parser.add_argument("--keep", help="a folder for the logs")
    parser.add_argument("--clients", action=argparse.BooleanOptionalAction, default=True,
                        help="kubectl, client-go and the Python client, too, where they are")
    parser.add_argument("--defect", help="of follower.c, for the follower in-order")
    arguments = parser.parse_args(argv)
    if arguments.events is None and arguments.seconds is None:
        arguments.seconds = 120.0
    if arguments.seed is None:
        arguments.seed = random.SystemRandom().randrange(1 << 31)
    return arguments


def main(argv):
    arguments = parse(argv)
    print(f"seed {arguments.seed}", flush=True)
    run, problem = soak(arguments)
    if arguments.report:
        soak_report.write(arguments.report, run, problem)
    if problem:
        tell_divergence(arguments, run, problem)
    print(run.totals, dict(run.tally))
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
