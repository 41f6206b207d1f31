"""Some 1,600 requests, most of them writes, to the API server and to kinformer-sim: the same answers, or a listed reason.

    python3 test_sim_rows.py --only 'configmap/patch-*' --show

shows both answers of some rows. KINF_SIM_ROWS=real asks the API server alone and writes its answers, as they are
compared, to build/sim-rows.json; --recorded takes them from there, so that no cluster is needed.
"""

import argparse
import collections
import fnmatch
import http.client
import json
import os
import re
import ssl
import sys
import tempfile
import threading
import time
import unittest

from harness import PATIENCE, ROOT, needs_cluster
from sim import Sim
from sim_compare import ABSENT, Allowed, Labels, differences, mask, parse
from sim_rows import SCENARIOS
from sim_steps import Answer, made

RECORD = os.path.join(ROOT, "build", "sim-rows.json")
DIFFERENCES = os.path.join(ROOT, "src", "sim", "DIFFERENCES.md")

# How long a row may be asked again until it says what it waits for, and a watch may be silent.
TURN_SECONDS = 10
SILENCE_SECONDS = 5


class Asker:
    """One server, asked over one connection that is kept, and the masked answers by the names of their rows. A step
    without a name becomes a row when it fails."""

    def __init__(self, where):
        self.where = where
        self.connection = where.open()
        self.answers = {}

    def run(self, scenarios):
        for scenario in scenarios:
            self.run_scenario(scenario)
        self.connection.close()
        return self.answers

    def run_scenario(self, scenario):
        labels = Labels(time.time())
        self.ask(made(scenario.name))
        steps = scenario.run(scenario.name)
        answer, n_steps = None, 0
        try:
            while True:
                step = steps.send(answer)
                n_steps += 1
                answer = self.ask_until(step)
                if step.generates:
                    labels.prefixes.append(step.generates)
                name = step.name or f"(step {n_steps})"
                masked = mask(looked_at(answer, step), labels, name, time.time())
                if step.name is not None or answer.status >= 300:
                    self.add(f"{scenario.row}/{name}", masked)
        except StopIteration:
            pass
        except (KeyError, IndexError, TypeError, AttributeError) as problem:
            # An answer is not at all what it should be: the rows that follow are missing.
            self.add(f"{scenario.row}/(broken)", {"status": repr(problem)})

    def add(self, row, answer):
        if row in self.answers:
            raise ValueError(f"two rows are called {row}")
        self.answers[row] = answer

    def ask_until(self, step):
        deadline = time.monotonic() + TURN_SECONDS
        while True:
            answer = self.ask(step)
            if step.until is None or step.until(answer) or time.monotonic() > deadline:
                return answer
            time.sleep(0.02)

    def ask(self, step):
        for _ in range(2):
            try:
                return self.ask_once(step)
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError, ssl.SSLError):
                # A kept connection may be closed by the server at any time; a refused body closes it.
                self.connection.close()
        return self.ask_once(step)

    def ask_once(self, step):
        if step.n_events is not None:
            return self.watch(step)
        self.connection.request(step.method, step.target, step.content, step.headers)
        response = self.connection.getresponse()
        content = response.read()
        if response.will_close:
            self.connection.close()
        return Answer(response.status, response.headers, parse(content, False))

    def watch(self, step):
        """The first events, or those that come until nothing does."""
        connection = self.where.open()
        connection.timeout = SILENCE_SECONDS
        lines = []
        try:
            connection.request(step.method, step.target, None, step.headers)
            response = connection.getresponse()
            while response.status != 200 or len(lines) < step.n_events:
                line = response.readline()
                if line == b"":
                    break
                lines.append(line)
        except TimeoutError:
            pass
        finally:
            connection.close()
        return Answer(response.status, response.headers, parse(b"".join(lines), response.status == 200))


def looked_at(answer, step):
    if step.look is None or not isinstance(answer.body, dict):
        return answer
    return answer._replace(body=step.look(answer.body))


