"""How long streams stay dead at the default times, and how soon a server that answers for the API server says that
it is not ready: some eight minutes, one line of figures for each case.

The integration tests show the same with shorter times, on each run; this shows the times that users get.
"""

import os
import signal
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))

from harness import Daemon, Proxy, cluster, config_map, wait_until  # pylint: disable=wrong-import-position

LIMIT_SECONDS = 180
# maxStaleness, and its age is that of the last byte: at most a bookmark's 60 s before the stop.
UNREADY_SECONDS = (120, 185)
SILENT = 'event="silent" error='


def put(name):
    cluster().kubectl("create", "-f", "-", stdin=config_map(name, "default"))


class Served:
    """The address of a daemon that listens, and what its /readyz says."""

    def __init__(self, folder):
        self.kubeconfig = os.path.join(folder, "served.kubeconfig")
        self.options = ("--listen", "127.0.0.1:0", "--write-kubeconfig", self.kubeconfig)

    def readyz(self):
        with open(self.kubeconfig, encoding="utf-8") as file:
            address = file.read().split("http://")[1].split()[0]
        try:
            with urllib.request.urlopen(f"http://{address}/readyz?verbose", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as answer:
            with answer:
                return answer.code, answer.read().decode()

    def wait_unready(self, daemon):
        """Until it fails, which is by the name of the resource; nothing but health is asked meanwhile."""
        wait_until(lambda: daemon.check() or self.readyz()[0] == 500, "not ready", 2 * LIMIT_SECONDS)
        text = self.readyz()[1]
        if "[-]configmaps:default failed: stale" not in text or "[+]discovery ok" not in text:
            raise AssertionError(text)


def measure(case, daemon, kill, revive, served=None):
    """The time from the death of the stream to its end on our side, whether it was resumed in place, and of a server
    the times until it was not ready and, from the revival on, ready again."""
    daemon.wait_synced()
    put(case + "-before")
    daemon.wait_types(f"default/{case}-before", "ADDED")
    if served is not None and served.readyz()[0] != 200:
        raise AssertionError(served.readyz()[1])
    silences = daemon.count_log(SILENT)
    loud = daemon.count_loud()
    kill()
    began = time.monotonic()
    wait_until(lambda: daemon.check() or daemon.count_log(SILENT) > silences, "the silence is found", 2 * LIMIT_SECONDS)
    seconds = time.monotonic() - began
    good = seconds <= LIMIT_SECONDS
    figures = ""
    if served is not None:
        served.wait_unready(daemon)
        unready = time.monotonic() - began
        good &= UNREADY_SECONDS[0] <= unready <= UNREADY_SECONDS[1]
        figures = f"unready_s={unready:.1f} "
    loud = daemon.count_loud() - loud
    revive()
    revived = time.monotonic()
    if served is not None:
        wait_until(lambda: daemon.check() or served.readyz()[0] == 200, "ready", 2 * LIMIT_SECONDS)
        figures += f"ready_again_s={time.monotonic() - revived:.1f} "
    put(case + "-after")
    daemon.wait_types(f"default/{case}-after", "ADDED", patience=2 * LIMIT_SECONDS)
    resumed = time.monotonic() - began
    lists = daemon.count_log("listed resource")
    print(f"case={case} found_s={seconds:.1f} resumed_s={resumed:.1f} limit_s={LIMIT_SECONDS} {figures}lines={loud} "
          f"lists={lists}", flush=True)
    daemon.stop()
    return good and lists == 1


def main():
    with tempfile.TemporaryDirectory() as folder, Proxy() as proxy:
        with Daemon("--namespace", "default", kubeconfig=proxy.kubeconfig(folder), resource=("configmaps",)) as daemon:
            good = measure("proxy", daemon, proxy.lose_server, lambda: None)
    with tempfile.TemporaryDirectory() as folder:
        served = Served(folder)
        with Daemon("--namespace", "default", *served.options, resource=("configmaps",)) as daemon:
            try:
                good &= measure("hang", daemon, lambda: cluster().signal_apiserver(signal.SIGSTOP),
                                lambda: cluster().signal_apiserver(signal.SIGCONT), served)
            finally:
                cluster().signal_apiserver(signal.SIGCONT)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
