"""What a user builds and runs: the examples, an installed library, a shared library."""

import os
import signal
import subprocess
import tempfile
import unittest

from harness import PATIENCE, ROOT, cluster, needs_cluster, run_daemon, wait_until


class Examples(unittest.TestCase):
    def test_pod_logger_tells_where_pods_run(self):
        with tempfile.NamedTemporaryFile(mode="w+", encoding="utf-8") as out:
            program = os.path.join(ROOT, "build", "asan", "examples", "pod-logger")
            with subprocess.Popen([program], stdout=out, stderr=subprocess.STDOUT,
                                  env={**os.environ, "KUBECONFIG": cluster().kubeconfig()}) as process:
                cluster().loader("load", "-pods", "3", "-namespaces", "1", "-prefix", "logger")

                def told():
                    with open(out.name, encoding="utf-8") as file:
                        return file.read().count("logger-0/") >= 3
                wait_until(told, "three pods")
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(PATIENCE), 0)
        cluster().loader("delete", "-namespace", "logger-0")

    def test_programs_are_tested_without_a_cluster(self):
        for name in ("tested-program", "tested-controller"):
            done = subprocess.run([os.path.join(ROOT, "build", "asan", "examples", name)], timeout=PATIENCE,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout)


class Install(unittest.TestCase):
    def test_a_program_builds_against_the_installed_library(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["make", "-s", "install", f"DESTDIR={folder}", "PREFIX=/usr"], cwd=ROOT, check=True,
                           stdout=subprocess.DEVNULL)
            env = {**os.environ, "PKG_CONFIG_PATH": f"{folder}/usr/lib/pkgconfig", "PKG_CONFIG_SYSROOT_DIR": folder}
            flags = subprocess.run(["pkg-config", "--cflags", "--libs", "kinformer"], env=env, check=True, text=True,
                                   stdout=subprocess.PIPE).stdout.split()
            program = os.path.join(folder, "pod-logger")
            subprocess.run(["cc", "-std=c11", "-Wall", "-Werror",
                            os.path.join(ROOT, "examples", "pod-logger", "main.c"), "-o", program, *flags], check=True)
            done = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                                  env={**os.environ, "LD_LIBRARY_PATH": f"{folder}/usr/lib", "KUBECONFIG": "/no/file"})
            self.assertEqual(done.returncode, 1)
            self.assertIn("/no/file", done.stderr)
            subprocess.run(["make", "-s", "uninstall", f"DESTDIR={folder}", "PREFIX=/usr"], cwd=ROOT, check=True,
                           stdout=subprocess.DEVNULL)
            left = [name for _, _, names in os.walk(os.path.join(folder, "usr")) for name in names]
            self.assertEqual(left, [])


class Samples(unittest.TestCase):
    def test_the_documented_configuration_is_good(self):
        code, out, err = run_daemon("--config", os.path.join(ROOT, "config", "kinformerd.yaml"), "--check-config")
        self.assertEqual((code, err), (0, ""))
        self.assertIn("2 resources", out)

    @needs_cluster("roles")
    def test_the_rights_of_the_sample_are_enough_and_no_more(self):
        cluster().kubectl("apply", "-f", os.path.join(ROOT, "config", "rbac", "rbac.yaml"))
        account = "--as=system:serviceaccount:default:kinformerd"
        for verb in ("list", "watch"):
            for resource in ("pods", "deployments.apps"):
                self.assertEqual(cluster().kubectl("auth", "can-i", verb, resource, "-A", account).strip(), "yes")
        with self.assertRaises(AssertionError):
            cluster().kubectl("auth", "can-i", "list", "secrets", "-A", account)


if __name__ == "__main__":
    unittest.main()
