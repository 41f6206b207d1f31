"""How long streams stay dead at the default times: some seven minutes, one line of figures for each case.

The integration tests show the same with shorter times, on each run; this shows the times that users get.
"""

import os
import signal
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration"))

from harness import Daemon, Proxy, cluster, config_map, wait_until  # pylint: disable=wrong-import-position

LIMIT_SECONDS = 180
SILENT = 'event="silent" error='


def put(name):
    cluster().kubectl("create", "-f", "-", stdin=config_map(name, "default"))


def measure(case, daemon, kill, revive):
    """The time from the death of the stream to its end on our side, and whether it was resumed in place."""
    daemon.wait_synced()
    put(case + "-before")
    daemon.wait_types(f"default/{case}-before", "ADDED")
    silences = daemon.count_log(SILENT)
    loud = daemon.count_loud()
    kill()
    began = time.monotonic()
    wait_until(lambda: daemon.check() or daemon.count_log(SILENT) > silences, "the silence is found", 2 * LIMIT_SECONDS)
    seconds = time.monotonic() - began
    loud = daemon.count_loud() - loud
    revive()
    put(case + "-after")
    daemon.wait_types(f"default/{case}-after", "ADDED", patience=2 * LIMIT_SECONDS)
    resumed = time.monotonic() - began
    lists = daemon.count_log("listed resource")
    print(f"case={case} found_s={seconds:.1f} resumed_s={resumed:.1f} limit_s={LIMIT_SECONDS} lines={loud} "
          f"lists={lists}", flush=True)
    daemon.stop()
    return seconds <= LIMIT_SECONDS and lists == 1


def main():
    with tempfile.TemporaryDirectory() as folder, Proxy() as proxy:
        with Daemon("--namespace", "default", kubeconfig=proxy.kubeconfig(folder), resource=("configmaps",)) as daemon:
            good = measure("proxy", daemon, proxy.lose_server, lambda: None)
    with Daemon("--namespace", "default", resource=("configmaps",)) as daemon:
        try:
            good &= measure("hang", daemon, lambda: cluster().signal_apiserver(signal.SIGSTOP),
                            lambda: cluster().signal_apiserver(signal.SIGCONT))
        finally:
            cluster().signal_apiserver(signal.SIGCONT)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