def run_all(scenarios, servers):
    """The answers of each server, which are asked at the same time."""
    askers = {name: Asker(where) for name, where in servers.items()}
    problems = []

    def run(asker):
        try:
            asker.run(scenarios)
        except Exception as problem:  # pylint: disable=broad-except
            problems.append(problem)
    threads = [threading.Thread(target=run, args=(asker,)) for asker in askers.values()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if problems:
        raise problems[0]
    return {name: asker.answers for name, asker in askers.items()}


def chosen(pattern):
    """Whole scenarios: a row builds on those before it."""
    return [scenario for scenario in SCENARIOS
            if pattern is None or fnmatch.fnmatchcase(scenario.row, pattern.split("/")[0])]


def ask_real(scenarios):
    from test_serve import Direct  # which starts the cluster
    return run_all(scenarios, {"real": Direct()})["real"]


def ask_both(scenarios):
    from test_serve import Direct
    with Sim("--no-workloads") as sim:
        answers = run_all(scenarios, {"real": Direct(), "ours": sim})
    return answers["real"], answers["ours"]


def ask_ours(scenarios):
    with Sim("--no-workloads") as sim:
        return run_all(scenarios, {"ours": sim})["ours"]


def compare(real, ours):
    """[(row, path, real, ours)]"""
    return [(row, *difference) for row in sorted({*real, *ours})
            for difference in differences(real.get(row, {"status": ABSENT}), ours.get(row, {"status": ABSENT}))]


def counted(found):
    """How many differences there are at each path, whatever the index."""
    counts = collections.Counter(re.sub(r"\[\d+\]", "[*]", path) for _, path, _, _ in found)
    return "\n".join(f"{n:5} {path}" for path, n in counts.most_common())


def told(difference):
    row, path, real, ours = difference
    return f"{row}  {path}\n    real {json.dumps(real)[:600]}\n    ours {json.dumps(ours)[:600]}"


@needs_cluster("what is compared")
class SimRowsTest(unittest.TestCase):
    def test_writes_are_answered_alike_or_for_a_listed_reason(self):
        if os.environ.get("KINF_SIM_ROWS") == "real":
            real = ask_real(SCENARIOS)
            write(real)
            self.skipTest(f"{len(real)} answers of the API server are in {RECORD}")
        real, ours = ask_both(SCENARIOS)
        self.assertGreater(len(real), 1000)
        self.assertEqual([row for row in real if "(" in row], [], "what rows build on has failed")
        allowed = Allowed(DIFFERENCES)
        found = [difference for difference in compare(real, ours) if not allowed.allows(*difference[:2])]
        self.assertEqual(len(found), 0, "\n" + "\n".join(map(told, found)))
        self.assertEqual(allowed.unused(real), [], "differences that are none any more")


def answer_of(status=200, **body):
    return Answer(status, http.client.HTTPMessage(), body)


class CompareTest(unittest.TestCase):
    """What would make the test above say nothing."""

    def masked(self, *answers):
        labels = Labels(0)
        return [mask(answer, labels, f"row{i}", 0)["body"] for i, answer in enumerate(answers)]

    def version(self, version):
        return answer_of(metadata={"resourceVersion": version})

    def test_a_version_is_called_by_the_row_that_showed_it_first(self):
        bodies = self.masked(*map(self.version, ("5", "5", "7", "6", "x")))
        self.assertEqual([body["metadata"]["resourceVersion"] for body in bodies],
                         ["<version of row0>", "<version of row0>", "<version of row2>", "<version of row3> not risen",
                          "<no version: x>"])

    def test_a_list_may_be_newer_than_its_objects_but_not_older(self):
        def listed(version):
            return answer_of(items=[{"metadata": {"resourceVersion": "5"}}], metadata={"resourceVersion": version})
        bodies = self.masked(listed("5"), listed("9"), listed("4"))
        self.assertEqual([body["metadata"]["resourceVersion"] for body in bodies],
                         ["<version of now>", "<version of now>", "<an old version>"])
        # One that was newer than its objects when it began is called by them when others are newer.
        bodies = self.masked(listed("5"), self.version("9"), listed("7"))
        self.assertEqual(bodies[2]["metadata"]["resourceVersion"], "<version of row0>")

    def test_every_difference_is_found_and_one_does_not_hide_another(self):
        real = {"a": [1, {"b": 2, "c": 3}], "d": 1, "e": True}
        ours = {"a": [1, {"b": 5, "c": 6}, 7], "d": "1", "e": 1}
        self.assertEqual([path for path, _, _ in differences(real, ours)], ["a[1].b", "a[1].c", "a[2]", "d", "e"])

    def test_a_pattern_allows_what_it_names_and_is_told_when_it_does_not(self):
        with tempfile.NamedTemporaryFile("w", suffix=".md") as file:
            file.write("| rows | where |\n|---|---|\n| `pods/*` | `body.x[0].*` | a |\n| `pods/get` | `status` | b |\n")
            file.flush()
            allowed = Allowed(file.name)
        self.assertTrue(allowed.allows("pods/get", "body.x[0].y"))
        self.assertFalse(allowed.allows("pods/get", "body.x[1].y"))
        self.assertFalse(allowed.allows("nodes/get", "body.x[0].y"))
        self.assertEqual(allowed.unused(["pods/get"]), [("pods/get", "status")])
        self.assertEqual(allowed.unused(["nodes/get"]), [])


def write(answers):
    with open(RECORD, "w", encoding="utf-8") as file:
        json.dump(answers, file, indent=1, ensure_ascii=False)
        file.write("\n")


def show(real, ours, pattern):
    for row in real if real is not None else ours:
        if pattern is None or fnmatch.fnmatchcase(row, pattern):
            print(f"=== {row}")
            for name, answers in (("real", real), ("ours", ours)):
                if answers is not None:
                    print(f"--- {name}\n{json.dumps(answers.get(row), indent=1, ensure_ascii=False)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", metavar="PATTERN", help="rows whose names match; their scenarios are run whole")
    parser.add_argument("--show", action="store_true", help="print both answers")
    parser.add_argument("--all", action="store_true", help="print also the differences that are listed")
    parser.add_argument("--count", action="store_true", help="print how many differences there are at each path")
    parser.add_argument("--real", action="store_true", help=f"ask the API server alone, and write {RECORD}")
    parser.add_argument("--recorded", metavar="FILE", nargs="?", const=RECORD,
                        help="answers of the API server, instead of asking it")
    options = parser.parse_args()
    scenarios = chosen(options.only)
    if options.real:
        real, ours = ask_real(scenarios), None
        write(real) if options.only is None else None
    elif options.recorded:
        ours = ask_ours(scenarios)
        with open(options.recorded, encoding="utf-8") as file:
            real = {row: answer for row, answer in json.load(file).items() if row in ours}
    else:
        real, ours = ask_both(scenarios)
    if options.show:
        show(real, ours, options.only)
    if ours is None:
        print(f"{len(real)} rows")
        return 0
    allowed = Allowed(DIFFERENCES)
    rows = [row for row in real if options.only is None or fnmatch.fnmatchcase(row, options.only)]
    found = [difference for difference in compare({row: real[row] for row in rows},
                                                  {row: ours.get(row, {}) for row in rows})
             if not allowed.allows(*difference[:2]) or options.all]
    print(counted(found) if options.count else "\n".join(map(told, found)))
    print(f"{len(rows)} rows, {len(found)} differences in {len({difference[0] for difference in found})} of them")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
