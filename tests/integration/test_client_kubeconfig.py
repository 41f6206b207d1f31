"""What --write-kubeconfig writes: a user for every client, with the token of the pod or of --client-token where tokens are
taken, and anew when that or the certificate changes."""

import base64
import json
import os
import re
import tempfile
import unittest

from harness import Daemon, cluster, make_key_pair, run_daemon, wait_until


def write(path, text):
    """In the place of what is there, as the kubelet does it."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)


class ClientKubeconfig(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.path = self.folder + "/kubeconfig"
        write(self.folder + "/token", "first")

    def start(self, *args, **config):
        write(self.folder + "/config.yaml",
              json.dumps({"listen": ["127.0.0.1:0"], "resources": [{"resource": "configmaps"}], **config}))
        # A pod's environment; the daemon itself goes by its kubeconfig.
        self.daemon = self.enterContext(Daemon(
            "--write-kubeconfig", self.path, *args, config=self.folder + "/config.yaml", events=False,
            env={"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1",
                 "KINF_SERVICE_ACCOUNT_DIR": self.folder}))
        wait_until(lambda: self.daemon.check() or os.path.exists(self.path), "the kubeconfig")

    def text(self):
        with open(self.path, encoding="utf-8") as file:
            return file.read()

    def wait_text(self, part):
        wait_until(lambda: self.daemon.check() or part in self.text(), part)

    def test_where_no_tokens_are_taken_none_is_given_away(self):
        self.start()
        self.assertIn('- name: "kinformer"\n  user: {}\n', self.text())
        self.daemon.stop()

    def test_with_pass_through_the_user_is_the_pods(self):
        self.start(passThrough=True)
        self.assertIn(f'    token: "first"\n    tokenFile: "{self.folder}/token"\n', self.text())
        self.assertEqual(os.stat(self.path).st_mode & 0o777, 0o600)
        self.daemon.wait_logged("kubectl and client-go send no token over plain HTTP")
        self.daemon.stop()

    def test_it_follows_token_and_certificate(self):
        make_key_pair(self.folder + "/tls")
        write(self.folder + "/another", "of-another")
        self.start("--client-token", os.path.relpath(self.folder + "/another"), auth="delegated",
                   tls={"certFile": self.folder + "/tls.crt", "keyFile": self.folder + "/tls.key"})
        token_file = re.search(r'tokenFile: "(/\S+)"', self.text()).group(1)
        self.assertTrue(os.path.samefile(token_file, self.folder + "/another"))
        self.assertIn('token: "of-another"', self.text())
        os.remove(token_file)
        self.daemon.wait_logged("the clients' kubeconfig stays as it was")
        self.assertIn('token: "of-another"', self.text())
        write(self.folder + "/another", "rotated")
        self.wait_text('token: "rotated"')
        make_key_pair(self.folder + "/tls")
        with open(self.folder + "/tls.crt", "rb") as file:
            self.wait_text(base64.b64encode(file.read()).decode())
        os.remove(self.path)
        wait_until(lambda: os.path.exists(self.path), "the kubeconfig again")
        self.assertNotIn("rotated", self.daemon.log_text())
        self.assertNotIn("plain HTTP", self.daemon.log_text())
        self.daemon.stop()

    def test_the_kubeconfig_that_it_goes_by_is_not_written_over(self):
        with open(cluster().kubeconfig(), encoding="utf-8") as file:
            text = file.read()
        write(self.path, text)
        os.symlink(self.path, self.folder + "/link")
        for path in (self.path, self.folder + "/link"):
            code, _, err = run_daemon("--kubeconfig", self.path, "--resource", "pods", "--listen", "127.0.0.1:0",
                                      "--write-kubeconfig", path)
            self.assertEqual(code, 2, err)
            self.assertIn(path + ": this is the kubeconfig by which", err)
            self.assertEqual(self.text(), text)

    def test_a_token_that_is_not_there_is_named(self):
        code, _, err = run_daemon("--kubeconfig", cluster().kubeconfig(), "--resource", "pods", "--listen", "127.0.0.1:0",
                                  "--write-kubeconfig", self.path, "--client-token", self.folder + "/none")
        self.assertEqual(code, 2, err)
        self.assertIn(self.folder + "/none", err)


if __name__ == "__main__":
    unittest.main()
