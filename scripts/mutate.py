#!/usr/bin/env python3
"""Mutation tests: changes one thing in a folder of src/, and looks whether the folder's unit tests notice.

`make mutate FOLDER=deltafifo N=100 SEED=1` draws N single changes: of an operator, a constant or a condition, a call
removed, two arguments swapped. What does not compile is drawn anew. A change that gives the same object code is equivalent
and counted apart. Every other one is linked into the folder's tests, which run until one fails, twice over so that no
load of the machine kills: first as `debug` builds, where that is quick, then as `asan`, which alone sees leaks. The
folder's tests are those that include a header of it (tests_of) and take at most LONGEST seconds.

The result is the folder's part of tests/MUTATION.md. Reasons that stand there for a survivor, behind its line, are kept
as long as its line is; one that begins with "equivalent" takes it out of the share. FILES=keyed.c:120,in_order.c draws
from these files or lines alone (keyed.c:120:9: what begins at this column) and writes no report; FILES=survivors tries
again what the report says has survived, and corrects it.
"""

import collections
import concurrent.futures
import dataclasses
import functools
import glob
import hashlib
import json
import os
import re
import resource
import shlex
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
REPORT = "tests/MUTATION.md"
WORKERS = 2
OPERATORS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||", "||": "&&", "+": "-", "-": "+",
             "*": "/", "/": "*", "%": "*", "+=": "-=", "-=": "+=", "&": "|", "|": "&", "|=": "&=", "<<": ">>", ">>": "<<"}
CONSTANTS = {"0": "1", "1": "0", "true": "false", "false": "true"}
KEYWORDS = {"if", "for", "while", "switch", "return", "sizeof", "assert"}
# What glibc does nothing for.
TRACELESS = {"kinf__mutex_release", "kinf__cond_release"}
SYMMETRIC = {"strcmp", "strncmp", "memcmp", "calloc", "reallocarray"}
# What tests of every folder include.
COMMON = {"base", "object", "json", "unit", "replay"}
# What of a folder only others' tests run: upgrades, sites; requests as they come; outages, what an earlier run has left.
BORROWED = {"rest": {"forward", "tunnel", "webhook_handler"}, "serve": {"fake"}, "reflector": {"outage", "saved"}}
# A changed kill() must find nobody else's processes; what a test started ends with it.
CONFINED = ["unshare", *([] if os.getuid() == 0 else ["--user", "--map-root-user"]), "--pid", "--fork", "--kill-child",
            "--mount-proc", "sh", "-c", '"$0"; exit $?']
# Of a change that compiles with a warning only, the compiler is the test.
STRICT = ["-Werror=incompatible-pointer-types", "-Werror=int-conversion", "-Werror=discarded-qualifiers"]


# --- what may be changed ---


@dataclasses.dataclass(frozen=True)
class Mutant:
    path: str
    start: int
    end: int
    new: str
    line: int
    column: int
    change: str  # for people: what was there, and what is instead
    source: str  # the line, before

    def name(self):
        return f"{self.path}:{self.line}:{self.column} {self.change}"

    def applied_to(self, text):
        return text[:self.start] + self.new + text[self.end:]


def blanked(text):
    """The same text with spaces for what is not to be changed: comments, strings, directives, assertions, what is logged."""
    def spaces(match):
        return re.sub(r"[^\n]", " ", match[0])

    text = re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', spaces, text, flags=re.S)
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", spaces, text, flags=re.M)
    return re.sub(r"\b(?:KINF__LOG|assert|static_assert)\([^;]*\);", spaces, text)


def closing(code, at):
    """Where the bracket at `at` is closed."""
    depth = 0
    for i in range(at, len(code)):
        depth += (code[i] in "([{") - (code[i] in ")]}")
        if depth == 0:
            return i
    return len(code)


def arguments(code, opened):
    """(start, end) of each between the brackets."""
    end, found, start, i = closing(code, opened), [], opened + 1, opened + 1
    while i < end:
        if code[i] in "([{":
            i = closing(code, i)
        elif code[i] == ",":
            found.append((start, i))
            start = i + 1
        i += 1
    found.append((start, end))
    return found


