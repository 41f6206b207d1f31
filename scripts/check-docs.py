#!/usr/bin/env python3
"""Documents say what is there: links lead to files and headings, listings are parts of the files that they name, and
docs/operations.md has every state, every line that the log has as warn or error, and none that is not there.

A listing is a fenced block behind a line `<!-- from FILE -->`; its lines stand in that file as they are, one behind the other. A
line `...` stands for lines that are left out.
"""

import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
LISTING = re.compile(r"^<!-- from (\S+) -->\n```\w*\n(.*?)^```", re.M | re.S)
LINK = re.compile(r"\]\(([^)\s]+)\)")


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def anchors(text):
    """What a heading is called in a link."""
    headings = re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.M)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}


def wrong_links(path, text):
    for link in LINK.findall(FENCE.sub("", text)):
        target, _, anchor = link.partition("#")
        if re.match(r"\w+:", link):
            continue
        file = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
        if not os.path.exists(file):
            yield f"there is no {link}"
        elif anchor and anchor not in anchors(read(file)):
            yield f"there is no heading for {link}"


def is_in(listing, text):
    at = 0
    for part in re.split(r"^\.\.\.\n", listing, flags=re.M):
        at = text.find(part, at) + len(part)
        if at < len(part):
            return False
    return True


def wrong_listings(text):
    for name, listing in LISTING.findall(text):
        path = os.path.join(ROOT, name)
        if not os.path.exists(path):
            yield f"a listing is from {name}, which is not there"
        elif not is_in(listing, read(path)):
            yield f"a listing is not in {name} as it is: {listing.splitlines()[0].strip()}"


# --- lines of the log ---


def arguments(source):
    """Those of each KINF__LOG() of a file, without module: level, form, values."""
    for call in re.finditer(r"\bKINF__LOG\(", source):
        depth, found, at = 1, [""], call.end()
        while depth > 0:
            piece = re.compile(r'"(?:[^"\\]|\\.)*"|[^"]').match(source, at)[0]
            depth += (piece == "(") - (piece == ")")
            if piece == "," and depth == 1:
                found.append("")
            elif depth > 0:
                found[-1] += piece
            at += len(piece)
        yield [" ".join(argument.split()) for argument in found[1:]]


def texts(argument):
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', argument))


def messages(form, values):
    """What does not change of it: in front of the first value, behind one that begins it, or the texts of that one."""
    text = re.sub(r"^%s: ", "", texts(form))
    if text == "%s":
        return re.findall(r'"([^"]*)"', values[0])
    return [re.split(r"[ :,]*%| \w+=", text)[0]]


def log_lines():
    """Message -> whether it may be a warning or an error."""
    found = {}
    for path in sorted(glob.glob("src/*/*.c")):
        for level, form, *values in arguments(read(path)):
            for message in messages(form, values):
                is_loud = level not in ("KINF_LOG_DEBUG", "KINF_LOG_INFO") and not path.startswith("src/sim/")
                found[message] = found.get(message, False) or is_loud
    return found


def wrong_log_lines(text):
    section = text.split("## Lines of the log")[1].split("\n## ")[0]
    rows = "\n".join(line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `"))
    known = log_lines()
    for message, is_loud in known.items():
        if is_loud and message != "said" and message not in rows:  # as a plugin wishes
            yield f"the log may say: {message}"
    for told in re.findall(r"`([^`]+)`", rows):
        if not any(message and message in told or told.split(" ...")[0] in message for message in known):
            yield f"no line of the log is like: {told}"


def wrong_states(text):
    """Of informers, and of types on demand."""
    section = text.split("## While it runs")[1].split("\n## ")[0]
    told = set(re.findall(r"`([a-z ]+)`", " ".join(re.findall(r"^\| (`.*?) \|", section, re.M))))
    known = set()
    for path, table in (("src/include/kinformer/informer.h", "KINF_INFORMER_STATES"), ("src/serve/demand.h", "KINF__DEMAND_STATES")):
        rows = re.search(rf"#define {table}\(X\)((?:.*\\\n)*.*\n)", read(path))[1]
        known |= set(re.findall(r'X\(\w+, "(.*?)"', rows))
    if told != known:
        yield f"states: {sorted(told ^ known)}"


def main():
    os.chdir(ROOT)
    paths = sorted(glob.glob("*.md") + glob.glob("*/*.md") + glob.glob("*/*/*.md"))
    paths = [path for path in paths if not path.startswith("build/")]
    found = [f"{path}: {what}" for path in paths
             for what in [*wrong_links(path, read(path)), *wrong_listings(read(path))]]
    found += ["docs/operations.md: " + what for check in (wrong_log_lines, wrong_states)
              for what in check(read("docs/operations.md"))]
    for line in found:
        print("check-docs: " + line)
    print(f"check-docs: {len(paths)} files, {len(found)} wrong" if found else "check-docs: ok")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
