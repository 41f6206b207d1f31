"""The status page in a real browser: headless Chromium loads it from kinformerd, and the test reads what it shows.

    python3 -B tests/clients/page.py                    # the tests
    python3 -B tests/clients/page.py --shots FOLDER     # pictures of it: light, dark, narrow, in trouble, crowded

States that a healthy cluster cannot be made to show come from a server here that passes the daemon's page on and
makes its /debug/state up.
"""

import copy
import http.server
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

# The path has to be known first.
from harness import PATIENCE, Daemon, cluster, config_map, write_config  # pylint: disable=wrong-import-position
from test_serve import Served, Watch, ask, body_of  # pylint: disable=wrong-import-position

HTML = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
HOSTILE = "<script>document.title='owned'</script>\"'&<img src=x onerror=\"document.title='owned'\">"
SHOTS = [("light", 1300, 1000, "1"), ("dark", 1300, 1000, "0"), ("narrow", 500, 1700, "1")]
MAX_TYPES, MAX_WATCHERS = 200, 100  # that the page shows


class Browser:
    """Chromium with a profile of its own; it stops its clock once the page has asked twice."""

    def __init__(self, folder):
        self.command = [shutil.which("chromium") or "chromium", "--headless", "--no-sandbox", "--disable-gpu",
                        "--hide-scrollbars", "--user-data-dir=" + os.path.join(folder, "profile"),
                        "--virtual-time-budget=6000"]

    def run(self, *args):
        done = subprocess.run([*self.command, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)
        if done.returncode != 0:
            raise AssertionError(f"chromium: {done.stderr[-2000:]}")
        return done.stdout

    def dom(self, url):
        """What the page has become, as HTML, without its script and style."""
        return re.sub(r"<(script|style)>.*?</\1>", "", self.run("--dump-dom", url), count=2, flags=re.DOTALL)

    def shoot(self, url, path, width, height, scheme):
        self.run(f"--window-size={width},{height}", f"--blink-settings=preferredColorScheme={scheme}",
                 f"--screenshot={path}", url)


def rows_of(dom, table):
    """The rows of a table as dictionaries: heading -> text."""
    body = re.search(rf'<tbody id="{table}">(.*?)</tbody>', dom, re.DOTALL).group(1)
    return [{label: re.sub(r"<[^>]*>", "", cell)
             for label, cell in re.findall(r'<td data-label="([^"]*)"[^>]*>(.*?)</td>', row, re.DOTALL)}
            for row in re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)]


class MadeUp:
    """Passes a daemon's page on, and answers for its state with what `states` says: a dictionary, or None for no
    answer at all; the last one for ever."""

    def __init__(self, page, headers, *states):
        self.states = list(states)
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # pylint: disable=invalid-name
                body, kind = page, "text/html; charset=utf-8"
                if self.path == "/debug/state":
                    state = outer.states.pop(0) if len(outer.states) > 1 else outer.states[0]
                    if state is None:
                        return
                    body, kind = json.dumps(state).encode(), "application/json"
                self.send_response(200)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Content-Security-Policy", headers["content-security-policy"])
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def in_trouble(state):
    """A state with one type of each kind of trouble."""
    state = copy.deepcopy(state)
    one = state["informers"][0]

    def ill(name, word, reason, staleness_ms, **more):
        return {**copy.deepcopy(one), "name": name, "state": word, "reason": reason, "stalenessMs": staleness_ms, **more}

    state["informers"] += [
        ill("pods", "stale", "", 412000, objects=10050, storeBytes=147 << 20, historyBytes=61 << 20, queued=1311,
            queuedBytes=19 << 20, fieldSelector="spec.nodeName=worker-17"),
        ill("secrets", "forbidden", 'server 10.0.0.1:443 answered 403: secrets is forbidden: User "system:serviceaccount:'
            'default:kinformerd" cannot list resource "secrets" in API group "" at the cluster scope', None,
            objects=0, watchers=[], watcherCount=0),
        ill("jobs.batch", "backing off", "cannot connect to 10.0.0.1:443: Connection refused", 95000),
        ill("gadgets.test.kinformer.dev", "absent", "the server could not find the requested resource", None, objects=0),
        ill("services", "degraded", "shop/broken: JSON is broken at byte 17", 3000, quarantined=1),
        ill("nodes", "listing", "", None, objects=0)]
    state["informers"][0]["watchers"] = [
        {"id": 7, "client": "127.0.0.1:40312", "userAgent": "kubectl/v1.37.1 (linux/amd64) kubernetes/0123456",
         "namespace": "shop", "objectName": "", "labelSelector": "app in (web,api)", "fieldSelector": "",
         "ageMs": 7423000, "sentEvents": 182344, "lagEvents": 2210, "lagMs": 48210, "expired": False},
        {"id": 9, "client": "unix uid=1000 pid=4711", "userAgent": HOSTILE, "namespace": "", "objectName": "",
         "labelSelector": "", "fieldSelector": "", "ageMs": 90000, "sentEvents": 3, "lagEvents": 0, "lagMs": 0,
         "expired": False}]
    state["informers"][0]["watcherCount"] = 2
    return state


