"""Client certificates: the daemon takes them for whom the API server takes them, for what it answers itself."""

import http.client
import json
import os
import ssl
import subprocess
import tempfile
import time
import unittest

from harness import PATIENCE, Daemon, cluster, config_map, needs_cluster, run_daemon, wait_until
from test_serve import Watch, ask
from test_serve_auth import Guarded, make_pair

SPACE = "certificates"
LIST = f"/api/v1/namespaces/{SPACE}/configmaps"
POLICY = """
oid_section = oids
[oids]
kubernetesUid = 1.3.6.1.4.1.57683.2
[req]
distinguished_name = none
[none]
[ca]
default_ca = any
[any]
database = {folder}/index
rand_serial = yes
unique_subject = no
new_certs_dir = {folder}
default_md = sha256
policy = optional
preserve = yes
[optional]
organizationName = optional
commonName = optional
kubernetesUid = optional
[client]
extendedKeyUsage = clientAuth
[server]
extendedKeyUsage = serverAuth
[any_usage]
extendedKeyUsage = anyExtendedKeyUsage
[no_usage]
keyUsage = digitalSignature
[authority]
basicConstraints = critical,CA:true
keyUsage = critical,keyCertSign
"""
READS = "certified"
# name: subject, usage, authority, from and to in seconds from now
CERTIFICATES = {
    "user": (f"/CN={READS}",),
    "another's": ("/CN=stranger",),
    "of a group": ("/O=cert-readers/CN=whoever",),
    "of two groups": ("/O=others/O=cert-readers/CN=whoever",),
    "administrator": ("/O=system:masters/CN=root",),
    "with a UID": (f"/CN={READS}/kubernetesUid=u-1",),
    "with two UIDs": (f"/CN={READS}/kubernetesUid=u-1/kubernetesUid=u-2",),
    "of two names": (f"/CN=stranger/CN={READS}",),
    "of two names, the other way": (f"/CN={READS}/CN=stranger",),
    "without a name": ("/O=cert-readers",),
    "anonymous": ("/O=cert-readers/CN=system:anonymous",),
    "expired": (f"/CN={READS}", "client", "ca", -86400, -3600),
    "of tomorrow": (f"/CN={READS}", "client", "ca", 3600, 86400),
    "of another authority": (f"/CN={READS}", "client", "wrong-ca"),
    "of a server": (f"/CN={READS}", "server"),
    "of any usage": (f"/CN={READS}", "any_usage"),
    "of no usage": (f"/CN={READS}", "no_usage"),
}


