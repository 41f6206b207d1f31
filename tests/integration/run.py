#!/usr/bin/env python3
"""Runs the integration tests: some modules at once, each worker a process with a cluster of its own.

    run.py [MODULE...]    default all; also test_x.Class.test_y. With KINF_TEST_SERVER=sim on kinformer-sim

What a module prints is shown whole when it has ended, and stays in build/integration/; at the end stand what was
skipped and why, the ten slowest tests, and once more what failed. The exit status is 0 if each module was run to
its end without a failure: one that cannot be imported, whose worker dies or takes too long has failed. An interrupt
ends the clusters, too.

    KINF_TEST_TIMES           to this file "SECONDS TEST" is appended of each test
    KINF_TEST_FAILURES        to this file what failed is appended, each with the reason in a line
    KINF_TEST_LOGS            the folder of the logs
    KINF_TEST_MODULE_SECONDS  what a module may take, default 1800
"""

import collections
import contextlib
import faulthandler
import glob
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import unittest

from harness import IS_SIMULATED, ROOT, WRONG_SERVER

HERE = os.path.dirname(os.path.abspath(__file__))
SERVER = "kinformer-sim" if IS_SIMULATED else "a real cluster"
LOGS = os.environ.get("KINF_TEST_LOGS",
                      os.path.join(ROOT, "build", "integration", "sim" if IS_SIMULATED else "cluster"))
MODULE_SECONDS = int(os.environ.get("KINF_TEST_MODULE_SECONDS", 1800))
END_SECONDS = 60  # a cluster's end, at the most

# The longest modules of either server first, so that none of them is what the others wait for at the end.
FIRST = ["test_packages", "test_soak",
         "test_frozen", "test_on_demand", "test_serve_restored", "test_serve_hostile", "test_elector", "test_restarts",
         "test_serve_pass", "test_serve_tunnel", "test_serve_session", "test_serve_auth", "test_withdrawn",
         "test_dead_streams", "test_examples", "test_conversion", "test_configmap_sync", "test_controllers"]
# With 10,000 pods (harness.many_pods), which take long to make and would make each list after them long: the first
# worker's, on a cluster that ends with them. test_serve first, which does most of what it does without them.
MANY = ["test_serve", "test_watchlist_large", "test_compressed", "test_sync"]
# One after the other when all else has ended, since they compare times that a busy machine makes long.
ALONE = {"test_serve_fair": "the median of GETs beside a hundred clients that take all they can get"}

# Of a module: `failed` and `skipped` are [[test, text]], `times` [[seconds, test]]; `n_out_of_place` tests need the
# other server.
Outcome = collections.namedtuple("Outcome", "n_tests n_out_of_place failed skipped times")


def log_path(module):
    return os.path.join(LOGS, module + ".log")


# --- the worker ------------------------------------------------------------------------------------


was_interrupted = threading.Event()


class TimedResult(unittest.TextTestResult):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.times = []

    def startTest(self, test):
        if was_interrupted.is_set():  # and a test has swallowed it
            raise KeyboardInterrupt
        self.began = time.monotonic()
        super().startTest(test)

    def stopTest(self, test):
        super().stopTest(test)
        self.times.append((round(time.monotonic() - self.began, 1), test.id()))


def run_module(module):
    suite = unittest.defaultTestLoader.loadTestsFromName(module)
    n_tests = suite.countTestCases()
    result = unittest.TextTestRunner(verbosity=2, resultclass=TimedResult).run(suite)
    failed = [(test.id(), text) for test, text in result.failures + result.errors]
    failed += [(test.id(), "succeeds, which nobody expects") for test in result.unexpectedSuccesses]
    if n_tests == 0:
        failed.append((module, "has no tests"))
    skipped = [(test.id(), why) for test, why in result.skipped]
    n_out_of_place = sum(why.startswith(WRONG_SERVER) for _, why in skipped)
    if n_out_of_place and result.testsRun == 0:  # setUpModule()
        n_out_of_place = n_tests
    return Outcome(n_tests, n_out_of_place, failed, skipped, result.times)


def interrupt(*_):
    was_interrupted.set()
    raise KeyboardInterrupt  # which unittest lets pass, unlike SystemExit


def work():
    """Runs the modules that standard input names, and answers each with a line; descriptors 0 to 2 are the tests'."""
    signal.signal(signal.SIGTERM, interrupt)
    faulthandler.enable()
    modules, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout.reconfigure(line_buffering=True)
    for module in map(str.strip, modules):
        with open(log_path(module), "w", encoding="utf-8") as log:
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)
        print(json.dumps(run_module(module)), file=answers, flush=True)


# --- who hands out ---------------------------------------------------------------------------------


