"""How kinformerd starts: with its server away, and with many others at once. The server is kinformer-sim."""

import os
import re
import signal
import socket
import tempfile
import unittest

from harness import Daemon, needs_sim, run_daemon, wait_until
from sim import Sim
from test_serve import ask
from test_state import At

PODS = "/api/v1/pods"


@needs_sim("servers of its own")
class StartTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = os.path.join(folder.name, "cache")
        self.config = os.path.join(folder.name, "config")
        self.kubeconfig = os.path.join(folder.name, "kubeconfig")
        self.access_log = os.path.join(folder.name, "access")

    def start(self, spread, kubeconfig):
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(f"events: json\nstartSpread: {spread}\naccessLog: {self.access_log}\nresources: [{{resource: pods}}]\n")
        return Daemon("--listen", "127.0.0.1:0", "--write-kubeconfig", self.cache, config=self.config,
                      kubeconfig=kubeconfig)

    def served(self, daemon):
        wait_until(lambda: daemon.check() or os.path.exists(self.cache), "it listens")
        return At(self.cache)

    def expect_unready(self, served):
        self.assertEqual(ask(served, "/livez")[0], 200)
        self.assertEqual(ask(served, PODS)[0], 429)
        code, _, text = ask(served, "/readyz")
        self.assertEqual(code, 500)
        self.assertIn(b"[-]discovery failed: not fetched", text)

    def test_with_the_server_away_it_answers_probes_and_waits(self):
        with socket.socket() as bound:
            bound.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{bound.getsockname()[1]}"
            with open(self.kubeconfig, "w", encoding="utf-8") as file:
                file.write("current-context: c\ncontexts: [{name: c, context: {cluster: c}}]\n"
                           f"clusters: [{{name: c, cluster: {{server: 'http://{address}'}}}}]\n")
            with self.start("0", self.kubeconfig) as daemon:
                served = self.served(daemon)
                daemon.wait_logged("waiting for the server")
                self.expect_unready(served)
                os.rename(self.access_log, self.access_log + ".1")
                daemon.process.send_signal(signal.SIGHUP)
                wait_until(lambda: os.path.exists(self.access_log), "the access log is opened again")
                bound.close()
                with Sim("--listen", address, "--generate", "pods=3"):
                    wait_until(lambda: ask(served, "/readyz")[0] == 200, "ready")
                    self.assertEqual(ask(served, PODS)[0], 200)
                    daemon.stop()

    def test_an_answer_that_breaks_off_is_asked_for_again(self):
        with Sim("--generate", "pods=2", "--fault", "get path=/api truncate after=20 times=2") as sim, \
                Daemon(kubeconfig=sim.kubeconfig) as daemon:
            daemon.wait_synced()
            self.assertIn(f'waiting for the server error="the server {sim.address}: discovery /api: JSON ends early',
                          daemon.log_text())
            daemon.stop()

    def test_a_login_page_is_told_and_not_blamed_on_the_configuration(self):
        with Sim("--fault", "get path=/api login") as sim:
            code, _, problem = run_daemon("--kubeconfig", sim.kubeconfig, "--resource", "pods")
        self.assertEqual((code, problem), (1, f"kinformerd: the server {sim.address}: discovery /api: answered with "
                                              "text/html; charset=utf-8, not JSON: <!DOCTYPE html>\n"))

    def test_a_kubeconfig_from_a_pipe_is_read_once(self):
        with Sim("--generate", "pods=3") as sim, open(sim.kubeconfig, encoding="utf-8") as file:
            os.mkfifo(self.kubeconfig)
            with self.start("0", self.kubeconfig) as daemon:
                with open(self.kubeconfig, "w", encoding="utf-8") as pipe:
                    pipe.write(file.read())
                daemon.wait_synced(1)
                daemon.process.send_signal(signal.SIGHUP)
                daemon.wait_logged("configuration read again")
                daemon.stop()

    def test_a_kubeconfig_that_never_comes_holds_neither_a_stop_nor_the_timeout(self):
        os.mkfifo(self.kubeconfig)
        with self.start("0", self.kubeconfig) as daemon:
            wait_until(self.is_read, "the pipe is read")
            wait_until(lambda: daemon.process.terminate() or daemon.process.poll() is not None, "the end")
            self.assertEqual(daemon.process.returncode, 0)
        code, _, problem = run_daemon("--kubeconfig", self.kubeconfig, "--resource", "pods", "--measure", "--timeout", "1s")
        self.assertEqual((code, problem), (1, "kinformerd: the kubeconfig was not read within 1000 ms\n"))

    def is_read(self):
        try:
            self.addCleanup(os.close, os.open(self.kubeconfig, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            return False
        return True

    def test_a_configuration_from_a_pipe_is_not_read_again(self):
        os.mkfifo(self.config)
        with Sim("--generate", "pods=3") as sim, Daemon(config=self.config, kubeconfig=sim.kubeconfig) as daemon:
            with open(self.config, "w", encoding="utf-8") as pipe:
                pipe.write("events: json\nresources: [{resource: pods}]\n")
            daemon.wait_synced(1)
            daemon.process.send_signal(signal.SIGHUP)
            daemon.wait_logged("is no plain file and is read once")
            daemon.stop()

    def test_a_spread_start_asks_nothing_before_its_time_and_stops_at_once(self):
        drawn = []
        with Sim("--fault-listen", "127.0.0.1:0") as sim:
            for _ in range(3):
                with self.start("1000h", sim.kubeconfig) as daemon:
                    served = self.served(daemon)
                    daemon.wait_logged("waiting before the first request ms=")
                    self.expect_unready(served)
                    drawn.append(int(re.search(r"before the first request ms=(\d+)", daemon.log_text()).group(1)))
                    daemon.stop()
                os.remove(self.cache)
            self.assertEqual(sim.control("GET", "/requests")[1]["requests"], [])
        self.assertEqual(len(set(drawn)), 3)
        self.assertTrue(all(0 <= ms < 3_600_000_000 for ms in drawn))

    def test_a_short_spread_is_waited_for(self):
        with Sim("--generate", "pods=3") as sim, self.start("1s", sim.kubeconfig) as daemon:
            daemon.wait_synced(1)
            daemon.stop()

    def test_a_spread_that_is_no_time_is_refused(self):
        with open(self.config, "w", encoding="utf-8") as file:
            file.write("startSpread: soon\nresources: [{resource: pods}]\n")
        code, _, problem = run_daemon("--config", self.config, "--check-config")
        self.assertEqual(code, 2)
        self.assertIn("startSpread", problem)


if __name__ == "__main__":
    unittest.main()
