"""kinformerd under a service manager: what it tells by the sd_notify protocol."""

import os
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from harness import PATIENCE, Proxy, cluster, daemon_path
from sim import Sim


class Manager:
    """Starts kinformerd as systemd would, and takes what it tells."""

    def __init__(self, folder, address, kubeconfig=None, **env):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + address[1:] if address.startswith("@") else address)
        self.socket.settimeout(PATIENCE)
        self.kubeconfig = kubeconfig or cluster().kubeconfig()
        self.config = os.path.join(folder, "kinformerd.yaml")
        self.write_config(f"resources:\n- resource: namespaces\nlisten: ['unix:{folder}/socket']\n")
        self.process = subprocess.Popen([daemon_path("asan"), "--config", self.config], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env={**os.environ, "NOTIFY_SOCKET": address, **env})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.socket.close()

    def write_config(self, resources):
        with open(self.config, "w", encoding="utf-8") as file:
            file.write(f"kubeconfig: {self.kubeconfig}\n{resources}")

    def told(self):
        return self.socket.recv(4096).decode()

    def told_but_watchdog(self):
        while (text := self.told()) == "WATCHDOG=1":
            pass
        return text


class Service(unittest.TestCase):
    def test_it_is_ready_when_synced_and_tells_reloads_and_its_end(self):
        with tempfile.TemporaryDirectory() as folder, Manager(folder, os.path.join(folder, "notify")) as manager:
            self.assertEqual(manager.told(), "READY=1")
            manager.write_config("resources:\n- resource: namespaces\n- resource: nodes\n")
            manager.process.send_signal(signal.SIGHUP)
            self.assertRegex(manager.told(), r"^RELOADING=1\nMONOTONIC_USEC=[0-9]+$")
            self.assertEqual(manager.told(), "READY=1")
            manager.process.send_signal(signal.SIGTERM)
            self.assertEqual(manager.told(), "STOPPING=1")
            self.assertEqual(manager.process.wait(PATIENCE), 0)

    def test_that_it_waits_for_the_server_is_told_and_taken_back(self):
        with tempfile.TemporaryDirectory() as folder, Sim("--fault", "get path=/api truncate after=20 times=2") as sim, \
                Manager(folder, os.path.join(folder, "notify"), sim.kubeconfig) as manager:
            self.assertEqual([manager.told() for _ in range(3)], ["STATUS=waiting for the server", "STATUS=", "READY=1"])
            manager.process.send_signal(signal.SIGTERM)
            self.assertEqual(manager.told(), "STOPPING=1")

    def test_signals_are_for_the_main_thread(self):
        with tempfile.TemporaryDirectory() as folder, Manager(folder, os.path.join(folder, "notify")) as manager:
            self.assertEqual(manager.told(), "READY=1")
            tasks = f"/proc/{manager.process.pid}/task"
            threads = [thread for thread in os.listdir(tasks) if int(thread) != manager.process.pid]
            self.assertGreater(len(threads), 3)
            for thread in threads:
                with open(f"{tasks}/{thread}/status", encoding="utf-8") as file:
                    status = dict(line.split(":", 1) for line in file)
                for number in (signal.SIGTERM, signal.SIGHUP):
                    self.assertTrue(int(status["SigBlk"], 16) >> (number - 1) & 1, status["Name"])

    def test_the_watchdog_is_fed_in_the_abstract_namespace_too(self):
        address = f"@kinformerd-{os.getpid()}"
        with tempfile.TemporaryDirectory() as folder, Manager(folder, address, WATCHDOG_USEC="200000") as manager:
            self.assertEqual(manager.told_but_watchdog(), "READY=1")
            for _ in range(3):
                self.assertEqual(manager.told(), "WATCHDOG=1")
            manager.process.send_signal(signal.SIGTERM)
            self.assertEqual(manager.told_but_watchdog(), "STOPPING=1")

    def test_a_reload_that_has_to_wait_for_the_server_starves_no_watchdog(self):
        with tempfile.TemporaryDirectory() as folder, Proxy() as proxy, \
                Manager(folder, os.path.join(folder, "notify"), proxy.kubeconfig(folder),
                        WATCHDOG_USEC="500000") as manager:
            self.assertEqual(manager.told_but_watchdog(), "READY=1")
            proxy.stall.set()
            manager.write_config("resources:\n- resource: namespaces\n- resource: nodes\n")
            manager.process.send_signal(signal.SIGHUP)
            self.assertRegex(manager.told_but_watchdog(), "^RELOADING=1\n")
            for _ in range(6):
                self.assertEqual(manager.told(), "WATCHDOG=1")
            proxy.stall.clear()
            self.assertEqual(manager.told_but_watchdog(), "READY=1")
            proxy.stall.set()
            manager.write_config("resources:\n- resource: namespaces\n- resource: configmaps\n")
            manager.process.send_signal(signal.SIGHUP)
            self.assertRegex(manager.told_but_watchdog(), "^RELOADING=1\n")
            begun = time.monotonic()
            manager.process.send_signal(signal.SIGTERM)
            self.assertEqual(manager.told_but_watchdog(), "STOPPING=1")
            self.assertEqual(manager.process.wait(PATIENCE), 0)
            self.assertLess(time.monotonic() - begun, 10)

    def test_a_watchdog_of_another_process_is_not_fed(self):
        with tempfile.TemporaryDirectory() as folder, \
                Manager(folder, os.path.join(folder, "notify"), WATCHDOG_USEC="100000", WATCHDOG_PID="1") as manager:
            self.assertEqual(manager.told(), "READY=1")
            manager.process.send_signal(signal.SIGTERM)
            self.assertEqual(manager.told(), "STOPPING=1")

    def test_a_manager_that_is_not_there_harms_nothing(self):
        with tempfile.TemporaryDirectory() as folder:
            with subprocess.Popen([daemon_path("asan"), "--kubeconfig", cluster().kubeconfig(), "--resource", "namespaces",
                                   "--events", "json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env={**os.environ, "NOTIFY_SOCKET": os.path.join(folder, "none")}) as process:
                while "SYNCED" not in process.stdout.readline():
                    self.assertIsNone(process.poll())
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(PATIENCE), 0)
                self.assertIn("cannot tell the service manager", process.stderr.read())


if __name__ == "__main__":
    unittest.main()
