#!/usr/bin/env python3
"""Makes kinformerd's container image without a registry and without a container engine.

    make-image.py PROGRAM ARCHIVE.tar    the image, as an OCI archive
    make-image.py --tree PROGRAM DIR     what is in it, as files: Dockerfile's last stage copies them

In it are the program, stripped, the shared libraries that it is linked with, from the Debian packages installed here,
authorities, a user, and of each package the copyright file and its entry in dpkg's database, by which scanners know what
is there. No shell, nothing else. How it is run Dockerfile says: USER, ENTRYPOINT and LABEL are read there.

The same program and packages make the same bytes: entries are sorted, all are root's, and times are SOURCE_DATE_EPOCH
(0). A library that is of no package, or not as its package has it, ends it: nobody could say what would be shipped.
"""

import functools
import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
EPOCH = int(os.environ.get("SOURCE_DATE_EPOCH", "0"))
# As the Go project calls them, where Debian does otherwise.
ARCHITECTURES = {"i386": "386", "ppc64el": "ppc64le"}
# What else of packages is in it: the authorities, the name of the distribution, and licences that copyright files name.
OTHER_FILES = {"ca-certificates": r"/usr/share/ca-certificates/.*\.crt",
               "base-files": r"/usr/lib/os-release|/usr/share/common-licenses/.*"}
TEXTS = {
    "etc/passwd": "root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n",
    "etc/group": "root:x:0:\nnonroot:x:65532:\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
LINKS = {"lib": "usr/lib", "lib64": "usr/lib64", "etc/os-release": "../usr/lib/os-release"}


def run(*command):
    done = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, env={**os.environ, "LC_ALL": "C"})
    return done.stdout


def read(path):
    with open(path, "rb") as file:
        return file.read()


# --- what is in it ---------------------------------------------------------------------------------


def package_of(path):
    """Of a file, which may be known by its name from before /lib was a part of /usr."""
    found = subprocess.run(["dpkg-query", "-S", path, path.removeprefix("/usr")], check=False, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    if not found:
        sys.exit(f"make-image: {path} is of no Debian package")
    return found.partition(": ")[0]


@functools.cache
def sums_of(package):
    lines = run("dpkg-query", "--control-show", package, "md5sums").splitlines()
    return {line.partition("  ")[2]: line.partition("  ")[0] for line in lines}


def check_sum(package, path, content):
    sums, name = sums_of(package), path.lstrip("/")
    if sums.get(name, sums.get(name.removeprefix("usr/"))) != hashlib.md5(content).hexdigest():
        sys.exit(f"make-image: {path} is not as the package {package} has it")


class Tree:
    """Path -> content of a file, or the target of a link in a list of its own."""

    def __init__(self):
        self.files, self.links, self.programs, self.packages = {}, dict(LINKS), set(), set()

    def add_packaged(self, path, package=None):
        """A file, or a link and what it leads to in the same folder."""
        place = os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))
        if os.path.islink(place):
            self.links[place.lstrip("/")] = os.readlink(place)
            self.add_packaged(os.path.join(os.path.dirname(place), os.readlink(place)), package)
            return
        package, content = package or package_of(place), read(place)
        check_sum(package, place, content)
        self.packages.add(package)
        self.files[place.lstrip("/")] = content

    def add_program(self, path):
        with tempfile.NamedTemporaryFile() as stripped:
            run("strip", "-o", stripped.name, path)
            self.files["usr/local/bin/kinformerd"] = read(stripped.name)
        self.programs.add("usr/local/bin/kinformerd")
        self.files["usr/share/doc/kinformerd/LICENSE"] = read(os.path.join(ROOT, "LICENSE"))
        for library in re.findall(r"(/\S+) \(0x", run("ldd", path)):
            self.add_packaged(library)
        # The loader, which is a program, is a library to ldd.
        self.programs |= {name for name in self.files if "/ld-linux" in name}

    def add_others(self):
        for package, pattern in OTHER_FILES.items():
            for path in filter(re.compile(pattern).fullmatch, run("dpkg-query", "-L", package).splitlines()):
                self.add_packaged(path, package)
        authorities = sorted(name for name in self.files if name.startswith("usr/share/ca-certificates/"))
        self.files["etc/ssl/certs/ca-certificates.crt"] = b"".join(self.files.pop(name) for name in authorities)
        self.files.update({name: text.encode() for name, text in TEXTS.items()})

    def add_papers(self):
        for package in self.packages:
            name = package.partition(":")[0]
            self.files[f"usr/share/doc/{name}/copyright"] = read(f"/usr/share/doc/{name}/copyright")
            self.files[f"var/lib/dpkg/status.d/{name}"] = run("dpkg-query", "-s", package).encode()

    def folders(self):
        return {path[:at.start()] for path in [*self.files, *self.links] for at in re.finditer("/", path)}

    def entries(self):
        """(name, mode, content, target) of all, in order."""
        for name in sorted({*self.folders(), *self.files, *self.links}):
            if name in self.links:
                yield name, 0o777, None, self.links[name]
            elif name in self.files:
                yield name, 0o755 if name in self.programs else 0o644, self.files[name], None
            else:
                yield name, 0o755, None, None


