"""A conversion webhook that fails stops the server's watch cache of one version, and with it every list of that version:
there is nothing to make up for the watches, so the store stays as it was and says so until the webhook is back."""

import base64
import contextlib
import json
import os
import re
import ssl
import tempfile
import time
import unittest

import relay
from harness import Daemon, cluster, make_key_pair, needs_cluster, wait_until, write_config
from test_serve import Served, body_of

NAMESPACE = "conversion"
GROUP = "conversion.kinformer.dev"
RESOURCE = f"widgets.{GROUP}"
TARGET = f"/apis/{GROUP}/v2/namespaces/{NAMESPACE}/widgets"
# The server closes watches and refuses new ones about half a minute after its cache has stopped.
SLOW = 180
SILENT_SECONDS = 4
# Of what stands still: at most one in the time of silence, less a fifth.
LIST_SECONDS = SILENT_SECONDS * 0.8
# Half of it is the time for an answer, and the server says only after three seconds that a version is too large.
PATIENT_SECONDS = 10
LIST = re.compile("GET \\S+/widgets\\?limit=")
FAILED_LIST = re.compile('event="list failed" error=.*conversion webhook')
UNREACHABLE = re.compile('event="list failed" error=.*connection refused')


class Conversion(relay.Handler):
    protocol_version = "HTTP/1.0"  # no connection outlives the server

    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        request = review["request"]
        converted = [{**item, "apiVersion": request["desiredAPIVersion"]} for item in request["objects"]]
        body = json.dumps({"apiVersion": review["apiVersion"], "kind": review["kind"],
                           "response": {"uid": request["uid"], "result": {"status": "Success"},
                                        "convertedObjects": converted}}).encode()
        self.answer(500 if self.server.is_broken else 200, body)


class Webhook:
    """Gives objects the version that is asked for; is broken or gone when told so, and back at the same port."""

    def __init__(self, folder):
        self.pair = os.path.join(folder, "webhook")
        make_key_pair(self.pair)
        self.running = contextlib.ExitStack()
        self.server = None
        self.port = 0
        self.start()

    def start(self):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.pair + ".crt", self.pair + ".key")
        self.server = self.running.enter_context(relay.listening(Conversion, self.port, context))
        self.server.is_broken = False
        self.port = self.server.server_port

    def stop(self):
        self.running.close()

    def definition(self):
        def version(name, is_stored):
            schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
            return {"name": name, "served": True, "storage": is_stored, "schema": {"openAPIV3Schema": schema}}

        with open(self.pair + ".crt", "rb") as file:
            bundle = base64.b64encode(file.read()).decode()
        client = {"url": f"https://127.0.0.1:{self.port}/", "caBundle": bundle}
        return json.dumps({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": RESOURCE},
            "spec": {"group": GROUP, "scope": "Namespaced",
                     "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
                     "versions": [version("v1", True), version("v2", False)],
                     "conversion": {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"],
                                                                       "clientConfig": client}}}})


def can_make(name):
    """In the version that is stored, so the webhook has no part in it."""
    return cluster().try_kubectl("create", "-f", "-", stdin=json.dumps({
        "apiVersion": f"{GROUP}/v1", "kind": "Widget", "metadata": {"name": name, "namespace": NAMESPACE}}))


class Sidecar(Served):
    """A daemon that tells its events and its state."""

    def __init__(self, config):
        self.folder = tempfile.TemporaryDirectory()
        self.kubeconfig = os.path.join(self.folder.name, "kubeconfig")
        self.daemon = Daemon("--listen", "127.0.0.1:0", "--write-kubeconfig", self.kubeconfig, config=config)

    def __enter__(self):
        self.connect()
        return self

    def state(self):
        self.daemon.check()
        return body_of(self, "/debug/state")["informers"][0]


def count_told(daemon, text=""):
    """Lines that are not of a list that takes long, of which there is one every ten seconds."""
    return daemon.count_loud(text) - daemon.count_loud("info daemon: listing resource=")