def changes(text, code):
    """(start, end, new text, what it is called) of everything that can be changed, in a file's functions."""
    for match in re.finditer(r"(?<= )([-+*/%<>=!&|]{1,2}|<<|>>)(?=[ \n])", code):
        if match[0] in OPERATORS:
            yield *match.span(), OPERATORS[match[0]], None
    for match in re.finditer(r"\+\+|--", code):
        yield *match.span(), "--" if match[0] == "++" else "++", None
    for match in re.finditer(r"(?<![\w.])(\d+|true|false)(?![\w.])", code):
        if not re.search(r"^\s+(?:static |const |unsigned )*\w+ \w+\[$", code[:match.start()].rpartition("\n")[2]):
            yield *match.span(), CONSTANTS.get(match[0]) or str(int(match[0]) + 1), None
    for match in re.finditer(r"!(?=[\w(])", code):
        yield *match.span(), "", "no `!`"
    for match in re.finditer(r"\b(if|while) \(", code):
        start, end = match.end(), closing(code, match.end() - 1)
        old = " ".join(text[start:end].split())
        yield start, end, f"({text[start:end]}) && 0", f"never `{old}`"
        if match[1] == "if":
            yield start, end, f"({text[start:end]}) || 1", f"always `{old}`"
    for match in re.finditer(r"(?:[;{})]|\belse)\s*\n\s*((?:\(void\))?(\w+)\()", code):
        end = closing(code, match.end() - 1) + 1
        if match[2] not in KEYWORDS | TRACELESS and code[end:end + 1] == ";":
            old = " ".join(text[match.start(1):end].split())
            yield match.start(1), end, "\n" * text.count("\n", match.start(1), end), f"no `{old}`"
    for match in re.finditer(r"\b([a-z]\w+)\(", code):
        found = arguments(code, match.end() - 1) if match[1] not in KEYWORDS | SYMMETRIC else []
        for (start, middle), (_, end) in zip(found, found[1:]):
            first, second = text[start:middle].strip(), text[middle + 1:end].strip()
            lead = text[start:middle][:len(text[start:middle]) - len(text[start:middle].lstrip())]
            gap = text[middle + 1:end][:len(text[middle + 1:end]) - len(text[middle + 1:end].lstrip())]
            if first != second:
                yield start, end, f"{lead}{second},{gap}{first}", f"`{match[1]}`: `{first}` and `{second}` swapped"


def mutants(path, text):
    code = blanked(text)
    # Functions alone: their brackets stand at the beginning of a line.
    bodies = [match.span() for match in re.finditer(r"^\{$.*?^\}$", code, re.M | re.S)]
    for start, end, new, change in changes(text, code):
        if any(first < start and end <= last for first, last in bodies):
            line, column = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
            change = " ".join((change or f"`{text[start:end]}` → `{new}`").split())
            yield Mutant(path, start, end, new, line, column, change, text.split("\n")[line - 1].strip())


def drawn(paths, seed):
    """All in an order that stays as it is while code beside them changes."""
    found, alike = {}, collections.Counter()
    for mutant in (mutant for path in paths for mutant in mutants(path, read(path))):
        name = f"{seed} {mutant.path} {mutant.source} {mutant.change}"
        found[mutant] = hashlib.sha256(f"{name} {alike[name]}".encode()).digest()
        alike[name] += 1
    return sorted(found, key=found.get)


# --- what is built and run ---


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def compiled(command, path, text, to):
    """Whether a text compiles in the place of a file; its object code is then in `to`."""
    named = f'#line 1 "{path}"\n{text}'
    done = subprocess.run([*command, "-x", "c", "-c", "-", "-o", to], input=named, text=True, stderr=subprocess.DEVNULL, check=False)
    return done.returncode == 0


def object_code(command, path, text):
    """None if the text does not compile."""
    with tempfile.TemporaryDirectory() as folder:
        to = os.path.join(folder, "code.o")
        if not compiled(command, path, text, to):
            return None
        with open(to, "rb") as file:
            return file.read()


