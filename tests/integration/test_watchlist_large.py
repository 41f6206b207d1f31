"""Watch lists of 10,000 pods: the same store as by a list, in little memory."""

import re
import signal
import unittest

from harness import Daemon, cluster, many_pods, measure, wait_until
from test_watchlist import Configured


def kilobytes(process, name):
    with open(f"/proc/{process.pid}/status", encoding="utf-8") as file:
        return int(re.search(rf"^{name}:\s+(\d+)", file.read(), re.M).group(1))


def forget_peak(process):
    with open(f"/proc/{process.pid}/clear_refs", "w", encoding="utf-8") as file:
        file.write("5")


class Large(Configured):
    @classmethod
    def setUpClass(cls):
        cls.n_pods = many_pods()

    def test_every_start_gives_the_same_store(self):
        wanted = cluster().checksum()
        for initial in ("list", "watchlist", "auto"):
            with self.subTest(initial):
                [line] = measure("--config", self.config(initial))
                self.assertEqual((int(line["objects"]), line["checksum"]), (self.n_pods, wanted))
                print(f"  {initial}: " + " ".join(f"{name}={value}" for name, value in line.items()))

    def test_a_forced_second_round_needs_little_memory(self):
        names = cluster().kubectl("get", "pods", "-n", "many-0", "-o", "name").split()[:20]
        for initial in ("list", "watchlist"):
            with self.subTest(initial), Daemon("--config", self.config(initial), resource=(), events=False,
                                               mode="release") as daemon:
                rounds = f"by={initial}"
                wait_until(lambda: rounds in daemon.log_text(), "the first round")
                wait_until(lambda: "all synced" in daemon.log_text(), "all is stored")
                settled = wait_until(lambda: kilobytes(daemon.process, "VmRSS"), "memory")
                daemon.process.send_signal(signal.SIGSTOP)
                forget_peak(daemon.process)
                # The second time it forgets what happened behind the first.
                cluster().forget()
                cluster().kubectl("label", "-n", "many-0", *names, f"round={initial}", "--overwrite")
                cluster().forget()
                daemon.process.send_signal(signal.SIGCONT)
                wait_until(lambda: daemon.log_text().count(rounds) == 2, "the second round")
                peak = kilobytes(daemon.process, "VmHWM")
                print(f"  {initial}: settled_kb={settled} peak_kb={peak} ratio={peak / settled:.2f}")
                self.assertIn("reason Expired", daemon.log_text())
                self.assertLessEqual(peak, settled * 1.2)
                daemon.stop()

    def test_sanitized_build_streams_10000_pods_and_leaks_nothing(self):
        [line] = measure("--config", self.config("watchlist"), mode="asan", timeout="120s")
        self.assertEqual(int(line["objects"]), self.n_pods)


if __name__ == "__main__":
    unittest.main()