class Authority:
    """Issues certificates as no good authority would."""

    def __init__(self, folder):
        self.folder = folder
        self.pki = os.path.join(cluster().folder, "pki", "")
        with open(folder + "/ca.cnf", "w", encoding="utf-8") as file:
            file.write(POLICY.format(folder=folder))
        open(folder + "/index", "w", encoding="utf-8").close()
        self.n_issued = 0

    def issue(self, subject, usage="client", authority="ca", begin=-3600, end=86400):
        """The path of a certificate, without its .crt, beside its .key."""
        self.n_issued += 1
        path = f"{self.folder}/issued{self.n_issued}"
        signer = authority if os.path.sep in authority else self.pki + authority
        times = [time.strftime("%Y%m%d%H%M%SZ", time.gmtime(time.time() + offset)) for offset in (begin, end)]
        for command in (["req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-subj", subject,
                         "-keyout", path + ".key", "-out", path + ".csr"],
                        ["ca", "-batch", "-notext", "-extensions", usage, "-cert", signer + ".crt", "-keyfile", signer + ".key",
                         "-startdate", times[0], "-enddate", times[1], "-in", path + ".csr", "-out", path + ".crt"]):
            done = subprocess.run(["openssl", command[0], "-config", self.folder + "/ca.cnf", *command[1:]],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if done.returncode != 0:
                raise AssertionError(done.stdout)
        return path


class Certified(Guarded):
    """A daemon that takes certificates of the cluster's clients, too, and passes on what it does not have."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        folder = self.folder.name
        self.kubeconfig = folder + "/kubeconfig"
        self.authorities = folder + "/clients.crt"
        make_pair(folder)
        self.trust_clients_of("ca")
        with open(folder + "/config.yaml", "w", encoding="utf-8") as file:
            json.dump({"tls": {"certFile": folder + "/tls.crt", "keyFile": folder + "/tls.key",
                               "clientCAFile": self.authorities}, "auth": "delegated", "authAllowFor": "1s", "authDenyFor": "1s",
                       "passThrough": True, "listen": ["127.0.0.1:0"], "resources": [{"resource": "configmaps"}],
                       "accessLog": folder + "/access.log"}, file)
        self.daemon = Daemon("--write-kubeconfig", self.kubeconfig, config=folder + "/config.yaml", events=False)

    def trust_clients_of(self, authority):
        with open(os.path.join(cluster().folder, "pki", authority + ".crt"), encoding="utf-8") as file:
            text = file.read()
        with open(self.authorities + ".new", "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(self.authorities + ".new", self.authorities)


class Client:
    """Whoever shows a certificate (None: none), to the daemon or to the API server."""

    def __init__(self, address, trusted, path, chain=None, version=None):
        context = ssl.create_default_context(cafile=trusted)
        if path is not None:
            context.load_cert_chain(chain or path + ".crt", path + ".key")
        if version is not None:
            context.minimum_version = context.maximum_version = version
        self.open = lambda: http.client.HTTPSConnection(address, context=context, timeout=PATIENCE)


@needs_cluster("certificates of its clients")
class Certificates(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cluster().make_namespace(SPACE)
        cls.addClassCleanup(cluster().kubectl, "delete", "namespace", SPACE, "--wait=false")
        cluster().kubectl("create", "-f", "-", stdin=config_map("one", SPACE))
        cluster().kubectl("create", "role", "reads", "-n", SPACE, "--verb=get,list,watch", "--resource=configmaps")
        cluster().kubectl("create", "rolebinding", "reads", "-n", SPACE, "--role=reads", f"--user={READS}",
                          "--group=cert-readers", "--user=reader")
        cls.authority = Authority(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.issued = {name: cls.authority.issue(*wish) for name, wish in CERTIFICATES.items()}
        cls.certified = cls.enterClassContext(Certified())

    def ours(self, path, **how):
        return Client(self.certified.address, self.certified.folder.name + "/tls.crt", path, **how)

    def real(self, path, **how):
        return Client(cluster().env["KINF_SERVER"].removeprefix("https://"), os.path.join(cluster().folder, "pki", "ca.crt"),
                      path, **how)

    def token(self, user):
        with open(os.path.join(cluster().folder, "tokens", user), encoding="utf-8") as file:
            return {"Authorization": "Bearer " + file.read().strip()}

    def verdict(self, client, headers):
        """200; whom it forbids it; or None: it is nobody, to whom the API server's 403 is our 401."""
        status, _, body = ask(client, LIST, headers=headers)
        if status == 200:
            return 200
        message = json.loads(body)["message"]
        if status == 403:
            user = message.split('User "')[1].split('"')[0]
            return None if user == "system:anonymous" else user
        self.assertEqual(status, 401, body)
        return None

    def compare(self, name, headers, **how):
        path = self.issued.get(name)
        real = self.verdict(self.real(path, **how), headers)
        # What is cached of rights is a second old at most.
        wait_until(lambda: self.verdict(self.ours(path, **how), headers) == real, f"{name}: {real}", 10)
        return real

    def test_each_is_for_whom_the_api_server_takes_it(self):
        found = {name: self.compare(name, {}) for name in [*CERTIFICATES, "none"]}
        for name, verdict in found.items():
            expected = 200
            if name in ("another's", "of two names, the other way"):
                expected = "stranger"
            elif name in ("with two UIDs", "without a name", "expired", "of tomorrow", "of another authority", "of a server",
                          "none"):
                expected = None
            self.assertEqual(verdict, expected, name)

    def test_with_a_token_the_certificate_counts_if_it_is_somebodys(self):
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            for name, user, expected in (("another's", "reader", "stranger"), ("user", "nobody", 200),
                                         ("expired", "reader", 200), ("expired", "nobody", "nobody"),
                                         ("without a name", "reader", 200), ("of a server", "nobody", "nobody"),
                                         ("of another authority", "reader", 200)):
                with self.subTest(certificate=name, token=user, version=version):
                    self.assertEqual(self.compare(name, self.token(user), version=version), expected)
        self.assertEqual(self.compare("user", {"Authorization": "Bearer no-such-token"}), 200)

    def test_an_authority_between_comes_with_it(self):
        between = self.authority.issue("/CN=between", "authority")
        path = self.authority.issue(f"/CN={READS}", "client", between)
        with open(path + ".chain", "w", encoding="utf-8") as chain:
            for part in (path, between):
                with open(part + ".crt", encoding="utf-8") as file:
                    chain.write(file.read())
        for how, expected in (({}, None), ({"chain": path + ".chain"}, 200)):
            self.assertEqual(self.verdict(self.real(path, **how), {}), expected)
            self.assertEqual(self.verdict(self.ours(path, **how), {}), expected)

    def test_what_is_passed_on_needs_a_token_and_says_so(self):
        client = self.ours(self.issued["administrator"])

        def send(method, target, headers):
            connection = client.open()
            try:
                connection.request(method, target, headers={**headers, "Content-Type": "application/json"},
                                   body=config_map("made", SPACE) if method == "POST" else None)
                answer = connection.getresponse()
                return answer.status, answer.read().decode()
            finally:
                connection.close()

        for method, target in (("POST", LIST), ("DELETE", LIST + "/made"), ("GET", "/api/v1/nodes"), ("GET", "/openapi/v2")):
            status, body = send(method, target, {})
            self.assertEqual(status, 401, body)
            self.assertIn("needs a bearer token of yours (a client certificate is good for what is read here)", body)
        # By the token's rights, not by the certificate's.
        self.assertEqual(send("POST", LIST, self.token("nobody"))[0], 403)
        self.assertEqual(send("POST", LIST, self.token("admin"))[0], 201)
        self.assertEqual(send("DELETE", LIST + "/made", self.token("admin"))[0], 200)

    def test_pages_and_discovery_are_for_those_who_may(self):
        administrator, stranger = (self.ours(self.issued[name]) for name in ("administrator", "another's"))
        for target in ("/metrics", "/debug/state"):
            self.assertEqual(ask(administrator, target)[0], 200)
            self.assertEqual(ask(stranger, target)[0], 403)
        self.assertEqual(ask(stranger, "/api/v1")[0], 200)

    def test_kubectl_with_a_certificate_reads(self):
        path = self.issued["of a group"]
        out = self.certified.kubectl("--client-certificate", path + ".crt", "--client-key", path + ".key", "get", "configmaps",
                                     "-n", SPACE, "-o", "name")
        self.assertIn("configmap/one", out)

    def test_the_access_log_names_the_user(self):
        self.assertEqual(self.verdict(self.ours(self.issued["another's"]), {}), "stranger")

        def lines():
            with open(self.certified.folder.name + "/access.log", encoding="utf-8") as file:
                return [json.loads(line) for line in file]
        wait_until(lambda: any(line.get("user") == "stranger" and line["code"] == 403 for line in lines()), "the line")

    def test_a_watch_ends_with_its_certificate(self):
        path = self.authority.issue(f"/CN={READS}", "client", "ca", -3600, 6)
        with Watch(self.ours(path), LIST + "?watch=1&timeoutSeconds=3600") as watch:
            self.assertEqual(watch.status, 200)
            watch.until(lambda event: False)
        self.assertEqual(self.verdict(self.ours(path), {}), None)

    def test_authorities_are_read_again_also_for_connections_that_are_there(self):
        client = self.ours(self.issued["user"])
        connection = client.open()
        self.addCleanup(connection.close)

        def code():
            connection.request("GET", LIST)
            answer = connection.getresponse()
            answer.read()
            return answer.status
        self.assertEqual(code(), 200)
        self.addCleanup(self.certified.trust_clients_of, "ca")
        self.certified.trust_clients_of("wrong-ca")
        wait_until(lambda: code() == 401, "the certificate is nobody's")
        self.assertEqual(self.verdict(self.ours(self.issued["of another authority"]), {}), 200)
        with open(self.certified.authorities, "w", encoding="utf-8") as file:
            file.write("no certificate")
        wait_until(lambda: code() == 401 and
                   self.certified.daemon.count_log("the clients' authorities stay as they were") == 1, "the bad file told")
        self.certified.trust_clients_of("ca")
        wait_until(lambda: code() == 200, "the certificate is somebody's again")


class Configuration(unittest.TestCase):
    def test_what_is_wrong_with_the_authorities_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            make_pair(folder)
            for file, auth, words in ((folder + "/none.crt", "auth: delegated", [folder + "/none.crt", "No such file"]),
                                      (folder + "/tls.key", "auth: delegated", [folder + "/tls.key", "no certificate"]),
                                      (folder + "/tls.crt", "", ["clientCAFile needs 'auth: delegated'"])):
                config = folder + "/config.yaml"
                with open(config, "w", encoding="utf-8") as out:
                    out.write(f"tls: {{certFile: {folder}/tls.crt, keyFile: {folder}/tls.key, clientCAFile: {file}}}\n"
                              f"{auth}\nlisten: ['127.0.0.1:0']\nresources: [{{resource: pods}}]\n")
                code, _, err = run_daemon("--kubeconfig", cluster().kubeconfig(), "--config", config, "--check-config")
                self.assertEqual(code, 2, err)
                for word in words:
                    self.assertIn(word, err)


if __name__ == "__main__":
    unittest.main()
