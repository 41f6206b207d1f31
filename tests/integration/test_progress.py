"""Long lists are seen: on a terminal, in the log, in /debug/state and /metrics. The server is kinformer-sim, which drips."""

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import tempfile
import termios
import threading
import time
import unittest

from harness import PATIENCE, Daemon, daemon_path, needs_sim, wait_until, write_config
from sim import Sim
from test_serve import ask, body_of
from test_state import At

DRIP = "list,watchlist pods drip=100000/100ms"  # some 70 pods a second


class Terminal:
    """kinformerd whose standard error is a terminal."""

    def __init__(self, *args, columns=80):
        main, other = pty.openpty()
        fcntl.ioctl(other, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.began = time.monotonic()
        self.process = subprocess.Popen([daemon_path("asan"), *args], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=other)
        os.close(other)
        self.main = main
        self.pieces = []  # (seconds, text)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        try:
            while True:
                text = os.read(self.main, 65536).decode()
                self.pieces.append((time.monotonic() - self.began, text))
        except OSError:  # the other side is closed
            pass

    def text(self):
        return "".join(text for _, text in self.pieces)

    def rows(self):
        """What the terminal shows in the end: each line with what was written over it."""
        return [line.rpartition("\r\x1b[K")[2] for line in self.text().replace("\r\n", "\n").split("\n")]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(PATIENCE)
        self.reader.join()
        os.close(self.main)


@needs_sim("servers of its own")
class ProgressTest(unittest.TestCase):
    def test_a_terminal_shows_one_line_from_two_seconds_on_and_erases_it(self):
        with Sim("--generate", "pods=600", "--fault", DRIP) as sim:
            terminal = Terminal("--kubeconfig", sim.kubeconfig, "--resource", "pods", "--resource", "nodes")
            try:
                wait_until(lambda: "all synced" in terminal.text(), "the end of the list")
            finally:
                terminal.stop()
        shown = [seconds for seconds, text in terminal.pieces if "\r\x1b[Klisting pods: " in text]
        self.assertGreaterEqual(len(shown), 3)
        self.assertGreaterEqual(shown[0], 2)
        self.assertLess(shown[0], 6)
        # A first page, which takes less than two seconds, has said how many there are.
        counts = [int(n) for n in re.findall(r"\r\x1b\[Klisting pods: (\d+) of about 6\d\d objects, \d+\.\d MB, \d+ s",
                                             terminal.text())]
        self.assertEqual(len(counts), len(shown))
        self.assertEqual(counts, sorted(counts))
        self.assertTrue(0 < counts[0] < counts[-1] < 700, counts)
        for row in terminal.rows():
            self.assertNotIn("listing ", row)
        self.assertIn("info reflector: listed resource=pods", terminal.text())

    def test_what_does_not_fit_one_line_is_counted(self):
        with Sim("--generate", "pods=1500,nodes=5,configmaps=5", "--fault", DRIP,
                 "--fault", "list nodes,configmaps stall after=100") as sim:
            terminal = Terminal("--kubeconfig", sim.kubeconfig, "--resource", "pods", "--resource", "nodes",
                                "--resource", "configmaps", columns=70)
            try:
                wait_until(lambda: "; and 2 more" in terminal.text(), "the line")
            finally:
                terminal.stop()
        lines = re.findall(r"\r\x1b\[K(listing [^\r]*)", terminal.text())
        self.assertTrue(lines)
        for line in lines:
            self.assertLess(len(line), 70, line)

    def test_the_log_has_it_every_ten_seconds_and_the_state_and_the_metrics_at_any_time(self):
        with Sim("--generate", "pods=1500", "--fault", DRIP) as sim, tempfile.TemporaryDirectory() as folder:
            cache = os.path.join(folder, "cache")
            config = write_config(folder, "pods")
            with Daemon("--listen", "127.0.0.1:0", "--write-kubeconfig", cache, kubeconfig=sim.kubeconfig,
                        config=config) as daemon:
                wait_until(lambda: os.path.exists(cache), "it listens")
                served = At(cache)

                def state():
                    # It listens before it has its types.
                    return (body_of(served, "/debug/state")["informers"] or [{"listObjects": 0}])[0]

                first = wait_until(lambda: (found := state())["listObjects"] > 0 and found, "objects")
                self.assertEqual((first["synced"], first["objects"], first["state"]), (False, 0, "listing"))
                self.assertGreater(first["listBytes"], 1000)
                self.assertRegex(first["listSince"], r"^\d{4}-.*Z$")
                metrics = ask(served, "/metrics")[2].decode()
                for name in ("objects", "bytes", "age_seconds"):
                    self.assertRegex(metrics, rf'\nkinformer_list_{name}\{{name="pods"[^}}]*\}} [\d.]*[1-9]')
                wait_until(lambda: state()["listExpected"] >= 1500, "what the first page says")
                wait_until(lambda: daemon.synced, "the end of the list", 4 * PATIENCE)
                lines = re.findall(r"daemon: listing resource=pods namespace=\* objects=(\d+) expected=(\d+) bytes=\d+ ms=(\d+)",
                                   daemon.log_text())
                last = state()
        self.assertIn(len(lines), (1, 2, 3), lines)
        for i, (objects, _, ms) in enumerate(lines):
            self.assertGreater(int(objects), 0)
            self.assertTrue((i + 1) * 10000 - 6000 < int(ms) < (i + 1) * 10000 + 4000, lines)
        self.assertEqual((last["listSince"], last["listObjects"], last["listExpected"], last["listBytes"]), (None, 0, 0, 0))


if __name__ == "__main__":
    unittest.main()
