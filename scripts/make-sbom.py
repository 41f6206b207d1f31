#!/usr/bin/env python3
"""Prints the SBOM, SPDX 2.3 as JSON, of Debian packages that were built on this machine: make-sbom.py DEB...

What the programs and libraries of a package are linked with is asked of the dynamic linker; each library stands for the Debian
package that it is from, with what that is linked with in turn. Which of the licences of a package's source is that of the library
nobody can tell for all of them: they are a comment. The same packages on the same machine give the same bytes.
"""

import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time

CHANGELOG = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "debian", "changelog")
ELF_PROGRAM, ELF_LIBRARY = 2, 3


def ask(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def fields(command, package, *names):
    """Of a package: dpkg-deb's of a file, dpkg-query's of an installed one."""
    return ask(*command, "".join(f"${{{name}}}\n" for name in names), package).split("\n")[:-1]


# --- what is linked --------------------------------------------------------------------------------


def linked_files(folder):
    """The programs and shared libraries of an unpacked package."""
    for path in sorted(glob.glob(folder + "/**", recursive=True)):
        if os.path.isfile(path) and not os.path.islink(path):
            with open(path, "rb") as file:
                head = file.read(18)
            if head[:4] == b"\x7fELF" and head[16] in (ELF_PROGRAM, ELF_LIBRARY):
                yield path


def needed(path):
    return re.findall(r"\(NEEDED\).*\[(.*)\]", ask("readelf", "--dynamic", "--wide", path))


def libraries(path):
    """Name -> file of all that are loaded with it."""
    found = {}
    for line in ask("ldd", path).splitlines():
        match = re.fullmatch(r"\s*(?:(\S+) => )?(\S+)(?: \(0x\w+\))?", line)
        if line.endswith("not found"):
            raise SystemExit(f"make-sbom: {path}: {line.strip()}")
        if match and match[2].startswith("/"):
            found[match[1] or os.path.basename(match[2])] = match[2]
    return found


def package_of(library):
    """dpkg knows files by the paths that they were packed with: with or without /usr."""
    for path in dict.fromkeys((library, os.path.realpath(library), os.path.realpath(library).removeprefix("/usr"))):
        done = subprocess.run(["dpkg-query", "--search", path], check=False, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL)
        if done.returncode == 0:
            return done.stdout.partition(": ")[0]
    raise SystemExit(f"make-sbom: {library} is of no package")


# --- what is said of a package ---------------------------------------------------------------------


def licence_comment(package):
    """What its copyright file names for one part or another, if a machine can read it."""
    with open(f"/usr/share/doc/{package}/copyright", encoding="utf-8", errors="replace") as file:
        text = file.read()
    names = set(re.findall(r"^License: *(.+)$", text, re.M)) if text.startswith("Format:") else ()
    return "Debian's copyright file names: " + "; ".join(sorted(names)) if names else "see Debian's copyright file"


def entry(name, version, **more):
    return {"SPDXID": "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name), "name": name, "versionInfo": version,
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "NOASSERTION",
            "copyrightText": "NOASSERTION", **more}


def entry_of_built(deb):
    name, version = fields(("dpkg-deb", "--show", "--showformat"), deb, "Package", "Version")
    with open(deb, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    return entry(name, version, packageFileName=os.path.basename(deb), supplier="Organization: kinformer", licenseDeclared="Apache-2.0",
                 checksums=[{"algorithm": "SHA256", "checksumValue": digest}])


def entry_of_installed(package, vendor):
    name, version, architecture, source, source_version = fields(
        ("dpkg-query", "--show", "--showformat"), package, "Package", "Version", "Architecture", "source:Package", "source:Version")
    purl = f"pkg:deb/{vendor.lower()}/{name}@{version.replace('+', '%2B')}?arch={architecture}"
    return entry(name, version, supplier="Organization: " + vendor, licenseDeclared="NOASSERTION",
                 licenseComments=licence_comment(name), sourceInfo=f"built from {source} {source_version}",
                 externalRefs=[{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}])


# --- the document ----------------------------------------------------------------------------------


class Document:
    def __init__(self, debs):
        self.vendor = ask("dpkg-vendor", "--query", "vendor").strip()
        self.entries, self.links, self.ids, self.followed = {}, set(), {}, set()
        built = [self.add_built(deb) for deb in debs]
        self.described = [found for found in built if found]

    def add_built(self, deb):
        """Unless nothing in it is linked."""
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["dpkg-deb", "--extract", deb, folder], check=True)
            files = [path for path in linked_files(folder) if needed(path)]
            if not files:
                return None
            found = entry_of_built(deb)
            self.entries[found["SPDXID"]] = found
            for path in files:
                self.add_links(found["SPDXID"], path, libraries(path))
            return found

    def add_links(self, owner, path, loaded):
        """What the file needs, and what is needed by that."""
        self.followed.add(path)
        for library in map(loaded.get, needed(path)):
            target = self.add_installed(library)
            if target != owner:
                self.links.add((owner, target))
            if library not in self.followed:
                self.add_links(target, library, loaded)

    def add_installed(self, library):
        if library not in self.ids:
            found = entry_of_installed(package_of(library), self.vendor)
            self.entries.setdefault(found["SPDXID"], found)
            self.ids[library] = found["SPDXID"]
        return self.ids[library]

    def as_json(self):
        version = self.described[0]["versionInfo"]
        digest = hashlib.sha256(json.dumps(sorted(self.entries.items())).encode()).hexdigest()
        created = int(os.environ.get("SOURCE_DATE_EPOCH") or ask("dpkg-parsechangelog", "--file", CHANGELOG, "--show-field", "Timestamp"))
        described = [("SPDXRef-DOCUMENT", "DESCRIBES", found["SPDXID"]) for found in self.described]
        return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "kinformer-" + version,
                "documentNamespace": f"https://kinformer.dev/spdx/kinformer-{version}-{digest[:32]}",
                "creationInfo": {"created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(created)),
                                 "creators": ["Tool: kinformer-make-sbom-" + version]},
                "packages": [self.entries[name] for name in sorted(self.entries)],
                "relationships": [{"spdxElementId": a, "relationshipType": verb, "relatedSpdxElement": b} for a, verb, b in
                                  described + sorted((a, "DYNAMIC_LINK", b) for a, b in self.links)]}


def main(debs):
    json.dump(Document(debs).as_json(), sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main(sys.argv[1:])