class Worker:
    """In a session of its own: what its tests have started ends with it; the cluster sees to that itself."""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-B", __file__, "--work"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.pidfd = os.pidfd_open(self.process.pid)

    def run(self, module):
        """Its outcome, or the reason why there is none; then the worker is of no use any more."""
        try:
            print(module, file=self.process.stdin, flush=True)
        except BrokenPipeError:
            return "the worker has ended before it"
        ready, _, _ = select.select([self.process.stdout, self.pidfd], [], [], MODULE_SECONDS)
        if not ready:
            self.process.send_signal(signal.SIGABRT)  # its log says where it was
            return f"not within {MODULE_SECONDS} s"
        line = self.process.stdout.readline() if self.process.stdout in ready else ""
        return Outcome(*json.loads(line)) if line.endswith("\n") else "the worker has ended in the midst"

    def end(self):
        """Its status; its cluster ends with it."""
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(END_SECONDS)
        self.kill()
        os.close(self.pidfd)
        return self.process.returncode

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Run:
    def __init__(self):
        self.lock = threading.RLock()  # an interrupt may be interrupted
        self.workers = set()
        self.outcomes = {}  # module -> Outcome
        self.is_interrupted = False

    def run_all(self, modules, n_workers):
        many = collections.deque(module for module in modules if name_of(module) in MANY)
        others = collections.deque(module for module in modules if name_of(module) not in MANY)
        threads = [threading.Thread(target=self.run_queues, args=(others,) if i else (many, others))
                   for i in range(min(n_workers, len(modules)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def run_queues(self, *queues):
        for queue in queues:
            self.run_queue(queue)

    def run_queue(self, queue):
        """One worker does it all, but when it ends in the midst; on kinformer-sim, which starts in a moment and says at
        its end whether it leaks, each module has its own."""
        worker = None
        while module := self.take(queue):
            worker = worker or self.add_worker()
            began = time.monotonic()
            outcome = worker.run(module)
            is_over = IS_SIMULATED or isinstance(outcome, str)
            status = self.end(worker) if is_over else 0
            worker = None if is_over else worker
            self.note(module, outcome, status, time.monotonic() - began)
        if worker and (status := self.end(worker)) != 0:
            self.note("the end of a worker", Outcome(0, 0, [], [], []), status, 0)

    def take(self, queue):
        with self.lock:
            return queue.popleft() if queue and not self.is_interrupted else None

    def add_worker(self):
        with self.lock:
            worker = Worker()
            self.workers.add(worker)
            if self.is_interrupted:
                worker.process.terminate()
            return worker

    def end(self, worker):
        status = worker.end()
        with self.lock:
            self.workers.remove(worker)
        return status

    def note(self, module, outcome, status, seconds):
        if isinstance(outcome, str):
            outcome = Outcome(0, 0, [(module, f"{outcome}; its status is {status}")], [], [])
        elif status != 0:
            outcome.failed.append((module, f"its worker has ended with {status}"))
        with self.lock:
            if self.is_interrupted:
                return
            self.outcomes[module] = outcome
            if os.path.exists(log_path(module)):
                with open(log_path(module), encoding="utf-8", errors="replace") as log:
                    print(log.read(), end="")
            print(f"-- {module}: {outcome.n_tests} tests, {len(outcome.failed)} failed, "
                  f"{len(outcome.skipped)} skipped, {seconds:.0f} s\n", flush=True)

    def interrupt(self, *_):
        """The workers end as they would by themselves, with their clusters, and nothing is handed out any more."""
        with self.lock:
            self.is_interrupted = True
            for worker in self.workers:
                worker.process.terminate()

    # --- what is told at the end ---

    def all_of(self, name):
        return [row for outcome in self.outcomes.values() for row in getattr(outcome, name)]

    def summarize(self, seconds, n_workers):
        for why, n in sorted(collections.Counter(why for _, why in self.all_of("skipped")).items()):
            print(f"skipped {n:4}: {why}")
        print("the ten slowest tests")
        times = sorted(self.all_of("times"), reverse=True)
        for took, test in times[:10]:
            print(f"{took:8} s  {test}")
        for test, text in self.all_of("failed"):
            print(f"{'=' * 70}\nFAILED: {test}\n{text}")
        n_tests = sum(outcome.n_tests for outcome in self.outcomes.values())
        print(f"{len(self.outcomes)} modules on {SERVER} by {n_workers} workers within {seconds:.0f} s: "
              f"{n_tests} tests, {len(self.all_of('failed'))} failed, {len(self.all_of('skipped'))} skipped", flush=True)
        if "KINF_TEST_TIMES" in os.environ:
            with open(os.environ["KINF_TEST_TIMES"], "a", encoding="utf-8") as file:
                file.writelines(f"{took} {test} on {SERVER}\n" for took, test in times)
        if "KINF_TEST_FAILURES" in os.environ:
            with open(os.environ["KINF_TEST_FAILURES"], "a", encoding="utf-8") as file:
                file.writelines(f"{test} on {SERVER}\n    {reason_of(text)}\n" for test, text in self.all_of("failed"))
        with open(os.path.join(LOGS, "out-of-place"), "w", encoding="utf-8") as file:
            print(sum(outcome.n_out_of_place for outcome in self.outcomes.values()), file=file)


def reason_of(text):
    """What was raised, if it is a traceback."""
    lines = text.splitlines()
    frame = max((i for i, line in enumerate(lines) if line.startswith('  File "')), default=-1)
    return next((line for line in lines[frame + 1:] if line and not line[0].isspace()), "")[:300]


def name_of(module):
    return module.partition(".")[0]


def in_order(modules):
    order = FIRST + MANY
    return sorted(modules, key=lambda module: (order.index(name_of(module)) if name_of(module) in order else len(order),
                                               module))


def main(modules):
    modules = in_order(modules or [os.path.basename(path)[:-3] for path in glob.glob(os.path.join(HERE, "test_*.py"))])
    os.makedirs(LOGS, exist_ok=True)
    for path in glob.glob(os.path.join(LOGS, "*")):
        os.remove(path)
    is_alone = {module: name_of(module) in ALONE for module in modules}
    # Tests do little but wait, but a cluster takes 600 MB and a third of a processor.
    n_processors = min(4, max(2, os.cpu_count()))
    n_workers = n_processors * 2
    run, began = Run(), time.monotonic()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, run.interrupt)
    run.run_all([module for module in modules if not is_alone[module]], n_workers)
    run.run_all([module for module in modules if is_alone[module]], 1)
    if run.is_interrupted:
        return 130
    for module in modules:
        run.outcomes.setdefault(module, Outcome(0, 0, [(module, "was not run")], [], []))
    run.summarize(time.monotonic() - began, n_workers)
    return 1 if run.all_of("failed") else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--work"]:
        work()
    else:
        sys.exit(main(sys.argv[1:]))