@functools.lru_cache(maxsize=None)
def unchanged_code(command, path):
    return object_code(command, path, read(path))


def limit(mode):
    """A mutant may write or allocate without an end."""
    os.nice(5)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 28, 1 << 28))
    if mode != "asan":  # which reserves terabytes, and has a limit of its own
        resource.setrlimit(resource.RLIMIT_AS, (1 << 32, 1 << 32))


def passes(program, mode, seconds):
    """Whether a test program ends with 0 in time. None: not in time."""
    env = {**os.environ, "KINF_TEST_MODE": mode, "ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:hard_rss_limit_mb=2000"}
    with subprocess.Popen([*CONFINED, program], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env,
                          preexec_fn=lambda: limit(mode)) as process:
        try:
            return process.wait(timeout=seconds) == 0
        except subprocess.TimeoutExpired:
            process.kill()
            return None


@functools.lru_cache(maxsize=None)
def names(test, path):
    """Whether a test includes a file's header. There are tests in C++, too."""
    header, source = path.removeprefix("src/").removesuffix("c") + "h", f"tests/unit/{test}.c"
    return os.path.exists(source) and f'"{header}"' in read(source)


class Build:
    """One mode's compile command, and the link commands and times of the tests."""

    def __init__(self, mode, compile_command, links, longest):
        self.mode = mode
        self.compile_command = [*compile_command, *STRICT]
        self.links = links  # test -> command that ends with -o and the program
        self.longest = longest
        self.seconds = {}  # test -> what it takes unchanged, of those that pass in time
        self.left_out = []

    def taken(self, test, longest):
        """What it takes unchanged; None: it fails, or takes longer."""
        started = time.monotonic()
        return time.monotonic() - started if passes(self.links[test][-1], self.mode, longest) else None

    def measure(self):
        with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
            found = dict(zip(self.links, pool.map(lambda test: self.taken(test, self.longest), self.links)))
        self.left_out = [test for test in found if found[test] is None]
        self.seconds = {test: seconds for test, seconds in found.items() if seconds is not None}

    def fails(self, test, program):
        """Whether it fails twice, or hangs: takes ten times as long as the unchanged test does at this time."""
        passed = passes(program, self.mode, 10 + 10 * self.seconds[test])
        if passed is None:
            seconds = self.taken(test, 20 * self.longest) or 20 * self.longest
            if seconds <= 2 * self.seconds[test]:
                return True
            self.seconds[test] = seconds
        return not passed and not passes(program, self.mode, 10 + 10 * self.seconds[test])

    def killer(self, mutant, folder, first):
        """The test that fails, None if none does; `first` are tried first, then those that name it."""
        changed, program = os.path.join(folder, "changed.o"), os.path.join(folder, "test")
        if not compiled(self.compile_command, mutant.path, mutant.applied_to(read(mutant.path)), changed):
            return None
        for test in sorted(self.seconds, key=lambda test: (-first[test], not names(test, mutant.path), self.seconds[test])):
            # Before the archives, whose own object is then not taken.
            link = self.links[test]
            at = next(i for i, word in enumerate(link) if word.startswith("-"))
            subprocess.run([*link[:at], changed, "-Wl,-S", *link[at:-1], program], check=True)
            if self.fails(test, program):
                return test
        return None


class Trial:
    """What becomes of mutants: a test's name, "equal", or None for one that survives."""

    def __init__(self, builds):
        self.builds = builds
        self.killers = collections.defaultdict(collections.Counter)

    def compiles(self, mutant):
        """None if it does not; otherwise whether it makes a difference to the object code."""
        command = (*self.builds[0].compile_command, "-g0")
        code = object_code(command, mutant.path, mutant.applied_to(read(mutant.path)))
        return None if code is None else code != unchanged_code(command, mutant.path)

    def result(self, build, mutant):
        with tempfile.TemporaryDirectory() as folder:
            killer = build.killer(mutant, folder, self.killers[mutant.path])
        self.killers[mutant.path][killer] += 1
        print(f"  {mutant.name()}: {f'killed by {killer}' if killer else 'survives'} ({build.mode})", flush=True)
        return killer

    def run(self, candidates, n):
        """Mutant -> result, of the first n that compile."""
        pending, results = [], {}
        for mutant in candidates:
            differs = self.compiles(mutant) if len(pending) + len(results) < n else None
            if differs is False:
                results[mutant] = "equal"
            elif differs:
                pending.append(mutant)
        for build in self.builds:
            if not pending:
                break
            build.measure()
            with concurrent.futures.ThreadPoolExecutor(WORKERS) as pool:
                results.update(zip(pending, pool.map(functools.partial(self.result, build), pending)))
            pending = [mutant for mutant in pending if results[mutant] is None]
        return results


