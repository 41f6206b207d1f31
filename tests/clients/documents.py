"""What `make docs` built, in a real browser: nothing of Markdown is left over, pictures are there, and it fits, on a phone, too.

    python3 -B tests/clients/documents.py               # the tests; needs build/docs
    python3 -B tests/clients/documents.py --pictures    # docs/pictures: the status page, of the tutorial and in trouble
    python3 -B tests/clients/documents.py --shots FOLDER
"""

import glob
import http.server
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

# The path has to be known first.
import page  # pylint: disable=wrong-import-position
from browser import Browser  # pylint: disable=wrong-import-position
from harness import ROOT  # pylint: disable=wrong-import-position
from test_serve import Served  # pylint: disable=wrong-import-position

BUILT = os.path.join(ROOT, "build", "docs")
PICTURES = os.path.join(ROOT, "docs", "pictures")
WIDTHS = (1300, 400)

# What a reader would stumble over: the text outside of code.
PROSE = """() => { const body = document.querySelector('[role=main]').cloneNode(true);
  body.querySelectorAll('pre, code').forEach((one) => one.remove()); return body.textContent; }"""
LOST_PICTURES = "[...document.images].filter((one) => one.naturalWidth === 0).map((one) => one.src)"
LOST_ANCHORS = """[...document.querySelectorAll('[role=main] a[href^="#"]')].map((one) => one.getAttribute('href').slice(1))
  .filter((id) => id !== '' && document.getElementById(id) === null)"""


def built_pages():
    return sorted(path for path in glob.glob(BUILT + "/**/*.html", recursive=True)
                  if os.path.basename(path) not in ("404.html", "search.html"))


class Quiet(http.server.SimpleHTTPRequestHandler):
    def __init__(self, *args):
        super().__init__(*args, directory=BUILT)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


class DocumentsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # Not as files: their scripts' errors would have no text.
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.addClassCleanup(cls.server.server_close)
        cls.addClassCleanup(cls.server.shutdown)
        cls.browser = Browser(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.addClassCleanup(cls.browser.close)

    def open(self, path, width):
        url = f"http://127.0.0.1:{self.server.server_port}/{os.path.relpath(path, BUILT)}"
        opened = self.browser.page(url, width=width)
        opened.wait("document.readyState === 'complete' && document.querySelector('[role=main]') !== null")
        return opened

    def test_each_page_can_be_read(self):
        self.assertGreater(len(built_pages()), 40, "make docs")
        for path in built_pages():
            with self.subTest(os.path.relpath(path, BUILT)), self.open(path, WIDTHS[0]) as opened:
                self.assertGreaterEqual(opened.js("document.querySelectorAll('[role=main] h1').length"), 1)
                prose = opened.js(f"({PROSE})()")
                for left_over in ("](", "<!--", "|---", "```", "**"):
                    self.assertNotIn(left_over, prose)
                self.assertEqual(opened.js(LOST_PICTURES), [])
                self.assertEqual(opened.js(LOST_ANCHORS), [])

    def test_each_page_fits(self):
        for width in WIDTHS:
            for path in built_pages():
                with self.subTest(os.path.relpath(path, BUILT), width=width), self.open(path, width) as opened:
                    self.assertLessEqual(opened.js("document.documentElement.scrollWidth"), width)


def take_shots(folder):
    os.makedirs(folder, exist_ok=True)
    DocumentsTest.setUpClass()
    for path in built_pages():
        for width in WIDTHS:
            with DocumentsTest().open(path, width) as opened:
                opened.shoot(os.path.join(folder, f"{os.path.relpath(path, BUILT).replace('/', '-')[:-5]}-{width}.png"))
    DocumentsTest.doClassCleanups()


# --- pictures of the status page ---


def without_jokes(state):
    """Trouble as there may be: of the tests' state what is not there to break the page."""
    state["informers"] = [one for one in state["informers"] if one["name"] != page.LONG_NAME]
    state["informers"][0]["watchers"] = state["informers"][0]["watchers"][:1]
    state["informers"][0]["watcherCount"] = 1
    state["recentEvents"] = []
    return state


def take_pictures():
    os.makedirs(PICTURES, exist_ok=True)
    page.PageTest.setUpClass()
    try:
        test = page.PageTest()
        with test.made_up(without_jokes(page.in_trouble(test.state()))) as made_up, test.open(made_up.url, width=1100) as opened:
            opened.shoot(os.path.join(PICTURES, "trouble.webp"))
        with tempfile.TemporaryDirectory() as folder:
            config = os.path.join(folder, "sim.kubeconfig")
            with subprocess.Popen([os.path.join(ROOT, "build", "release", "bin", "kinformer-sim"), "--load",
                                   os.path.join(ROOT, "config", "sample.yaml"), "--churn", "3/s", "--write-kubeconfig", config],
                                  stdout=subprocess.PIPE, text=True) as sim:
                sim.stdout.readline()
                with Served(resource=("pods",), kubeconfig=config, mode="release") as served:
                    time.sleep(120)  # so that the curves have something to show
                    with test.open(f"http://{served.address}/", width=1100) as opened:
                        opened.wait("document.querySelectorAll('figure').length === 5")
                        opened.shoot(os.path.join(PICTURES, "status.webp"))
                    served.daemon.stop()
                sim.terminate()
    finally:
        page.PageTest.tearDownClass()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--pictures"]:
        take_pictures()
    elif sys.argv[1:2] == ["--shots"]:
        take_shots(sys.argv[2])
    else:
        unittest.main(verbosity=2)
