"""bench/run.py with few pods: that it measures, what it makes of the figures, and what it does not believe."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from harness import ROOT, need_cluster

sys.path.insert(0, os.path.join(ROOT, "bench"))

import canned  # noqa: E402
import lab  # noqa: E402
import report  # noqa: E402


def setUpModule():
    need_cluster("it has a server of its own")


def compiler():
    """That of the release build, so that nothing is built anew."""
    with open(os.path.join(ROOT, "build/release/flags.stamp"), encoding="utf-8") as file:
        return file.read().partition(" -std=")[0]


def bench(*arguments):
    env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MODE")}
    return subprocess.run([sys.executable, "-B", os.path.join(ROOT, "bench/run.py"), *arguments], text=True, check=False,
                          env={**env, "CC": compiler(), "MAKEFLAGS": "-e"}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)


def row(of, **figures):
    return {"of": of, "figures": figures}


class Smoke(unittest.TestCase):
    """One run of a hundred pods, kinformer and curl alone."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.out = "OUT=" + cls.folder.name
        done = bench("RUNS=1", "SIZE=100", "SIZES=10,100", "PEERS=", "ONLY=sync,events,relist,growth,streamed", cls.out)
        assert done.returncode == 0, done.stdout
        cls.said = done.stdout
        cls.results = report.read(cls.folder.name)

    def test_every_row_is_measured_and_counts(self):
        self.assertEqual(list(self.results), ["sync", "events", "relist", "growth", "streamed"], self.said)
        for name, found in self.results.items():
            for one in found["rows"]:
                with self.subTest(measurement=name, row=one["of"]):
                    self.assertNotIn("void", one)
                    self.assertTrue(all(len(values) == 1 and values[0] >= 0 for values in one["figures"].values()))
        rates = {one["rate"] for one in self.results["events"]["rows"] if one["of"] == "kinformer"}
        self.assertEqual(rates, {0, 100, 1000, 5000})

    def test_results_say_what_they_were_taken_on(self):
        for found in self.results.values():
            self.assertRegex(found["commit"], r"^([0-9a-f]{9}\+?|unknown)$")
            self.assertRegex(found["machine"], "cores of")
            self.assertIn("curl", found["versions"])

    def test_documents_are_those_of_the_figures(self):
        self.assertEqual(bench("--render", self.out).returncode, 0)
        self.assertEqual(bench("--check", self.out).returncode, 0)
        changed = json.loads(json.dumps(self.results))
        changed["sync"]["rows"][0]["figures"]["wall_s"] = [77.7]
        report.write(self.folder.name, changed)
        self.addCleanup(report.write, self.folder.name, self.results)
        done = bench("--check", self.out)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("RESULTS.md is not as", done.stdout)
        self.assertIn("sync.svg is not as", done.stdout)


class Figures(unittest.TestCase):
    def test_another_sum_makes_a_row_void(self):
        self.assertIsNone(lab.why_void({"told": 3, "sum": "aa"}, "aa", 3))
        self.assertIn("checksum", lab.why_void({"told": 3, "sum": "ab"}, "aa", 3))
        self.assertIn("2 of 3", lab.why_void({"told": 2, "sum": "aa"}, "aa", 3))
        rows = lab.Rows()
        rows.add("client-go, JSON", {"wall_s": 1.0}, "another checksum")
        rows.add("kinformer", {"wall_s": 1.0})
        text = report.beside(rows.list(), [("s", "wall_s", ("client-go, JSON",))])
        self.assertIn("| client-go, JSON | void |", text)
        self.assertIn("| kinformer | 1 |  |", text)  # nor is anything compared with it

    def test_tables_have_medians_spreads_and_ratios(self):
        rows = [row("kinformer", cpu_us=[30.0, 20.0, 25.0]), row("curl", cpu_us=[10.0, 10.0, 10.0])]
        self.assertIn("| kinformer | 25 (20 to 30) | 2.5x |", report.beside(rows, [("us", "cpu_us", ("curl",))]))

    def test_latency_counts_from_when_an_event_was_due(self):
        with tempfile.NamedTemporaryFile("w", suffix=".times") as file:
            # Due at 10.1, 10.2 and 10.3 s; the second is late, and so is the third, which came at once behind it.
            file.write("101 10101000000\n102 10350000000\n103 10351000000\n")
            file.flush()
            late = canned.latencies_ms(file.name, (10.0, 100), 10, 1)
        self.assertEqual([round(ms) for ms in late], [150, 51])
        self.assertEqual(canned.quantile([5, 1, 3, 2, 4], 0.5), 3)
        self.assertEqual(canned.quantile([5, 1, 3, 2, 4], 0.99), 5)

    def test_only_ratios_of_one_run_are_compared_with_the_committed_ones(self):
        def results(ours, floor):
            return {"sync": {"rows": [row("kinformer", wall_s=[ours]), row("curl", wall_s=[floor])]}}
        self.assertEqual(report.regressions(results(0.2, 0.1), results(2.0, 1.0)), [])
        self.assertEqual(len(report.regressions(results(0.2, 0.1), results(0.3, 0.1))), 1)

    def test_the_readme_says_nothing_that_was_not_measured(self):
        with self.assertRaisesRegex(lab.Failure, "not measured"):
            report.readme_text("<!-- figures: peers -->\n<!-- end -->", {})


if __name__ == "__main__":
    unittest.main()
