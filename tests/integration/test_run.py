"""run.py: whatever goes wrong with a module, the run has failed and says of which."""

import collections
import glob
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from harness import PATIENCE, ROOT, needs_sim, wait_until

HEAD = "import os, signal, time, unittest\nimport harness\nclass T(unittest.TestCase):\n    "


# Whose modules tests import; a worker runs many tests in one process, where a name stands for one module.
FOLDERS = ("tests/integration", "tests/soak", "bench", "scripts")
PROGRAMS = {"run"}  # which nothing imports


class Names(unittest.TestCase):
    def test_modules_that_tests_import_have_names_of_their_own(self):
        names = collections.Counter(os.path.basename(path)[:-3] for folder in FOLDERS
                                    for path in glob.glob(os.path.join(ROOT, folder, "*.py")))
        self.assertIn("soak_report", names)
        self.assertEqual({name for name, n in names.items() if n > 1} - PROGRAMS, set())


@needs_sim("modules of its own")
class RunTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())

    def start(self, server="sim", ci="", seconds=60, **modules):
        for name, body in modules.items():
            with open(os.path.join(self.folder, f"test_{name}.py"), "w", encoding="utf-8") as file:
                file.write(body)
        process = subprocess.Popen(
            [sys.executable, "-B", os.path.join(ROOT, "tests", "integration", "run.py"),
             *(f"test_{name}" for name in modules)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
            env={**os.environ, "PYTHONPATH": self.folder, "KINF_TEST_LOGS": os.path.join(self.folder, "logs"), "CI": ci,
                 "KINF_TEST_SERVER": server, "KINF_TEST_MODULE_SECONDS": str(seconds),
                 "KINF_TEST_TIMES": os.path.join(self.folder, "times"),
                 "KINF_TEST_FAILURES": os.path.join(self.folder, "failures")})
        self.addCleanup(process.terminate)
        return process

    def run_modules(self, **options):
        process = self.start(**options)
        said, _ = process.communicate(timeout=PATIENCE)
        return process.returncode, said

    def read(self, name):
        with open(os.path.join(self.folder, name), encoding="utf-8") as file:
            return file.read()

    def assert_failed(self, reason, body, **options):
        code, said = self.run_modules(bad=body, good=HEAD + "def test_good(self): pass", **options)
        self.assertEqual(code, 1, said)
        self.assertRegex(said, r"FAILED: .*test_bad.*\n(.*\n)*?.*" + reason)
        self.assertRegex(said, r"2 modules on .*: \d tests, 1 failed, \d skipped\n$")
        self.assertIn("-- test_good: 1 tests, 0 failed, 0 skipped", said)
        self.assertRegex(self.read("failures"), r"^.*test_bad.* on kinformer-sim\n    .*" + reason + r".*\n$")
        os.remove(os.path.join(self.folder, "failures"))

    def test_what_fails_fails_the_run(self):
        for reason, body in (("AssertionError: False is not true", "def test_bad(self): self.assertTrue(False)"),
                             ("ValueError: 7", "def test_bad(self): raise ValueError(7)"),
                             ("ValueError: 8", "def test_bad(self): pass\ndef setUpModule(): raise ValueError(8)"),
                             ("has no tests", "pass")):
            with self.subTest(reason):
                self.assert_failed(reason, HEAD + body)

    def test_what_cannot_be_imported_fails_the_run(self):
        self.assert_failed("No module named 'no_such_module'", "import no_such_module")
        self.assert_failed("the worker has ended in the midst; its status is 1", "this is not Python")

    def test_a_worker_that_dies_fails_the_run_and_leaves_nothing(self):
        pid = os.path.join(self.folder, "pid")
        self.assert_failed("the worker has ended in the midst; its status is -9", HEAD + "def test_bad(self):\n"
                           f"        os.system('sleep 1000 & echo $! > {pid}')\n"
                           "        os.kill(os.getpid(), signal.SIGKILL)")
        wait_until(lambda: not os.path.exists("/proc/" + self.read("pid").strip()), "its child is gone")

    def test_a_worker_that_hangs_says_where_and_fails_the_run(self):
        self.assert_failed("not within 3 s", HEAD + "def test_bad(self): time.sleep(1000)", seconds=3)
        self.assertIn("in test_bad", self.read("logs/test_bad.log"))

    def test_a_server_that_does_not_end_well_fails_the_run(self):
        self.assert_failed("its worker has ended with 1",
                           HEAD + "def test_bad(self): harness.cluster().sim.process.kill()")

    def test_what_is_skipped_is_told_and_counted(self):
        body = (HEAD + "@harness.needs_cluster('a thing')\n    def test_a(self): pass\n    "
                "@harness.needs_sim('another')\n    def test_b(self): pass\n")
        for server, why in (("sim", "the real server: a thing"), ("cluster", "kinformer-sim: another")):
            code, said = self.run_modules(some=body, server=server, ci="true")
            self.assertEqual(code, 0, said)
            self.assertIn(f"skipped    1: needs {why}\n", said)
            self.assertEqual(self.read("logs/out-of-place"), "1\n")
        whole = (HEAD + "def test_a(self): pass\n    def test_b(self): pass\n"
                 "def setUpModule(): harness.need_cluster('all')\n")
        self.assertEqual(self.run_modules(some=whole)[0], 0)
        self.assertEqual(self.read("logs/out-of-place"), "2\n")

    def test_in_ci_a_missing_tool_fails_the_run(self):
        body = HEAD + "def test_bad(self): harness.lack('promtool')"
        self.assertEqual(self.run_modules(bad=body)[0], 0)
        self.assert_failed("there is no promtool", body, ci="true")

    def test_the_slowest_are_told(self):
        code, said = self.run_modules(slow=HEAD + "def test_slow(self): time.sleep(0.6)",
                                      quick=HEAD + "def test_quick(self): pass")
        self.assertEqual(code, 0)
        self.assertRegex(said, r"the ten slowest tests\n +0\.\d s  test_slow\.T\.test_slow\n +0.0 s  test_quick")
        self.assertRegex(self.read("times"), r"(?m)^0\.\d test_slow\.T\.test_slow on kinformer-sim$")

    def test_an_interrupt_ends_the_servers(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start(waits=HEAD + "def test_waits(self):\n        sim = harness.cluster().sim\n"
                                 f"        with open('{self.folder}/pid', 'w') as file:\n"
                                 "            file.write(str(sim.process.pid))\n"
                                 "        time.sleep(1000)")
            pid = wait_until(lambda: os.path.exists(self.folder + "/pid") and self.read("pid"), "it runs")
            time.sleep(0.1)
            process.send_signal(number)
            process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 130)
            self.assertFalse(os.path.exists("/proc/" + pid))
            os.remove(self.folder + "/pid")

    def test_an_interrupt_that_a_test_swallows_ends_it_behind_that_test(self):
        process = self.start(waits=HEAD + "def test_a(self):\n        try:\n"
                             f"            open('{self.folder}/began', 'w').close()\n            time.sleep(1000)\n"
                             "        except BaseException: pass\n    def test_b(self): time.sleep(1000)")
        wait_until(lambda: os.path.exists(self.folder + "/began"), "it runs")
        time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 130)


if __name__ == "__main__":
    unittest.main()
