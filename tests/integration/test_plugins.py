"""Plugins of the daemon: the example counts what the server has, SIGHUP loads new ones, bad ones are said by name."""

import collections
import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from harness import PATIENCE, ROOT, Daemon, cluster, config_map, daemon_path, run_daemon, wait_until

SPACE = "plugins"
COUNT = os.path.join(ROOT, "build", "asan", "examples", "plugin-count.so")


def pods():
    """"node/phase" -> how many there are."""
    items = json.loads(cluster().kubectl("get", "--raw", "/api/v1/pods"))["items"]
    return dict(collections.Counter(f'{item["spec"].get("nodeName", "")}/{item["status"].get("phase", "")}'
                                    for item in items))


class PluginsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cluster().make_namespace(SPACE)

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.plugin = os.path.join(self.folder, "plugin.so")
        self.install(COUNT)

    def install(self, source):
        """In the place of what is there, as `install` does."""
        shutil.copyfile(source, self.plugin + ".new")
        os.replace(self.plugin + ".new", self.plugin)

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def config(self, handlers, resource="pods"):
        return self.write("config.yaml", f"events: json\nresources: [{{resource: {resource}}}]\n"
                          f"handlers: {json.dumps(handlers)}\n")

    def compile(self, source):
        plugin = os.path.join(self.folder, source + ".so")
        subprocess.run(["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-I" + os.path.join(ROOT, "src", "include"),
                        os.path.join(ROOT, "tests", "integration", source), "-o", plugin], check=True)
        return plugin

    def daemon(self, *args, **more):
        return self.enterContext(Daemon(*args, **more))

    def counted(self, daemon):
        """What it said last of each place, since it was opened."""
        text = daemon.log_text()
        said = re.findall(r'said handler="count" line="(.*?)=(\d+)"', text[text.rfind("plugin is loaded anew"):])
        return {place: int(n) for place, n in said if n != "0"} if said else None

    def wait_counted(self, daemon):
        def is_counted():
            daemon.check()
            last = {}
            for place, n in re.findall(r'said handler="count" line="(.*?)=(-?\d+)"', daemon.log_text()):
                last[place] = int(n)
            return {place: n for place, n in last.items() if n} == pods()
        wait_until(is_counted, "the plugin has counted what the server has")

    def hang_up(self, daemon):
        daemon.process.send_signal(signal.SIGHUP)

    def test_the_example_counts_pods(self):
        cluster().loader("load", "-pods", "30", "-namespaces", "2", "-prefix", "plugin-example")
        listen = f"unix:{self.folder}/listen.sock"
        daemon = self.daemon("--plugin", COUNT, "--listen", listen)
        self.wait_counted(daemon)
        cluster().loader("delete", "-namespace", "plugin-example-0")
        self.wait_counted(daemon)
        text = subprocess.run(["curl", "-s", "--unix-socket", self.folder + "/listen.sock", "http://daemon/metrics"],
                              check=True, text=True, stdout=subprocess.PIPE).stdout
        self.assertGreaterEqual(int(re.search(r'^kinformer_plugin_count_total{handler="0",name="changes"} (\d+)$', text,
                                              re.M).group(1)), 30)
        self.assertIn('kinformer_handler_running{handler="0",name="count"} 1\n', text)
        daemon.stop(within=10)
        self.assertEqual(daemon.count_log("plugin leaks"), 0)
        cluster().loader("delete", "-namespace", "plugin-example-1")

    def test_sighup_loads_a_new_file_beside_the_old_one(self):
        cluster().loader("load", "-pods", "5", "-namespaces", "1", "-prefix", "plugin-reload")
        for more in ({"config": self.config([{"plugin": self.plugin, "resources": ["pods"]}])},
                     {"resource": ("pods",)}):
            daemon = self.daemon(*([] if "config" in more else ["--plugin", self.plugin]), **more)
            self.wait_counted(daemon)
            self.hang_up(daemon)  # nothing has changed
            self.install(COUNT)
            self.hang_up(daemon)
            daemon.wait_logged("plugin is loaded anew")
            wait_until(lambda: daemon.check() or self.counted(daemon) == pods(), "the new one has counted")
            self.install(__file__)
            self.hang_up(daemon)
            daemon.wait_logged("plugin is not loaded anew, the one before stays")
            self.assertEqual(daemon.count_log("it is no shared object"), 1)
            self.assertEqual(daemon.count_log("plugin is loaded anew"), 1)
            self.assertEqual(daemon.count_log("configuration not taken over"), 0)
            self.install(COUNT)
            daemon.stop()
        cluster().loader("delete", "-namespace", "plugin-reload-0")

    def test_sighup_loads_it_with_a_new_config(self):
        hanging = self.compile("hanging_plugin.c")
        config = {"text": "it's", "list": [1, True, None, 1.5], "empty": {}}
        daemon = self.daemon(config=self.config([{"plugin": hanging, "config": config}], "roles.rbac.authorization.k8s.io"))
        said = 'said handler="hanging" line="%s"'
        daemon.wait_logged(said % json.dumps(config, separators=(",", ":")).replace('"', '\\"'))
        self.config([{"plugin": hanging, "config": 7}, {"exec": ["cat"]}], "roles.rbac.authorization.k8s.io")
        self.hang_up(daemon)
        daemon.wait_logged("handlers change only by a restart, but for a plugin's file and config")
        daemon.wait_logged(said % "7")
        self.config([{"exec": ["cat"]}], "roles.rbac.authorization.k8s.io")  # the plugin stays as it was last
        self.compile("hanging_plugin.c")
        self.hang_up(daemon)
        daemon.wait_logged(said % "7", times=2)
        daemon.stop()

    def test_one_that_does_not_return_is_said_and_left(self):
        cluster().kubectl("apply", "-f", "-", stdin=config_map("hang", SPACE))
        daemon = self.daemon("--plugin", self.compile("hanging_plugin.c"), "--namespace", SPACE, resource=("configmaps",))
        daemon.wait_synced()
        daemon.wait_types(SPACE + "/hang", "ADDED")  # which holds up nobody else
        daemon.wait_logged('plugin is slow handler="hanging" call=on_change')
        began = time.monotonic()
        daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(daemon.process.wait(PATIENCE), 1)
        self.assertLess(time.monotonic() - began, 15)
        self.assertEqual(daemon.count_log('handler does not end handler="hanging"'), 1)
        cluster().kubectl("delete", "configmap", "hang", "-n", SPACE)

    def test_one_that_does_not_return_ends_the_daemon_with_its_term(self):
        """It would go on beside whoever leads next."""
        cluster().kubectl("apply", "-f", "-", stdin=config_map("hang", SPACE))
        config = self.config([{"plugin": self.compile("hanging_plugin.c")}], "configmaps")
        with open(config, "a", encoding="utf-8") as file:
            file.write(f"lease: {SPACE}/hanging\n")
        daemon = self.daemon(config=config)
        daemon.wait_logged('said handler="hanging"')
        cluster().kubectl("patch", "lease", "-n", SPACE, "hanging-0", "--type=merge", "--patch",
                          '{"spec":{"holderIdentity":"another"}}')
        self.assertEqual(daemon.process.wait(PATIENCE), 1)
        self.assertEqual(daemon.count_log("ended, since a handler outlives its term"), 1)
        cluster().kubectl("delete", "configmap", "hang", "-n", SPACE)

    def test_a_log_that_nobody_reads_does_not_keep_the_daemon_beyond_its_term(self):
        """Neither the plugin's lines nor the daemon's last one are waited for."""
        cluster().kubectl("apply", "-f", "-", stdin=config_map("hang", SPACE))
        self.addCleanup(cluster().kubectl, "delete", "configmap", "hang", "-n", SPACE)
        config = self.config([{"plugin": self.compile("hanging_plugin.c")}], "configmaps")
        with open(config, "a", encoding="utf-8") as file:
            file.write(f"lease: {SPACE}/unread\n")
        log, into = os.pipe()
        with subprocess.Popen([daemon_path("asan"), "--kubeconfig", cluster().kubeconfig(), "--config", config],
                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=into) as process:
            try:
                with open(log, "rb", buffering=0) as lines:
                    text = b""
                    while b'line="hangs"' not in text:
                        text += lines.read(65536)
                    more = os.open(f"/proc/self/fd/{into}", os.O_WRONLY | os.O_NONBLOCK)
                    with contextlib.suppress(BlockingIOError):
                        while True:
                            os.write(more, b"x")
                    os.close(more)
                    cluster().kubectl("patch", "lease", "-n", SPACE, "unread-0", "--type=merge", "--patch",
                                      '{"spec":{"holderIdentity":"another"}}')
                    # It sees that within three seconds, and has five to end; who takes over waits for fifteen.
                    self.assertNotEqual(process.wait(15), 0)
            finally:
                process.kill()
                os.close(into)

    def test_one_that_does_not_return_loses_no_state(self):
        """The end of its term ends the process, but not before the state is written, which takes longer."""
        cluster().kubectl("apply", "-f", "-", stdin=config_map("hang", SPACE))
        config, state = self.config([{"plugin": self.compile("hanging_plugin.c")}], "configmaps"), self.folder + "/state"
        with open(config, "a", encoding="utf-8") as file:
            file.write(f"lease: {SPACE}/stateful\nstateDir: {state}\n")
        daemon = self.daemon(config=config, env={"LD_PRELOAD": self.compile("slow_disk.c"),
                                                 "ASAN_OPTIONS": "verify_asan_link_order=0"})
        daemon.wait_logged('said handler="hanging" line="hangs"')
        daemon.wait_synced()
        self.assertEqual(os.listdir(state), [])
        daemon.process.send_signal(signal.SIGTERM)
        self.assertEqual(daemon.process.wait(PATIENCE), 1)
        self.assertEqual(daemon.count_log("ended, since a handler outlives its term"), 1)
        self.assertEqual(os.listdir(state), ["configmaps"])
        cluster().kubectl("delete", "configmap", "hang", "-n", SPACE)

    def test_check_plugin_says_what_it_is_or_why_it_is_none(self):
        code, out, err = run_daemon("--check-plugin", COUNT)
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, r"^plugin count: ABI 1, \d+ bytes: open, on_change, flush, close\n$")
        for path, words in ((__file__, "it is no shared object"), (self.folder, "is no file"),
                            (self.folder + "/absent.so", "cannot read")):
            code, out, err = run_daemon("--check-plugin", path)
            self.assertEqual((code, out, err.count("\n")), (1, "", 1))
            self.assertIn(path, err)
            self.assertIn(words, err)
        self.assertEqual(run_daemon("--check-plugin")[0], 2)

    def test_a_bad_one_is_no_configuration(self):
        text = self.write("text.so", "text")
        for args in (["--plugin", text], ["--config", self.config([{"plugin": text}])]):
            more = ["--resource", "pods"] if args[0] == "--plugin" else []
            for command in ([], ["--check-config"]):
                code, _, err = run_daemon("--kubeconfig", cluster().kubeconfig(), "--log-level", "off", *args, *more, *command)
                self.assertEqual((code, err), (2, f"kinformerd: {text}: it is no shared object\n"))
        self.assertEqual(run_daemon("--check-config", "--config", self.config([{"plugin": COUNT, "config": [1]}]))[0], 0)

    def test_check_config_says_where_a_key_is_wrong(self):
        rows = [({"plugin": "/absent.so"}, "plugin: '/absent.so' is no file that can be read"),
                ({"plugin": "/tmp"}, "plugin: '/tmp' is no file that can be read"),
                ({"plugin": [COUNT]}, "plugin"), ({"config": 1}, "a handler has one of exec, plugin and webhook"),
                ({"plugin": COUNT, "exec": ["cat"]}, "a handler has one of exec, plugin and webhook"),
                ({"plugin": COUNT, "acknowledge": True}, "acknowledge goes with exec, not with plugin"),
                ({"exec": ["cat"], "config": {}}, "config goes with plugin, not with exec"),
                ({"plugin": COUNT, "resources": ["podz"]}, "podz is none of this file's resources")]
        for handler, words in rows:
            code, _, err = run_daemon("--check-config", "--config", self.config([handler]))
            self.assertEqual((code, err.count("\n")), (2, 1), (handler, err))
            self.assertRegex(err, r"config.yaml:3:\d+: ")
            self.assertIn(words, err)


if __name__ == "__main__":
    unittest.main()
