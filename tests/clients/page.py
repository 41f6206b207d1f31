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
import signal
import sys
import tempfile
import threading
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

# The path has to be known first.
from browser import Browser  # pylint: disable=wrong-import-position
from harness import Daemon, cluster, config_map, write_config  # pylint: disable=wrong-import-position
from test_serve import Served, Watch, ask, body_of  # pylint: disable=wrong-import-position

HTML = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
HOSTILE = "<script>document.title='owned'</script>\"'&<img src=x onerror=\"document.title='owned'\">"
SHOTS = [("light", 1300, False), ("dark", 1300, True), ("narrow-light", 400, False), ("narrow-dark", 400, True)]
MAX_TYPES, MAX_WATCHERS = 200, 100  # that the page shows
LONG_NAME = "validatingadmissionpolicybindings.internal-platform.observability.eu-central.example.org"
LONG_KEY = "team-payments-settlement-reconciliation/settlement-batch-reconciler-canary-7c9d8f6b5d-x2x7q.eu-central.example"

# The rows of a table as objects: heading -> text.
ROWS = """(selector) => [...document.querySelectorAll(selector + " > tr:not(.panel)")].map((row) =>
    Object.fromEntries([...row.cells].map((cell) => [cell.dataset.label, cell.textContent])))"""

# Words of names and texts that are on more than one line. A word ends where a name may break.
BROKEN = """() => {
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode());) {
    if (!node.parentElement.closest("td, dd, li, dt, figcaption, .range") || !node.parentElement.checkVisibility())
      continue;
    for (const word of node.data.matchAll(/[^\\s-]+-?/g)) {
      const range = document.createRange();
      range.setStart(node, word.index);
      range.setEnd(node, word.index + word[0].length);
      if (new Set([...range.getClientRects()].filter((box) => box.width > 0).map((box) => Math.round(box.top))).size > 1)
        found.push(word[0]);
    }
  }
  return found;
}"""

# How well texts and curves can be told from what is behind them, as WCAG has it: 1 to 21.
CONTRAST = """(selector, property) => {
  const light = (color) => { const [r, g, b] = color.match(/[0-9.]+/g).map((n) => n / 255)
    .map((n) => n <= 0.04045 ? n / 12.92 : ((n + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const node = document.querySelector(selector);
  let back = node;
  while (getComputedStyle(back).backgroundColor === "rgba(0, 0, 0, 0)")
    back = back.parentElement;
  const pair = [getComputedStyle(node)[property], getComputedStyle(back).backgroundColor].map(light).sort((a, b) => b - a);
  return (pair[0] + 0.05) / (pair[1] + 0.05);
}"""


def an_hour(n=361, gap=(), restart=None):
    """Samples up to now: 5 events a second, and then 50; none at the places of `gap`; the counters begin again at
    `restart`."""
    hour = {"everyMs": 10000, "ageMs": [], "events": [], "requestsCache": [], "requestsUpstream": [], "requestsSelf": [],
            "residentBytes": [], "lagMs": [], "stalenessMs": []}
    for i in range(n):
        if i in gap:
            continue
        since = i - restart if restart is not None and i >= restart else i
        row = {"ageMs": (n - 1 - i) * 10000 + 700, "events": 50 * since + (450 * (since - 200) if since > 200 else 0),
               "requestsCache": 120 * since + 5 * (since % 17), "requestsUpstream": 11 * since, "requestsSelf": 2 * since,
               "residentBytes": (40 << 20) + (i % 60 << 16), "lagMs": 40 if i % 50 else 1800,
               "stalenessMs": 1000 * (i * 10 % 60) if i else None}
        for key, value in row.items():
            hour[key].append(value)
    return hour


