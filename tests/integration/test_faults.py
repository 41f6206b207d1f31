"""Faults of server and network: nothing lost, nothing twice, nothing out of order; and stop is fast everywhere."""

import array
import fcntl
import os
import signal
import socket
import subprocess
import tempfile
import termios
import threading
import time
import unittest

from harness import (PATIENCE, TOOLS, Daemon, Proxy, Slow, again_if_slow, cluster, config_map, daemon_path,
                     needs_cluster, wait_until)

STOP_SECONDS = 0.2
# Process exit under ASan includes the leak check, which is none of the daemon's business.
STOP_MODE = "release"


class Restarts(unittest.TestCase):
    def churn(self, seconds, prefix):
        return subprocess.Popen([os.path.join(TOOLS, "loader"), "churn", "-kubeconfig", cluster().kubeconfig(), "-pods",
                                 "200", "-prefix", prefix, "-rate", "200", "-duration", f"{seconds}s"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @needs_cluster("a crash")
    def test_apiserver_restarted_in_mid_watch(self):
        with Daemon() as daemon:
            daemon.wait_synced()
            with self.churn(6, "restart") as churn:
                cluster().run_script("kill-apiserver")
                churn.wait()
            cluster().run_script("start-apiserver")
            cluster().loader("churn", "-pods", "200", "-prefix", "restart", "-rate", "200", "-duration", "3s")
            daemon.wait_equal(cluster().versions)
            daemon.stop()

    def expire(self, restart, forget=lambda: None):
        """What the server did while the daemon stood still, and forgot before it went on."""
        names = [f"expire-{i}" for i in range(6)]
        for name in names[:4]:
            cluster().kubectl("create", "-f", "-", stdin=config_map(name, "default"))
        with Daemon("--namespace", "default", resource=("configmaps",)) as daemon:
            daemon.wait_synced()
            daemon.process.send_signal(signal.SIGSTOP)
            # The old connection goes first, or the changes would wait in its buffers.
            restart()
            cluster().kubectl("delete", "configmap", "-n", "default", names[0])
            cluster().kubectl("delete", "configmap", "-n", "default", names[1])
            cluster().kubectl("create", "-f", "-", stdin=config_map(names[1], "default", "recreated"))
            cluster().kubectl("apply", "-f", "-", stdin=config_map(names[2], "default", "changed"))
            cluster().kubectl("create", "-f", "-", stdin=config_map(names[4], "default"))
            forget()
            daemon.process.send_signal(signal.SIGCONT)
            daemon.wait_equal(lambda: cluster().versions("/api/v1/namespaces/default/configmaps"), "configmaps")
            types = {name: [event["type"] for event in daemon.events_of("default/" + name)] for name in names}
            self.assertIn("reason Expired", daemon.log_text())
            self.assertTrue(daemon.events_of("default/expire-0")[-1]["finalStateUnknown"])
            daemon.stop()
            return types

    def tearDown(self):
        cluster().kubectl("delete", "configmap", "-n", "default", "--ignore-not-found",
                          *[f"expire-{i}" for i in range(6)])

    def check_expired(self, types):
        self.assertEqual(types["expire-0"], ["ADDED", "DELETED"])
        self.assertEqual(types["expire-1"], ["ADDED", "DELETED", "ADDED"])
        self.assertEqual(types["expire-2"], ["ADDED", "MODIFIED"])
        self.assertEqual(types["expire-3"], ["ADDED"], "an unchanged object is not told again")
        self.assertEqual(types["expire-4"], ["ADDED"])
        self.assertEqual(types["expire-5"], [])

    def test_410_after_a_restart_with_writes(self):
        # The second restart forgets the writes behind the first.
        self.check_expired(self.expire(cluster().forget, cluster().forget))

    @needs_cluster("etcd's compaction")
    def test_410_after_a_compaction_without_watch_cache(self):
        def restart_without_cache():
            cluster().run_script("kill-apiserver")
            cluster().run_script("start-apiserver", KINF_APISERVER_FLAGS="--watch-cache=false")
        try:
            types = self.expire(restart_without_cache, lambda: cluster().loader("compact"))
        finally:
            cluster().run_script("restart-apiserver", KINF_APISERVER_FLAGS="")
        self.check_expired(types)


class Stop(unittest.TestCase):
    """Stop takes less than 200 ms in every state."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    @again_if_slow
    def test_while_connecting(self):
        # Accepts by the kernel's backlog and never answers: the TLS handshake hangs.
        with socket.create_server(("127.0.0.1", 0)) as listener:
            path = os.path.join(self.folder.name, "silent.kubeconfig")
            with open(cluster().kubeconfig(), encoding="utf-8") as file:
                text = file.read()
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(cluster().env["KINF_SERVER"],
                                        f"https://127.0.0.1:{listener.getsockname()[1]}"))
            with Daemon(kubeconfig=path, mode=STOP_MODE) as daemon:
                connection, _ = listener.accept()
                daemon.stop(STOP_SECONDS)
                connection.close()

    @again_if_slow
    def test_while_listing(self):
        with Proxy() as proxy:
            with Daemon(kubeconfig=proxy.kubeconfig(self.folder.name), mode=STOP_MODE) as daemon:
                # The listing line is logged when the request is about to go out.
                wait_until(lambda: "listing" in daemon.log_text() or proxy.n_connections >= 2, "a list under way")
                proxy.stall.set()
                daemon.stop(STOP_SECONDS)

    @again_if_slow
    def test_while_watching(self):
        with Daemon(mode=STOP_MODE) as daemon:
            daemon.wait_synced()
            daemon.stop(STOP_SECONDS)

    @again_if_slow
    def test_while_backing_off(self):
        with Proxy() as proxy:
            with Daemon(kubeconfig=proxy.kubeconfig(self.folder.name), mode=STOP_MODE) as daemon:
                daemon.wait_synced()
                proxy.refuse()
                wait_until(lambda: "refused" in daemon.log_text(), "a refused connection")
                daemon.stop(STOP_SECONDS)

    @needs_cluster("the roles of a new cluster")
    @again_if_slow
    def test_with_a_reader_that_does_not_read(self):
        command = [daemon_path(STOP_MODE), "--kubeconfig", cluster().kubeconfig(), "--resource",
                   "clusterroles.rbac.authorization.k8s.io", "--events", "json", "--events-objects"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            # A pipe holds 64 KiB, the roles are more; once it is full the printing handler is blocked.
            wait_until(lambda: is_full(process.stdout), "a full pipe")
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            timer = threading.Timer(60, process.kill)
            timer.start()
            code = process.wait()
            seconds = time.monotonic() - began
            timer.cancel()
            self.assertEqual(code, 0)
            if seconds > STOP_SECONDS:
                raise Slow(f"stop took {seconds:.3f} s")

    def test_a_reader_that_goes_away_ends_the_daemon(self):
        command = [daemon_path("asan"), "--kubeconfig", cluster().kubeconfig(), "--resource", "namespaces", "--events",
                   "json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            process.stdout.readline()
            process.stdout.close()
            cluster().make_namespace("for-a-closed-pipe")
            self.assertEqual(process.wait(PATIENCE), 1)
            self.assertIn("cannot write to standard output: Broken pipe", process.stderr.read())


def unread_bytes(pipe):
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


def is_full(pipe):
    """Whether a lot is in the pipe, and nothing is added any more: the writer waits."""
    before = unread_bytes(pipe)
    time.sleep(0.3)
    return before > 20000 and unread_bytes(pipe) == before


class Recovery(unittest.TestCase):
    def test_a_connection_that_breaks_costs_no_relist(self):
        with tempfile.TemporaryDirectory() as folder, Proxy() as proxy:
            with Daemon(kubeconfig=proxy.kubeconfig(folder), resource=("namespaces",)) as daemon:
                daemon.wait_synced()
                # An event shows that the watch's answer has begun. Until then libcurl itself repeats a request
                # on a connection that it kept, and nothing is to be seen.
                cluster().make_namespace("before-the-break")
                daemon.wait_types("before-the-break", "ADDED")
                proxy.drop()
                cluster().make_namespace("after-the-break")
                daemon.wait_types("after-the-break", "ADDED")
                self.assertEqual(sum("listed" in line for line in daemon.log_text().splitlines()), 1)
                self.assertIn("watching again resource=namespaces", daemon.log_text())
                daemon.stop()


if __name__ == "__main__":
    unittest.main()