# --- the tree ---


def includes(path, seen):
    """What a test includes, itself or by the fixtures of tests/unit."""
    if path in seen or not os.path.exists(path):
        return set()
    seen.add(path)
    found = set(re.findall(r'#include ["<]([^">]+)[">]', read(path)))
    for name in [name for name in found if name.startswith("unit/")]:
        found |= includes(f"tests/{name}", seen) | includes(f"tests/{name[:-1]}c", seen)
    return found


def tests_of(folder):
    """Those that include its headers, or its fixture; by other fixtures only if they look at no other folder's insides. Those
    that look at no insides, and make one by its public function or are named like a file. And what every public function refuses."""
    for path in sorted(glob.glob("tests/unit/test_*.c")):
        name = os.path.basename(path)[len("test_"):-2]
        included = includes(path, set())
        own = {include.split("/")[0] for include in re.findall(r'#include "([^"]+)"', read(path))} - COMMON
        is_named = name.startswith(folder) or os.path.exists(f"src/{folder}/{name}.c") or f"unit/{folder}_fixture.h" in included
        is_about = any(include.startswith(f"{folder}/") for include in included)
        is_public = not own and (f"kinf_{folder}_new(" in read(path) or os.path.exists(f"src/{folder}/{name}.c"))
        is_borrowed = name == "misuse" or name in BORROWED.get(folder, ())
        if is_borrowed or is_public or is_about and (is_named or not own or folder in own):
            yield f"test_{name}"