class MadeUp:
    """Passes a daemon's page on, and answers for its state with what `states` says: a dictionary, or None for no
    answer at all; the last one for ever."""

    def __init__(self, page, headers, *states):
        self.states = list(states)
        self.targets = []  # that its script asked for
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # pylint: disable=invalid-name
                body, kind = page, "text/html; charset=utf-8"
                if self.path.startswith("/debug/state"):
                    outer.targets.append(self.path)
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

    state["informers"] = [one] + [other for other in state["informers"] if other["name"] == "deployments.apps"]
    state["lastHour"] = an_hour(260, gap=range(100, 160))
    state["informers"] += [
        ill("pods", "stale", "", 412000, objects=10050, storeBytes=147 << 20, historyBytes=61 << 20, queued=1311,
            queuedBytes=19 << 20, fieldSelector="spec.nodeName=worker-17"),
        ill("secrets", "forbidden", 'server 10.0.0.1:443 answered 403: secrets is forbidden: User "system:serviceaccount:'
            'default:kinformerd" cannot list resource "secrets" in API group "" at the cluster scope', None,
            objects=0, watchers=[], watcherCount=0),
        ill(LONG_NAME, "live", "", 1000, labelSelector="app.kubernetes.io/part-of in (settlement,reconciliation),tier!=canary",
            namespace="team-payments-settlement-reconciliation"),
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
    state["informers"][0]["lastErrors"] = [
        {"first": state["started"], "last": state["time"], "times": 14,
         "message": "cannot connect to very-long-name-of-a-load-balancer.eu-central-1.elb.example.org:6443: Connection refused"},
        {"first": state["time"], "last": state["time"], "times": 1, "message": "too old resource version: 4711 (8123)"}]
    state["recentEvents"] = [{"time": state["time"], "informer": LONG_NAME, "type": "MODIFIED", "key": LONG_KEY,
                              "resourceVersion": "184467440737"}] * 3 + state["recentEvents"]
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
            cls.browser.close()
            cls.served.daemon.stop()
        finally:
            cls.served.__exit__(None, None, None)
            cls.folder.cleanup()

    def made_up(self, *states):
        return MadeUp(self.page, self.headers, *states)

    def state(self):
        return body_of(self.served, "/debug/state?lastHour")

    def open(self, url, **how):
        """The page, once it shows something."""
        page = self.browser.page(url, **how)
        page.wait("document.querySelectorAll('#types tr').length > 0")
        return page

    def rows(self, page, selector="#types"):
        return page.js(f"({ROWS})({json.dumps(selector)})")

    def open_type(self, page, name):
        """By the keyboard; returns a selector of what it opened."""
        self.assertTrue(page.js(f"""(() => {{
            const found = [...document.querySelectorAll('#types button')].find((one) => one.textContent === {json.dumps(name)});
            found.focus(); return found === document.activeElement; }})()"""))
        page.press("Enter", "\r")
        panel = "#" + page.js(f"CSS.escape({json.dumps('type-' + name)})")
        page.wait(f"!document.querySelector({json.dumps(panel)}).hidden")
        page.wait(f"document.querySelector({json.dumps(panel + ' dd')}) && "
                  f"document.querySelector({json.dumps(panel + ' .no-errors')}).textContent !== 'asking'")
        return panel

    # --- what it says ---

    def test_types_and_objects_are_shown(self):
        with self.open(self.url) as page:
            types = {row["Type"]: row for row in self.rows(page)}
            self.assertEqual(set(types), {"configmaps", "pods", "secrets", "deployments.apps"})
            self.assertEqual(int(types["configmaps"]["Objects"]), len(cluster().versions("/api/v1/configmaps")))
            self.assertEqual({row["State"] for row in types.values()}, {"live"})
            self.assertTrue(all(row["Freshness"].startswith("fresh") for row in types.values()), types)
            self.assertIn("not served", types["secrets"]["Notes"])
            self.assertTrue(page.text("#totals").startswith("Types4all live"))
            self.assertEqual(page.text("#answer"), "answers")

    def test_watchers_and_events_of_hostile_names_are_text(self):
        with Watch(self.served, "/api/v1/configmaps?watch=1", {"User-Agent": HOSTILE}) as watch, self.open(self.url) as page:
            cluster().kubectl("apply", "-f", "-", stdin=config_map("news", "page"))
            watch.until(lambda event: event["object"]["metadata"]["name"] == "news")
            panel = self.open_type(page, "configmaps")
            client = page.wait(f"({ROWS})({json.dumps(panel + ' tbody')}).map((row) => row.Client)"
                               ".find((name) => name.includes('owned'))")
            self.assertTrue(client.startswith(HOSTILE[:100]), client)
            page.wait(f"({ROWS})('#events').some((row) => row.Event === 'ADDED' && row.Object === 'page/news')")
            self.assertEqual(page.js("document.title"), "kinformerd")
            self.assertEqual(page.js("document.querySelectorAll('img').length"), 0)

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
            with self.open(url) as page:
                types = {row["Type"]: row for row in self.rows(page)}
                panel = self.open_type(page, "secrets")
                self.assertIn("secrets is forbidden", page.wait(f"document.querySelector('{panel} li').textContent"))
            daemon.stop()
        self.assertEqual((types["secrets"]["State"], types["secrets"]["Freshness"]), ("forbidden", "no contact yet"))
        self.assertIn("secrets is forbidden", types["secrets"]["Notes"])
        self.assertEqual(types["configmaps"]["State"], "live")

    def test_troubles_are_told_in_words_and_come_first(self):
        with self.made_up(in_trouble(self.state())) as made_up, self.open(made_up.url) as page:
            types = self.rows(page)
            panel = self.open_type(page, "configmaps")
            behind = [row["Behind"] for row in self.rows(page, panel + " tbody")]
        self.assertEqual({row["State"] for row in types[:6]},
                         {"stale", "forbidden", "backing off", "absent", "degraded", "listing"})
        by_name = {row["Type"]: row for row in types if row["State"] != "live"}
        self.assertIn("stale, silent for 6 min", by_name["pods"]["Freshness"])
        self.assertIn("only spec.nodeName=worker-17", by_name["pods"]["Notes"])
        self.assertEqual(behind, ["2,210 events, 48 s", "up to date"])

    def test_a_daemon_that_is_away_is_told_with_the_time_of_its_last_answer(self):
        with self.made_up(self.state(), None) as made_up, self.open(made_up.url) as page:
            told = page.wait("document.body.className === 'away' && document.getElementById('answer').textContent")
            self.assertRegex(told, r"^no answer since \d\d:\d\d:\d\d: not reached; what follows is of then$")
            self.assertIn("configmaps", {row["Type"] for row in self.rows(page)})

    # --- the last hour ---

    def curve(self, page, name):
        return page.js(f"""(() => {{
            const figure = [...document.querySelectorAll('figure')].find((one) => one.textContent.startsWith({json.dumps(name)}));
            const paths = (kind) => [...figure.querySelectorAll(kind)].map((path) => path.getAttribute('d'));
            return {{ title: figure.querySelector('svg[role=img] > title').textContent, now: figure.querySelector('b').textContent,
                      range: figure.querySelector('.range').textContent, unknown: paths('.unknown')[0], lines: paths('.line'),
                      scale: [...figure.querySelectorAll('.scale span')].map((one) => one.textContent),
                      times: [...figure.querySelectorAll('.times span')].map((one) => one.textContent) }}; }})()""")

    def test_a_daemon_that_runs_draws_its_last_minute(self):
        with self.open(self.url) as page:
            page.wait("document.querySelectorAll('figure').length === 5")
            page.wait("[...document.querySelectorAll('.plot')].every((plot) => /L/.test(plot.querySelector('.line').getAttribute('d')))")
            memory = self.curve(page, "Memory")
            self.assertRegex(memory["now"], r"^[\d.]+\u00a0MiB$")
            self.assertIn("grey is what nothing is known of", page.text("#curves-more"))

    def test_curves_begin_at_nothing_and_say_what_they_show(self):
        with self.made_up({**self.state(), "lastHour": an_hour()}) as made_up, self.open(made_up.url) as page:
            events, memory, lag, stale = (self.curve(page, name) for name in ("Events", "Memory", "Lag", "Staleness"))
            requests = self.curve(page, "Requests")
        self.assertEqual((events["now"], events["range"], events["scale"]), ("50/s", "min 5/s, max 50/s", ["50/s", "25/s", "0/s"]))
        self.assertEqual(events["title"], "Events, the last hour: now 50/s, min 5/s, max 50/s")
        self.assertEqual((memory["scale"][0], memory["scale"][2]), ("50\u00a0MiB", "0\u00a0B"))
        self.assertEqual((lag["now"], lag["scale"]), ("40 ms", ["2 s", "1 s", "0 ms"]))
        self.assertEqual(stale["range"], "min 0 ms, max 50 s")
        self.assertIn("API server 1.1/s (min 1.1/s, max 1.1/s)", requests["range"])
        self.assertEqual(len([line for line in requests["lines"] if line]), 3)
        self.assertEqual([curve["unknown"] for curve in (events, memory, lag)], ["", "", ""])
        self.assertEqual(events["times"][2], "now")
        self.assertRegex(" ".join(events["times"][:2]), r"^\d\d:\d\d \d\d:\d\d$")
        for x, y in re.findall(r"([-\d.]+) ([-\d.]+)", "".join(curve["lines"][0] for curve in (events, memory, lag, stale))):
            self.assertTrue(0 <= float(x) <= 3600 and 0 <= float(y) <= 100, (x, y))

    def test_what_is_not_known_is_a_gap(self):
        hours = {"late": (an_hour(240), 1, 1), "gap": (an_hour(gap=range(100, 160)), 2, 1), "restart": (an_hour(restart=180), 2, 0),
                 "nothing": (an_hour(0), 0, 1), "one": (an_hour(1), 0, 1)}
        for name, (hour, n_stretches, n_unknown) in hours.items():
            with self.subTest(name), self.made_up({**self.state(), "lastHour": hour}) as made_up, self.open(made_up.url) as page:
                events = self.curve(page, "Events")
                self.assertEqual((events["lines"][0] or "").count("M"), n_stretches)
                self.assertEqual(events["unknown"].count("M"), n_unknown)
                self.assertEqual(events["now"] == "no data", n_stretches == 0)

    # --- what is looked at ---

    def test_a_filter_leaves_what_has_all_its_words(self):
        with self.made_up(in_trouble(self.state())) as made_up, self.open(made_up.url) as page:
            page.js("document.getElementById('filter').focus()")
            page.type("apps")
            self.assertEqual({row["Type"] for row in self.rows(page)}, {"deployments.apps"})
            self.assertEqual(page.text("#found"), "1 of 9")
            page.js("document.getElementById('filter').select()")
            page.type("BACKING jobs")
            self.assertEqual({row["Type"] for row in self.rows(page)}, {"jobs.batch"})
            n_asked = len(made_up.targets)
            page.wait("document.activeElement.id === 'filter'")
            while len(made_up.targets) < n_asked + 2:
                page.wait("true")
            self.assertEqual({row["Type"] for row in self.rows(page)}, {"jobs.batch"})
            page.js("document.getElementById('filter').select()")
            page.type("nothing-like-that")
            self.assertEqual((self.rows(page), page.text("#types-more")), ([], "None is like that."))

    def test_a_type_opens_to_its_scope_errors_and_watchers(self):
        with self.made_up(in_trouble(self.state())) as made_up, self.open(made_up.url) as page:
            button = "[...document.querySelectorAll('#types button')].find((one) => one.textContent === 'configmaps')"
            panel = self.open_type(page, "configmaps")
            self.assertEqual(page.js(f"[{button}.getAttribute('aria-expanded'), {button}.getAttribute('aria-controls')]"),
                             ["true", "type-configmaps"])
            facts = page.text(panel + " dl")
            errors = page.js(f"[...document.querySelectorAll('{panel} li')].map((one) => one.textContent)")
            self.assertIn("Resourcev1/configmaps", facts)
            self.assertRegex(errors[0], r"^\d\d:\d\d:\d\d, 14 times since \d\d:\d\d:\d\d: cannot connect to ")
            self.assertRegex(errors[1], r"^\d\d:\d\d:\d\d: too old resource version")
            self.assertEqual(len(self.rows(page, panel + " tbody")), 2)
            page.press("Enter", "\r")
            self.assertTrue(page.js(f"document.querySelector('{panel}').hidden && {button} === document.activeElement"))
            scope = page.text(self.open_type(page, LONG_NAME) + " dl")
            self.assertIn("Namespaceteam-payments-settlement-reconciliation", scope)
            self.assertIn("Labelsapp.kubernetes.io/part-of in", scope)

    def test_only_what_is_shown_is_asked_for_and_the_hour_rarely(self):
        state = crowded(self.state())
        with self.made_up(state) as made_up, self.open(made_up.url) as page:
            self.assertEqual(made_up.targets[0], "/debug/state?details=&lastHour")
            self.open_type(page, "things001.example.org")
            self.open_type(page, "things000.example.org")
            n_before = len(made_up.targets)
            while len(made_up.targets) < n_before + 5:
                page.wait("true")
            asked = made_up.targets[n_before - 1:n_before + 5]
        self.assertEqual(asked[0], asked[5])
        self.assertEqual(asked[0], "/debug/state?details=&details=things001.example.org&details=things000.example.org&lastHour")
        self.assertEqual(set(asked[1:5]), {"/debug/state?details=&details=things001.example.org"})

    def test_of_a_crowd_some_are_shown_and_the_rest_counted(self):
        with self.made_up(crowded(self.state())) as made_up, self.open(made_up.url) as page:
            self.assertEqual(len(self.rows(page)), MAX_TYPES)
            self.assertEqual(page.text("#types-more"), "50 more types are not shown.")
            panel = self.open_type(page, "things000.example.org")
            watchers = self.rows(page, panel + " tbody")
            self.assertEqual(len(watchers), MAX_WATCHERS)
            self.assertIn("999 events", watchers[0]["Behind"])
            self.assertIn("900 more watchers", page.text(panel + " .more-watchers"))

    def test_a_refresh_touches_nothing_that_stays_and_keeps_the_focus(self):
        state = in_trouble(self.state())
        other = copy.deepcopy(state)
        other["informers"][0]["state"] = "stale"  # it moves up
        with self.made_up(state, state, other) as made_up, self.open(made_up.url) as page:
            panel = self.open_type(page, "configmaps")
            page.js(f"""(() => {{
                window.kept = [...document.querySelectorAll('#types > tr, #types button, figure, svg, path, {panel} li, #events td')];
                window.places = new MutationObserver((changes) => window.changes = (window.changes || 0) + changes.length);
                window.places.observe(document.getElementById('curves'), {{ subtree: true, childList: true, attributes: true }}); }})()""")
            page.wait(f"({ROWS})('#types').find((row) => row.Type === 'configmaps').State === 'stale'")
            self.assertEqual(page.js("window.kept.filter((node) => !node.isConnected).length"), 0)
            self.assertEqual(page.js("document.activeElement.textContent"), "configmaps")
            self.assertFalse(page.js("window.changes || 0"))
            self.assertFalse(page.js(f"document.querySelector('{panel}').hidden"))

    # --- how it looks ---

    def test_long_names_do_not_break_in_a_word_and_nothing_is_cut_off(self):
        with self.made_up(in_trouble(self.state())) as made_up:
            for name, width, dark in SHOTS:
                with self.subTest(name), self.open(made_up.url, width=width, dark=dark) as page:
                    for one in ("configmaps", LONG_NAME):
                        self.open_type(page, one)
                    page.wait("document.querySelectorAll('figure').length === 5")
                    self.assertEqual(page.js(f"({BROKEN})()"), [])
                    self.assertEqual(page.js("[...document.querySelectorAll('.panel')].filter((one) => one.checkVisibility()).length"), 2)
                    self.assertLessEqual(page.js("document.documentElement.scrollWidth"), width)
                    self.assertEqual(page.js("""[...document.querySelectorAll('.frame')].filter((frame) =>
                        frame.checkVisibility() && frame.scrollWidth > frame.clientWidth + 1).length"""), 0)

    def test_it_can_be_read_by_day_and_by_night(self):
        backs = set()
        with self.made_up(in_trouble(self.state())) as made_up:
            for dark in (False, True):
                with self.open(made_up.url, dark=dark) as page:
                    page.wait("document.querySelectorAll('figure').length === 5")
                    backs.add(page.js("getComputedStyle(document.body).backgroundColor"))
                    for selector in ("h1", ".faint", "dt", "th", ".range", ".scale", ".good", ".warn", ".bad", ".busy", "button"):
                        self.assertGreaterEqual(page.js(f"({CONTRAST})({json.dumps(selector)}, 'color')"), 4.5, (selector, dark))
                    for selector in (".line.first", ".line.second", ".line.third"):
                        self.assertGreaterEqual(page.js(f"({CONTRAST})({json.dumps(selector)}, 'stroke')"), 3, (selector, dark))
        self.assertEqual(len(backs), 2)


def take_shots(folder):
    os.makedirs(folder, exist_ok=True)
    PageTest.setUpClass()
    try:
        test = PageTest()
        state = test.state()
        pictures = {"real": [state], "trouble": [in_trouble(state)], "crowd": [crowded(state)], "away": [state, None]}
        for name, states in pictures.items():
            for shot, width, dark in SHOTS:
                with MadeUp(PageTest.page, PageTest.headers, *states) as made_up, \
                        test.open(made_up.url, width=width, dark=dark) as page:
                    if name == "trouble":
                        test.open_type(page, "configmaps")
                    if name == "away":
                        page.wait("document.body.className === 'away'")
                    page.shoot(os.path.join(folder, f"{name}-{shot}.png"))
    finally:
        PageTest.tearDownClass()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--shots"]:
        take_shots(sys.argv[2])
    else:
        unittest.main(verbosity=2)
