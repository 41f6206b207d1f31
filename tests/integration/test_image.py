"""The container image: what is in it, that others' tools take it, and that kinformerd runs from it, locked down."""

import contextlib
import glob
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tarfile
import tempfile
import unittest

from harness import PATIENCE, ROOT, TOOLS, cluster, config_map, daemon_path, lack, needs_cluster, needs_sim, wait_until
from test_serve import ask, body_of
from test_state import At

SCRIPT = os.path.join(ROOT, "scripts", "make-image.py")
MAX_BYTES = 20_000_000
USER = 65532


def run(*command, **options):
    done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command}: {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout


def read(*path):
    with open(os.path.join(*path), encoding="utf-8") as file:
        return file.read()


def version():
    return re.search(r'KINF_VERSION_STRING "(.*)"', read(ROOT, "src/include/kinformer/api.h"))[1]


class Image:
    """The archive, and with umoci what a runtime is given: `bundle`, with `root` in it."""

    def __init__(self):
        for tool in ("dpkg-query", "skopeo", "umoci", "crun"):
            if shutil.which(tool) is None:
                lack(tool + " (scripts/install-deps.sh test)")
        if os.getuid() != 0:
            lack("right to unpack an image as it is, and to run it: this is not root")
        self.folder = tempfile.mkdtemp(prefix="kinformer-image-")
        unittest.addModuleCleanup(shutil.rmtree, self.folder)
        self.archive = self.make("kinformerd.tar")
        layout = os.path.join(self.folder, "layout")
        with tarfile.open(self.archive) as tar:
            tar.extractall(layout, filter="data")
        self.bundle = os.path.join(self.folder, "bundle")
        run("umoci", "unpack", "--image", f"{layout}:{version()}", self.bundle)
        self.root = os.path.join(self.bundle, "rootfs")

    def make(self, name):
        path = os.path.join(self.folder, name)
        run(SCRIPT, daemon_path("release"), path)
        return path

    def names(self):
        return {os.path.relpath(os.path.join(folder, name), self.root)
                for folder, folders, names in os.walk(self.root) for name in folders + names}


image = None


def setUpModule():
    global image
    image = Image()


class Container(unittest.TestCase):
    """As a kubelet would start it: a user without rights, nothing that it could write to but a volume."""

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory(dir=image.folder))
        self.log = os.path.join(self.folder, "log")
        self.name_space = self.id().rpartition(".")[2].replace("_", "-")
        cluster().make_namespace(self.name_space)

    def volume(self, name, **texts):
        """A folder of the user's with these files; returns its path."""
        path = os.path.join(self.folder, name)
        os.mkdir(path)
        os.chown(path, USER, USER)
        for key, text in texts.items():
            with open(os.path.join(path, key.replace("_", ".")), "w", encoding="utf-8") as file:
                file.write(text)
        return path

    def start(self, args, volumes, env=()):
        """Volumes are written as place:source:mode. Host network, since the API server listens on loopback."""
        with open(os.path.join(image.bundle, "config.json"), encoding="utf-8") as file:
            config = json.load(file)
        config["process"]["args"] += args
        config["process"]["env"] += env
        config["process"]["terminal"] = False
        config["process"]["capabilities"] = {}
        config["root"]["readonly"] = True
        config["mounts"] = [mount for mount in config["mounts"] if mount["destination"] in ("/proc", "/dev")] + [
            {"destination": place, "source": source, "type": "bind", "options": ["bind", mode]}
            for place, source, mode in (volume.split(":") for volume in volumes)]
        config["linux"]["namespaces"] = [space for space in config["linux"]["namespaces"] if space["type"] != "network"]
        config["linux"].pop("resources", None)
        bundle = os.path.join(self.folder, "bundle")
        os.mkdir(bundle)
        # crun makes what is mounted on.
        shutil.copytree(image.root, os.path.join(bundle, "rootfs"), symlinks=True)
        with open(os.path.join(bundle, "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        # crun wants control groups of one kind, also where it is told to leave them alone.
        one_kind = 'umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; exec "$@"'
        command = ["unshare", "--mount", "sh", "-c", one_kind, "sh", *self.crun_command("run", "--bundle", bundle)]
        with open(self.log, "w", encoding="utf-8") as log:
            self.crun = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(self.crun.wait)
        self.addCleanup(self.delete)

    def crun_command(self, verb, *args):
        return ["crun", "--cgroup-manager=disabled", "--root", os.path.join(image.folder, "crun"), verb, *args,
                os.path.basename(self.folder)]

    def delete(self):
        if self.crun.poll() is None:
            subprocess.run(self.crun_command("delete", "--force"), check=False, stderr=subprocess.DEVNULL)

    def pid(self):
        done = subprocess.run(self.crun_command("state"), text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              check=False)
        return json.loads(done.stdout)["pid"] if done.returncode == 0 else None

    def wait_for(self, condition, what):
        def holds():
            self.assertIsNone(self.crun.poll(), read(self.log))
            return condition()
        wait_until(holds, what)

    def stop(self):
        os.kill(self.pid(), signal.SIGTERM)
        self.assertEqual(self.crun.wait(PATIENCE), 0, read(self.log))

    def check_locked_down(self, pid):
        status = dict(re.findall(r"^(\w+):\t(.*)$", read(f"/proc/{pid}/status"), re.M))
        self.assertEqual((set(status["Uid"].split()), set(status["Gid"].split())), ({str(USER)}, {str(USER)}))
        self.assertEqual((status["NoNewPrivs"], int(status["CapBnd"], 16), int(status["CapEff"], 16)), ("1", 0, 0))
        (options,) = re.findall(r"^\d+ \d+ \S+ \S+ / (\S+)", read(f"/proc/{pid}/mountinfo"), re.M)
        self.assertIn("ro", options.split(","))


class ContainerTest(Container):
    def start_with(self, target):
        """One that finds the API server by a name, which is resolved from inside, and writes a kubeconfig."""
        server = cluster().env["KINF_SERVER"]
        named = server.replace("127.0.0.1", "the-api-server") + "\n    tls-server-name: localhost"
        self.run_folder = self.volume("run", kubeconfig_in=read(cluster().kubeconfig()).replace(server, named),
                                      hosts="127.0.0.1 the-api-server localhost\n")
        self.start(["--kubeconfig", "/run/kinformer/kubeconfig.in", "--resource", "configmaps", "--listen", "127.0.0.1:0",
                    "--write-kubeconfig", target],
                   [f"/run/kinformer:{self.run_folder}:rw", f"/etc/hosts:{self.run_folder}/hosts:ro"])

    def test_it_serves_what_the_cluster_has(self):
        cluster().kubectl("create", "-f", "-", stdin=config_map("seen", self.name_space))
        self.start_with("/run/kinformer/kubeconfig")
        kubeconfig = os.path.join(self.run_folder, "kubeconfig")
        self.wait_for(lambda: os.path.exists(kubeconfig), kubeconfig)
        self.assertEqual(os.stat(kubeconfig).st_uid, USER)
        served = At(kubeconfig)
        self.wait_for(lambda: ask(served, "/readyz")[0] == 200, "ready")
        items = body_of(served, f"/api/v1/namespaces/{self.name_space}/configmaps")["items"]
        self.assertIn("seen", [item["metadata"]["name"] for item in items])
        self.check_locked_down(self.pid())
        self.stop()

    @needs_sim("nothing of it is a server's")
    def test_it_cannot_write_where_no_volume_is(self):
        self.start_with("/etc/kubeconfig")
        self.assertNotEqual(self.crun.wait(PATIENCE), 0)
        self.assertIn("Read-only file system", read(self.log))


@needs_cluster("helm is built with it, and accounts have tokens")
class ReleaseTest(Container):
    """What the chart installs, run as the pod says, by the account and with the rights that it has made."""

    def setUp(self):
        super().setUp()
        self.addCleanup(self.helm, "uninstall", "kinformerd")
        self.helm("install", "kinformerd", os.path.join(ROOT, "charts", "kinformerd"), "--values",
                  os.path.join(ROOT, "charts", "kinformerd", "examples", "deployment.yaml"))
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.port = server.getsockname()[1]
        pki = os.path.join(cluster().folder, "pki")
        self.token = self.kubectl("create", "token", "kinformerd").strip()
        config = self.get("configmap")["data"]["kinformerd.yaml"].replace(":8443", f"127.0.0.1:{self.port}")
        self.volumes = {
            "config": self.volume("config", kinformerd_yaml=config),
            "tls": self.volume("tls", tls_crt=read(pki, "serving.crt"), tls_key=read(pki, "serving.key"))}
        self.account = self.volume("account", ca_crt=read(pki, "ca.crt"), token=self.token, namespace=self.name_space)

    def helm(self, *args):
        return run(os.path.join(TOOLS, "helm"), "--kubeconfig", cluster().kubeconfig(), "-n", self.name_space, *args)

    def kubectl(self, *args):
        return cluster().kubectl("-n", self.name_space, *args)

    def get(self, kind):
        return json.loads(self.kubectl("get", kind, "kinformerd", "-o", "json"))

    def ask(self, path, **headers):
        connection = http.client.HTTPSConnection("127.0.0.1", self.port, timeout=PATIENCE, context=cluster().context)
        with contextlib.closing(connection):
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def is_ready(self):
        with contextlib.suppress(ConnectionError):
            return self.ask(self.container["readinessProbe"]["httpGet"]["path"])[0] == 200

    def test_it_serves_by_the_rights_of_the_release(self):
        (self.container,) = self.get("deployment")["spec"]["template"]["spec"]["containers"]
        mounts = [f"{mount['mountPath']}:{self.volumes[mount['name']]}:ro" for mount in self.container["volumeMounts"]]
        host, _, port = cluster().env["KINF_SERVER"].removeprefix("https://").rpartition(":")
        self.start(self.container["args"], [*mounts, f"/var/run/secrets/kubernetes.io/serviceaccount:{self.account}:ro"],
                   ["KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port])
        self.wait_for(self.is_ready, "ready")
        self.check_locked_down(self.pid())
        self.assertEqual(self.ask("/api/v1/pods")[0], 401)
        for path in ("/api/v1/pods", "/apis/apps/v1/deployments"):
            status, body = self.ask(path, Authorization="Bearer " + self.token)
            self.assertEqual((status, "items" in json.loads(body)), (200, True), body)
        # This account may read what is cached, not the daemon's own state.
        self.assertEqual(self.ask("/debug/state", Authorization="Bearer " + self.token)[0], 403)
        self.stop()


@needs_sim("no server has a part in it")
class ContentTest(unittest.TestCase):
    def test_it_is_small(self):
        self.assertLess(os.path.getsize(image.archive), MAX_BYTES)

    def test_the_same_makes_the_same_bytes(self):
        run("cmp", image.archive, image.make("again.tar"))

    def test_tools_take_it(self):
        told = json.loads(run("skopeo", "inspect", f"oci-archive:{image.archive}:{version()}"))
        self.assertEqual(told["Os"], "linux")
        self.assertEqual(told["Labels"]["org.opencontainers.image.version"], version())
        self.assertEqual(told["Labels"]["org.opencontainers.image.licenses"], "Apache-2.0")
        # As Docker, kind and minikube load it; with their names.
        archive = os.path.join(image.folder, "docker.tar")
        run("skopeo", "copy", "oci-archive:" + image.archive, f"docker-archive:{archive}:kinformerd:{version()}")
        with tarfile.open(archive) as tar:
            (manifest,) = json.load(tar.extractfile("manifest.json"))
        self.assertRegex(manifest["RepoTags"][0], rf"(^|/)kinformerd:{version()}$")

    def test_it_is_run_as_the_dockerfile_says(self):
        config = json.loads(run("skopeo", "inspect", "--config", "oci-archive:" + image.archive))["config"]
        text = read(ROOT, "Dockerfile")
        self.assertEqual(config["User"], re.search(r"^USER (.*)", text, re.M)[1])
        self.assertEqual(config["User"], f"{USER}:{USER}")
        self.assertEqual(config["Entrypoint"], json.loads(re.search(r"^ENTRYPOINT (.*)", text, re.M)[1]))
        self.assertIn(config["Entrypoint"][0].lstrip("/"), image.names())

    def test_there_is_nothing_else_to_run_and_nothing_to_write_to(self):
        programs = set()
        for name in image.names():
            path = os.path.join(image.root, name)
            status = os.lstat(path)
            if os.path.islink(path):
                continue
            self.assertEqual((status.st_uid, status.st_gid, status.st_mode & 0o6022), (0, 0, 0), name)
            if os.path.isfile(path) and status.st_mode & 0o111:
                programs.add(os.path.basename(name))
        self.assertEqual({name.partition("-linux")[0] for name in programs}, {"kinformerd", "ld"})

    def test_each_library_comes_with_its_package_and_its_licence(self):
        owners = set()
        for path in glob.glob(image.root + "/usr/lib/*-linux-*/*"):
            if os.path.islink(path):
                continue
            inside = os.path.relpath(path, image.root)
            found = subprocess.run(["dpkg-query", "-S", "/" + inside, "/" + inside.removeprefix("usr/")], check=False,
                                   text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
            owners.add(found.partition(":")[0])
        names = set(os.listdir(os.path.join(image.root, "var/lib/dpkg/status.d")))
        self.assertEqual(names, owners | {"base-files", "ca-certificates"})
        for name in names:
            self.assertLess(100, os.path.getsize(os.path.join(image.root, "usr/share/doc", name, "copyright")))
            entry = dict(re.findall(r"^(\S+): (.*)$", read(image.root, "var/lib/dpkg/status.d", name), re.M))
            self.assertEqual((entry["Package"], entry["Status"]), (name, "install ok installed"))
            self.assertEqual(entry["Version"], run("dpkg-query", "-W", "-f", "${Version}", name))
        self.assertEqual(read(image.root, "etc/os-release"), read("/usr/lib/os-release"))
        self.assertEqual(read(image.root, "usr/share/doc/kinformerd/LICENSE"), read(ROOT, "LICENSE"))

    def test_authorities_are_those_of_the_package(self):
        bundle = os.path.join(image.root, "etc/ssl/certs/ca-certificates.crt")
        self.assertLess(100, len(ssl.create_default_context(cafile=bundle).get_ca_certs()))
        packaged = re.findall(r"^/usr/share/ca-certificates/.*\.crt$", run("dpkg-query", "-L", "ca-certificates"), re.M)
        self.assertEqual(read(bundle), "".join(map(read, sorted(packaged))))

    def test_a_library_that_is_of_no_package_ends_it(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        found = re.search(r"libcjson\S+ => (\S+)", run("ldd", daemon_path("release")))[1]
        shutil.copy(found, folder)
        done = subprocess.run([SCRIPT, daemon_path("release"), os.path.join(folder, "image.tar")], check=False,
                              text=True, stderr=subprocess.PIPE, env={**os.environ, "LD_LIBRARY_PATH": folder})
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, f"make-image: {folder}/{os.path.basename(found)} is of no Debian package\n")
        self.assertEqual(len(os.listdir(folder)), 1)


@needs_sim("no server has a part in it")
class DockerfileTest(unittest.TestCase):
    """There may be no Docker here, nor a registry: its steps are done by hand."""

    def setUp(self):
        self.text = read(ROOT, "Dockerfile")
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        for name in re.findall(r"^!(\S+)", read(ROOT, ".dockerignore"), re.M):
            target = os.path.join(self.folder, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            os.symlink(os.path.join(ROOT, name), target)

    def test_it_is_built_from_the_files_that_the_build_needs(self):
        self.assertIn("scripts/install-deps.sh build image\n", self.text)
        for sources in re.findall(r"^COPY (?!--from)(.*) \S+$", self.text, re.M):
            for source in sources.split():
                self.assertTrue(os.path.exists(os.path.join(self.folder, source)), source)
        # Says what it would do, for which every file has to be there.
        run("make", "-n", "MODE=release", "build/release/bin/kinformerd", cwd=self.folder)

    def test_it_has_the_same_files(self):
        command = re.search(r"(scripts/make-image.py --tree) build/release/bin/kinformerd /image$", self.text, re.M)[1]
        self.assertIn("\nFROM scratch\nCOPY --from=build /image /\n", self.text)
        tree = os.path.join(self.folder, "tree")
        run(*command.split(), daemon_path("release"), tree, cwd=self.folder)
        run("diff", "--recursive", "--no-dereference", tree, image.root)


if __name__ == "__main__":
    unittest.main()
