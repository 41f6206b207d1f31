"""A headless Chromium that a test drives: pages of any width, light or dark, looked at by script, keyboard and picture.

It is spoken to by the DevTools protocol through two pipes: no port, and nothing that is not in Python's own library.
https://chromedevtools.github.io/devtools-protocol/
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time

PATIENCE = 60


class Browser:
    """One process, with a profile in `folder`."""

    def __init__(self, folder):
        from_us, self.to_browser = os.pipe()
        self.from_browser, to_us = os.pipe()
        command = [shutil.which("chromium") or "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                   "--disable-background-networking", "--disable-sync", "--no-first-run",
                   "--remote-debugging-pipe", "--user-data-dir=" + os.path.join(folder, "profile")]
        # The browser reads from descriptor 3 and writes to 4.
        self.process = subprocess.Popen(["sh", "-c", f'exec "$@" 3<&{from_us} 4>&{to_us}', "sh", *command],  # pylint: disable=consider-using-with
                                        pass_fds=(from_us, to_us), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(from_us)
        os.close(to_us)
        self.text, self.last_id = b"", 0

    def close(self):
        self.call("Browser.close")
        self.process.wait(timeout=PATIENCE)
        os.close(self.to_browser)
        os.close(self.from_browser)

    def read(self, deadline):
        """The next message; they end with a NUL."""
        while b"\0" not in self.text:
            ready, _, _ = select.select([self.from_browser], [], [], max(0, deadline - time.monotonic()))
            piece = os.read(self.from_browser, 1 << 16) if ready else b""
            if not piece:
                raise AssertionError("chromium says nothing")
            self.text += piece
        message, _, self.text = self.text.partition(b"\0")
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while (answer := self.read(deadline)).get("id") != self.last_id:
            continue
        if "error" in answer:
            raise AssertionError(f"{method}: {answer['error']}")
        return answer["result"]

    def page(self, url, width=1300, height=1000, dark=False):
        return Page(self, url, width, height, dark)


class Page:
    """A tab; what it is asked is an expression of JavaScript. Its clock is the world's."""

    def __init__(self, browser, url, width, height, dark):
        self.browser = browser
        self.target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=self.target, flatten=True)["sessionId"]
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.enable")
        self.call("Page.addScriptToEvaluateOnNewDocument", source="""window.problems = [];
            addEventListener("securitypolicyviolation", (event) => problems.push(event.violatedDirective + " " + event.blockedURI));
            addEventListener("error", (event) => problems.push(event.message));
            addEventListener("unhandledrejection", (event) => problems.push(String(event.reason)));""")
        self.call("Page.navigate", url=url)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        """Nothing went wrong in it that nobody looked at: scripts that fail, what its policy forbids."""
        problems = self.js("problems") if kind is None else []
        self.browser.call("Target.closeTarget", targetId=self.target)
        if problems:
            raise AssertionError(f"in the page: {problems}")

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def js(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{expression}: {result['exceptionDetails']['exception'].get('description')}")
        return result["result"].get("value")

    def text(self, selector):
        return self.js(f"document.querySelector({json.dumps(selector)}).textContent")

    def wait(self, expression):
        """Until it is true; returns what it is then."""
        deadline = time.monotonic() + PATIENCE
        while not (found := self.js(expression)):
            if time.monotonic() > deadline:
                raise AssertionError(f"never: {expression}")
            time.sleep(0.05)
        return found

    def press(self, key, text=""):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=text if kind == "keyDown" else "",
                      windowsVirtualKeyCode={"Enter": 13, "Tab": 9}.get(key, 0))

    def type(self, text):
        self.call("Input.insertText", text=text)

    def shoot(self, path):
        """All of it, however long; as WebP if that is what the file is called."""
        height = self.js("document.documentElement.scrollHeight")
        width = self.js("window.innerWidth")
        form = {"format": "webp", "quality": 70} if path.endswith(".webp") else {"format": "png"}
        picture = self.call("Page.captureScreenshot", captureBeyondViewport=True, **form,
                            clip={"x": 0, "y": 0, "width": width, "height": height, "scale": 1})
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture["data"]))