def crowded(state):
    """250 types, the first of them with 1,000 watchers."""
    state = copy.deepcopy(state)
    one, state["informers"] = state["informers"][0], []
    watcher = {"client": "127.0.0.1:40312", "userAgent": "agent/1.0", "namespace": "", "objectName": "",
               "labelSelector": "", "fieldSelector": "", "ageMs": 1000, "sentEvents": 5, "lagEvents": 0, "lagMs": 0,
               "expired": False}
    for i in range(250):
        state["informers"].append({**one, "name": f"things{i:03}.example.org", "watchers": [], "watcherCount": 0})
    state["informers"][0].update(watchers=[{**watcher, "id": i, "lagEvents": i, "lagMs": i} for i in range(1000)],
                                 watcherCount=1000)
    return state


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.browser = Browser(cls.folder.name)
        cluster().make_namespace("page")
        for i in range(7):
            cluster().kubectl("apply", "-f", "-", stdin=config_map(f"c{i}", "page"))
        cls.served = Served(resource=("configmaps", "pods", "secrets", "deployments.apps")).__enter__()
        cls.url = f"http://{cls.served.address}/"
        _, cls.headers, cls.page = ask(cls.served, "/", headers=HTML)

    @classmethod
    def tearDownClass(cls):
        try:
            cls.served.daemon.stop()
        finally:
            cls.served.__exit__(None, None, None)
            cls.folder.cleanup()

    def made_up(self, *states):
        return MadeUp(self.page, self.headers, *states)

    def test_types_and_objects_are_shown(self):
        dom = self.browser.dom(self.url)
        types = {row["Type"]: row for row in rows_of(dom, "types")}
        self.assertEqual(set(types), {"configmaps", "pods", "secrets", "deployments.apps"})
        self.assertEqual(int(types["configmaps"]["Objects"]), len(cluster().versions("/api/v1/configmaps")))
        self.assertEqual({row["State"] for row in types.values()}, {"live"})
        self.assertTrue(all(row["Freshness"].startswith("fresh") for row in types.values()), types)
        self.assertIn("not served", types["secrets"]["Notes"])
        self.assertRegex(dom, r"<dt>Types</dt><dd>4</dd>")
        self.assertRegex(dom, r'id="answer"[^>]*>answers<')

    def test_watchers_and_events_of_hostile_names_are_text(self):
        with Watch(self.served, "/api/v1/configmaps?watch=1", {"User-Agent": HOSTILE}) as watch:
            cluster().kubectl("apply", "-f", "-", stdin=config_map("news", "page"))
            watch.until(lambda event: event["object"]["metadata"]["name"] == "news")
            dom = self.browser.dom(self.url)
        self.assertIn("<title>kinformerd</title>", dom)
        self.assertNotIn("<img", dom)
        client = next(row["Client"] for row in rows_of(dom, "watchers") if "owned" in row["Client"])
        self.assertIn("&lt;script&gt;document.title='owned'&lt;/script&gt;", client)
        self.assertIn(("ADDED", "page/news"), [(row["Event"], row["Object"]) for row in rows_of(dom, "events")])

    def test_a_type_that_is_refused_is_shown_as_forbidden_with_its_reason(self):
        kubeconfig = os.path.join(self.folder.name, "refused")
        config = write_config(self.folder.name, "configmaps")
        with Daemon("--listen", "127.0.0.1:0", "--write-kubeconfig", kubeconfig, config=config,
                    kubeconfig=cluster().kubeconfig("token")) as daemon:
            daemon.wait_synced()
            write_config(self.folder.name, "configmaps", "secrets")
            daemon.process.send_signal(signal.SIGHUP)
            daemon.wait_logged("403")
            with open(kubeconfig, encoding="utf-8") as file:
                url = re.search(r"server: (\S+)", file.read()).group(1)
            types = {row["Type"]: row for row in rows_of(self.browser.dom(url), "types")}
            daemon.stop()
        self.assertEqual((types["secrets"]["State"], types["secrets"]["Freshness"]), ("forbidden", "no contact yet"))
        self.assertIn("secrets is forbidden", types["secrets"]["Notes"])
        self.assertEqual(types["configmaps"]["State"], "live")

    def test_troubles_are_told_in_words_and_come_first(self):
        with self.made_up(in_trouble(body_of(self.served, "/debug/state"))) as made_up:
            dom = self.browser.dom(made_up.url)
        types = rows_of(dom, "types")
        self.assertEqual({row["State"] for row in types[:6]},
                         {"stale", "forbidden", "backing off", "absent", "degraded", "listing"})
        by_name = {row["Type"]: row for row in types if row["State"] != "live"}
        self.assertIn("stale, silent for 6 min", by_name["pods"]["Freshness"])
        self.assertIn("only spec.nodeName=worker-17", by_name["pods"]["Notes"])
        self.assertIn("2,210 events, 48 s", [row["Behind"] for row in rows_of(dom, "watchers")])

    def test_of_a_crowd_some_are_shown_and_the_rest_counted(self):
        with self.made_up(crowded(body_of(self.served, "/debug/state"))) as made_up:
            dom = self.browser.dom(made_up.url)
        self.assertEqual(len(rows_of(dom, "types")), MAX_TYPES)
        self.assertIn("50 more types are not shown.", dom)
        watchers = rows_of(dom, "watchers")
        self.assertEqual(len(watchers), MAX_WATCHERS)
        self.assertIn("999 events", watchers[0]["Behind"])
        self.assertIn("900 more watchers", dom)

    def test_a_daemon_that_is_away_is_told_with_the_time_of_its_last_answer(self):
        with self.made_up(body_of(self.served, "/debug/state"), None) as made_up:
            dom = self.browser.dom(made_up.url)
        self.assertRegex(dom, r'id="answer"[^>]*>no answer since \d\d:\d\d:\d\d: not reached; what follows is of then<')
        self.assertIn("configmaps", {row["Type"] for row in rows_of(dom, "types")})


def take_shots(folder):
    os.makedirs(folder, exist_ok=True)
    PageTest.setUpClass()
    try:
        state = body_of(PageTest.served, "/debug/state")
        pictures = {"real": [state], "trouble": [in_trouble(state)], "crowd": [crowded(state)], "away": [state, None]}
        for name, states in pictures.items():
            for shot, width, height, scheme in SHOTS:
                with MadeUp(PageTest.page, PageTest.headers, *states) as made_up:
                    PageTest.browser.shoot(made_up.url, os.path.join(folder, f"{name}-{shot}.png"), width, height, scheme)
    finally:
        PageTest.tearDownClass()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--shots"]:
        take_shots(sys.argv[2])
    else:
        unittest.main(verbosity=2)