def make_tree(program):
    tree = Tree()
    tree.add_program(program)
    tree.add_others()
    tree.add_papers()
    return tree


def write_tree(tree, folder):
    for name, mode, content, target in tree.entries():
        path = os.path.join(folder, name)
        if target is not None:
            os.symlink(target, path)
        elif content is None:
            os.makedirs(path)
            os.chmod(path, mode)
        else:
            with open(path, "wb") as file:
                file.write(content)
            os.chmod(path, mode)


# --- the archive -----------------------------------------------------------------------------------


def pack(entries):
    """(name, mode, content or None for a folder, target of a link) of each -> a tar."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, mode, content, target in entries:
            entry = tarfile.TarInfo(name)
            entry.mode, entry.mtime = mode, EPOCH
            if target is not None:
                entry.type, entry.linkname = tarfile.SYMTYPE, target
            elif content is None:
                entry.type = tarfile.DIRTYPE
            else:
                entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content or b""))
    return packed.getvalue()


def digest(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


def image_config():
    """What Dockerfile says of the last stage."""
    text = read(os.path.join(ROOT, "Dockerfile")).decode().rpartition("\nFROM ")[2]
    said = {word: re.findall(rf"^{word} (.*)$", text, re.M) for word in ("USER", "ENTRYPOINT", "LABEL")}
    return {"User": said["USER"][0], "Entrypoint": json.loads(said["ENTRYPOINT"][0]), "WorkingDir": "/",
            "Env": ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
            "Labels": {label.partition("=")[0]: label.partition("=")[2].strip('"') for label in said["LABEL"]}}


class Archive:
    """An OCI layout: blobs by their digests, and what names them."""

    def __init__(self):
        self.blobs = {}

    def add(self, media_type, content):
        content = content if isinstance(content, bytes) else json.dumps(content, sort_keys=True).encode()
        self.blobs["blobs/sha256/" + digest(content).partition(":")[2]] = content
        return {"mediaType": "application/vnd.oci.image." + media_type, "digest": digest(content), "size": len(content)}

    def write(self, path, manifest):
        texts = {"oci-layout": {"imageLayoutVersion": "1.0.0"},
                 "index.json": {"schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json",
                                "manifests": [manifest]}}
        files = {**self.blobs, **{name: json.dumps(text, sort_keys=True).encode() for name, text in texts.items()}}
        folders = [(name, 0o755, None, None) for name in ("blobs", "blobs/sha256")]
        content = pack(folders + [(name, 0o644, files[name], None) for name in sorted(files)])
        with open(path, "wb") as file:
            file.write(content)
        return len(content)


def write_archive(tree, path, version):
    layer = pack(tree.entries())
    created = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(EPOCH))
    debian = run("dpkg", "--print-architecture").strip()
    platform = {"architecture": ARCHITECTURES.get(debian, debian), "os": "linux"}
    archive = Archive()
    config = archive.add("config.v1+json", {
        **platform, "created": created, "config": image_config(),
        "rootfs": {"type": "layers", "diff_ids": [digest(layer)]},
        "history": [{"created": created, "created_by": "scripts/make-image.py"}]})
    packed = archive.add("layer.v1.tar+gzip", gzip.compress(layer, 9, mtime=0))
    manifest = archive.add("manifest.v1+json", {
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json", "config": config,
        "layers": [packed], "annotations": image_config()["Labels"]})
    size = archive.write(path, {**manifest, "platform": platform,
                                "annotations": {"org.opencontainers.image.ref.name": version}})
    print(f"{path}: kinformerd {version}, {manifest['digest']}\n{size / 1e6:.1f} MB, unpacked {len(layer) / 1e6:.1f} MB, "
          f"of {len(tree.packages)} Debian packages")


def main():
    is_tree = sys.argv[1] == "--tree"
    program, target = sys.argv[2:] if is_tree else sys.argv[1:]
    tree = make_tree(program)
    if is_tree:
        write_tree(tree, target)
    else:
        write_archive(tree, target, run(program, "--version").split()[1])


if __name__ == "__main__":
    main()