@needs_cluster("conversion by webhook")
class BrokenWebhook(unittest.TestCase):
    n_made = 0

    def setUp(self):
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        self.folder = stack.enter_context(tempfile.TemporaryDirectory())
        self.webhook = Webhook(self.folder)
        stack.callback(self.webhook.stop)
        cluster().make_namespace(NAMESPACE)
        cluster().kubectl("apply", "-f", "-", stdin=self.webhook.definition())
        stack.callback(self.clean_up)
        cluster().kubectl("wait", "--for=condition=Established", f"crd/{RESOURCE}", "--timeout=30s")
        wait_until(lambda: can_make("before"), "an object can be made")

    def clean_up(self):
        """The server deletes the objects by the version that they are asked for, so the webhook has to work."""
        self.webhook.stop()
        self.webhook.start()
        cluster().kubectl("delete", "crd", RESOURCE, "--timeout=60s")

    def config(self, initial, silent_seconds):
        return write_config(self.folder, f"widgets.v2.{GROUP}", name=f"{initial}.yaml", namespaces=[NAMESPACE],
                            initial=initial, silentAfter=f"{silent_seconds}s", backoffBase="100ms", backoffMax="500ms")

    def count(self, daemon, pattern):
        daemon.check()
        return sum(pattern.search(line) is not None for line in daemon.log_text().splitlines())

    def delivers_again(self, daemon):
        """Makes an object now and then: a bookmark would take a minute."""
        daemon.check()
        self.n_made += 1
        can_make(f"healed-{self.n_made}")
        return daemon.count_log("watches deliver again resource=widgets") != 0

    def check_outage(self, daemon, sidecar, stored):
        """What a daemon that was synced says and asks for while the webhook fails, and while it is not there at all."""
        wait_until(lambda: "watch cache stands still" in sidecar.state()["reason"], "it is known to stand still", SLOW)
        began, lists = time.monotonic(), self.count(daemon, LIST)
        self.assertIn("initializing", sidecar.state()["reason"])
        wait_until(lambda: self.count(daemon, FAILED_LIST), "a list that the webhook fails", SLOW)
        self.webhook.stop()
        wait_until(lambda: self.count(daemon, UNREACHABLE), "a list that fails for want of the webhook", SLOW)
        lists, seconds = self.count(daemon, LIST) - lists, time.monotonic() - began
        self.assertLessEqual(lists, 1 + seconds / LIST_SECONDS)
        state = sidecar.state()
        self.assertEqual((state["state"], state["synced"], state["objects"]), ("stale", True, 1))
        self.assertEqual(daemon.versions(RESOURCE), stored)

    def test_the_store_says_that_it_is_stale_until_the_webhook_is_back(self):
        with Sidecar(self.config("list", SILENT_SECONDS)) as sidecar:
            daemon = sidecar.daemon
            daemon.wait_synced()
            wait_until(lambda: f"{NAMESPACE}/before" in daemon.versions(RESOURCE), "the first object")
            daemon.wait_logged("all synced")
            stored, n_loud = daemon.versions(RESOURCE), count_told(daemon)
            self.webhook.server.is_broken = True
            self.assertTrue(can_make("while-broken"))
            with Sidecar(self.config("watchlist", PATIENT_SECONDS)) as late:
                late.daemon.wait_logged("Too large resource version")
                self.check_outage(daemon, sidecar, stored)
                # Silence, the refusal of watches, the frozen cache, and of lists, which has another cause.
                self.assertLessEqual(count_told(daemon) - n_loud, 4, daemon.log_text())
                state = late.state()
                self.assertEqual((state["synced"], state["objects"]), (False, 0))
                self.assertIn(state["state"], ("listing", "backing off"))
                self.assertIn("conversion webhook", state["reason"])
                # The refusal, the frozen cache, that it lists instead, and why that fails, too.
                self.assertLessEqual(count_told(late.daemon, "resource=widgets"), 4, late.daemon.log_text())
                self.webhook.start()
                wait_until(lambda: self.delivers_again(daemon), "a watch delivers again", SLOW)
                for one in (daemon, late.daemon):
                    one.wait_synced()
                    one.wait_equal(lambda: cluster().versions(TARGET), RESOURCE)
                    one.stop()


if __name__ == "__main__":
    unittest.main()