def make(mode, *what):
    done = subprocess.run(["make", "-s", "--no-print-directory", f"MODE={mode}", *what], stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout


def build_of(mode, tests, longest):
    programs = [f"build/{mode}/tests/{test}" for test in tests]
    make(mode, "-j2", *programs)
    # What would be linked if the tests' objects were new.
    new = [word for test in tests for word in ("-W", f"build/{mode}/tests/unit/{test}.o")]
    links = {}
    for line in make(mode, "-n", *new, *programs).splitlines():
        command = shlex.split(line) if " -o build/" in line else [""]
        if command[-1] in programs and "-c" not in command:
            links[os.path.basename(command[-1])] = command
    make(mode, "compile_commands.json", f"COMPILE_COMMANDS=build/{mode}/commands.json")
    command = shlex.split(json.loads(read(f"build/{mode}/commands.json"))[0]["command"])
    return Build(mode, command[:command.index("-c")], links, longest)


# --- the report ---

HEAD = """# Mutation tests

What `make mutate` found, folder by folder: single changes of operators, constants, conditions, removed calls and swapped
arguments, drawn by a seed, each run against the unit tests of the folder (`scripts/mutate.py`). *Equal* changes gave the same
object code, *equivalent* ones are argued to be so below; neither is in the share of the killed. The figures are those of the
last run of each folder, in which `FILES=survivors` tries again what survived before tests were added.

| folder | seed | made | equal | killed | survived | of these equivalent | killed share |
|---|---|---|---|---|---|---|---|
"""
LEFT_OUT = "- Not run, since they fail or take longer: "
ENTRY = re.compile(r"^- `(\S+?):(\d+)(:\d+)` (.*) in `(.*)`: (.*)$")


def entry(mutant, reason):
    return f"- `{mutant.path}:{mutant.line}:{mutant.column}` {mutant.change} in `{mutant.source}`: {reason}"


def sections(report):
    """Folder -> (its row, its lines)."""
    found = {}
    for part in report.split("\n## ")[1:]:
        folder, _, lines = part.partition("\n")
        row = re.search(rf"^\| {folder} \|.*$", report, re.M)
        found[folder] = row[0], [line for line in lines.split("\n") if ENTRY.match(line) or line.startswith(LEFT_OUT)]
    return found


def key_of(mutant):
    """What stays the same while lines move."""
    return mutant.path, f":{mutant.column}", mutant.change, mutant.source


def entries(lines):
    """(key, line, reason) of each."""
    matches = [ENTRY.match(line) for line in lines]
    return [(match.group(1, 3, 4, 5), int(match[2]), match[6]) for match in matches if match]


def without_survivors(row):
    """(seed, made, equal) of a row, as if what survived had not been tried."""
    _, seed, made, equal, _, survived, _, _ = (cell.strip() for cell in row.strip("|").split("|"))
    return int(seed), int(made) - int(survived), int(equal)


def folder_section(folder, counted, results, before):
    """The row and the entries of a run, with what was written about the same mutants before; `counted` is what it adds to."""
    seed, made, equal = counted
    survivors = sorted((mutant for mutant in results if results[mutant] is None), key=lambda mutant: (mutant.path, mutant.start))
    reasons = {key: reason for key, _, reason in entries(before)}
    lines = [entry(mutant, reasons.get(key_of(mutant), "survives")) for mutant in survivors]
    made, equal = made + len(results), equal + list(results.values()).count("equal")
    killed = made - equal - len(survivors)
    n_equivalent = sum(reason.startswith("equivalent") for _, _, reason in entries(lines))
    share = f"{100 * killed / (made - equal - n_equivalent):.0f} %" if made > equal + n_equivalent else "-"
    return f"| {folder} | {seed} | {made} | {equal} | {killed} | {len(survivors)} | {n_equivalent} | {share} |", lines


def write_report(folder, seed, results, left_out):
    """`seed` None: of what had survived alone."""
    found = sections(read(REPORT)) if os.path.exists(REPORT) else {}
    row, lines = found.get(folder, ("", []))
    found[folder] = folder_section(folder, (seed, 0, 0) if seed is not None else without_survivors(row), results, lines)
    if left_out:
        found[folder][1].append(LEFT_OUT + ", ".join(sorted(left_out)))
    rows = "\n".join(found[name][0] for name in sorted(found))
    parts = ["\n".join([f"## {name}", "", *(found[name][1] or ["All were killed."]), ""]) for name in sorted(found)]
    with open(REPORT, "w", encoding="utf-8") as file:
        file.write(HEAD + rows + "\n\n" + "\n".join(parts))
    print(found[folder][0])


def chosen(candidates, files):
    """Those of FILE, FILE:LINE or FILE:LINE:COLUMN, if any are named."""
    wanted = {word for word in files.split(",") if word}
    for mutant in candidates:
        name = os.path.basename(mutant.path)
        if not wanted or wanted & {name, f"{name}:{mutant.line}", f"{name}:{mutant.line}:{mutant.column}"}:
            yield mutant


def survivors_of(candidates, folder):
    """Of several that read alike the nearest."""
    for key, line, _ in entries(sections(read(REPORT))[folder][1]):
        alike = [mutant for mutant in candidates if key_of(mutant) == key]
        yield from sorted(alike, key=lambda mutant: abs(mutant.line - line))[:1]


def main(folder, n=100, seed=1, files="", longest=30):
    os.chdir(ROOT)
    subprocess.run([*CONFINED, "true"], check=True)  # or else nothing is run
    candidates = drawn(sorted(glob.glob(f"src/{folder}/*.c")), int(seed))
    is_again = files == "survivors"
    candidates = list(survivors_of(candidates, folder) if is_again else chosen(candidates, files))
    tests = list(tests_of(folder))
    trial = Trial([build_of(mode, tests, int(longest)) for mode in ("debug", "asan")])
    results = trial.run(candidates, int(n))
    if is_again or not files:
        write_report(folder, None if is_again else int(seed), results, {test for build in trial.builds for test in build.left_out})


if __name__ == "__main__":
    main(*sys.argv[1:])
