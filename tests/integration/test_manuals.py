"""docs/man and completions/: they have what the programs and the configuration have, and what they show works."""

import glob
import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

from harness import PATIENCE, ROOT, cluster, daemon_path, run_daemon

PAGES = {"kinformerd": "kinformerd.8", "kinformer-sim": "kinformer-sim.1"}
CONFIG_PAGE = "kinformerd.yaml.5"
SAMPLE = "config/kinformerd.yaml"


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def page(name):
    return read(f"docs/man/{name}.scd")


def program_path(name):
    return os.path.join(os.path.dirname(daemon_path("asan")), name)


def literals(name):
    """The texts that a page shows as they are."""
    return [text.replace("\\\\", "\\") for text in re.findall(r"^```\n(.*?)^```$", page(name), re.S | re.M)]


def examples(name):
    """(command, what it says) of each line with a prompt, in the texts of a page."""
    found = []
    for text in literals(name):
        for part in re.split(r"^\$ ", text.replace("\\\n", " "), flags=re.M)[1:]:
            command, _, said = part.partition("\n")
            found.append((command, said))
    return found


def options_of(program):
    """Option -> the word for its value, or "", as --help has them."""
    said = subprocess.run([program_path(program), "--help"], check=True, text=True, stdout=subprocess.PIPE).stdout
    return {option: value for line in said.splitlines() if line.startswith("  --")
            for option, value in re.findall(r"(--[a-z-]+)(?: ([A-Z]+))?", line.strip().split("  ")[0])}


# --- keys: paths such as resources.indices.name ---

def keys_of_sample():
    """Those in use, and those that are commented out."""
    found, above = set(), []
    for line in read(SAMPLE).splitlines():
        leading = re.match(r"[# ]*", line)[0]
        line = re.sub(r"# ?", "", leading) + line[len(leading):]
        match = re.match(r"( *(?:- )?)([a-z]\w*):(?: |$)", line)
        if match:
            indent = len(match[1])
            above = [(i, key) for i, key in above if i < indent] + [(indent, match[2])]
            found.add(".".join(key for _, key in above))
    return {key for key in found if not key.startswith("handlers.config.")}  # those are a plugin's own


def keys_of_page():
    """Terms at the beginning of a line, and what these are in. The lists have a section of their own, by their name."""
    found, prefix = set(), ""
    for line in page(CONFIG_PAGE).splitlines():
        if line.startswith("# "):
            prefix = line[2:].lower() + "." if line in ("# HANDLERS", "# RESOURCES") else ""
        if re.match(r"\*[a-z][\w.]*\*(:|, \*)", line):
            found |= {prefix + key for key in re.findall(r"\*([a-z][\w.]*)\*", line)}
    return {".".join(key.split(".")[:n + 1]) for key in found for n in range(key.count(".") + 1)}


def keys_that_are_read():
    """What each `allowed` in src/daemon has, by its file and line."""
    folder, found = os.path.join(ROOT, "src", "daemon"), {}
    for name in sorted(os.listdir(folder)):
        text = read("src/daemon/" + name) if name.endswith(".c") else ""
        for array in re.finditer(r"\ballowed\[\] = \{(.*?)\}", text, re.S):
            found[f"{name}:{text.count(chr(10), 0, array.start()) + 1}"] = set(re.findall(r'"(\w+)"', array[1]))
    return found


class KeysTest(unittest.TestCase):
    def test_the_page_has_the_keys_of_the_sample(self):
        missing, unknown = keys_of_sample() - keys_of_page(), keys_of_page() - keys_of_sample()
        self.assertFalse(missing, f"in {SAMPLE}, and not in {CONFIG_PAGE}: {sorted(missing)}")
        self.assertFalse(unknown, f"in {CONFIG_PAGE}, and not in {SAMPLE}: {sorted(unknown)}")

    def test_both_have_the_keys_that_are_read(self):
        """A mapping of the file is the array with which it has most in common."""
        mappings = {}
        for key in keys_of_sample():
            above, _, last = key.rpartition(".")
            mappings.setdefault(above, set()).add(last)
        arrays = keys_that_are_read()
        pairs = sorted(((len(keys & documented), name, above) for name, keys in arrays.items()
                        for above, documented in mappings.items() if keys & documented), reverse=True)
        mapping_of = {}
        for _, name, above in pairs:
            if name not in mapping_of and above not in mapping_of.values():
                mapping_of[name] = above
        for name, keys in arrays.items():
            documented = mappings.pop(mapping_of[name]) if name in mapping_of else set()
            with self.subTest(name):
                self.assertFalse(keys - documented, f"not in {SAMPLE}")
                self.assertFalse(documented - keys, f"in {SAMPLE}, and not read")
        self.assertFalse(mappings, "nothing reads these")

    def test_the_chart_takes_these_and_no_others(self):
        schema = json.loads(read("charts/kinformerd/values.schema.json"))["properties"]["config"]
        self.assertEqual(set(self.keys_of_schema(schema)), keys_of_sample())

    def keys_of_schema(self, schema, above=""):
        """Where a mapping has keys of its own no others are taken."""
        self.assertIs(schema["additionalProperties"], False, above)
        for key, value in schema["properties"].items():
            yield above + key
            value = value.get("items", value) if isinstance(value, dict) else {}
            if "properties" in value:
                yield from self.keys_of_schema(value, f"{above}{key}.")

    def test_the_configurations_of_the_page_are_good(self):
        texts = literals(CONFIG_PAGE)
        self.assertGreater(len(texts), 2)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "kinformerd.yaml")
            for text in texts:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(text)
                code, _, problem = run_daemon("--check-config", "--config", path, env={"NODE_NAME": "node-1"})
                self.assertEqual(code, 0, problem + text)


class OptionsTest(unittest.TestCase):
    def test_the_pages_have_the_options_of_the_help(self):
        for program, name in PAGES.items():
            wanted = options_of(program)
            documented = set(re.findall(r"^\*(--[a-z-]+)\*(?: _([A-Z]+)_)?$", page(name), re.M))
            with self.subTest(program):
                self.assertGreater(len(wanted), 10)
                self.assertEqual(documented, set(wanted.items()))

    def test_the_pages_have_the_modules_of_the_log_and_each_logs(self):
        modules = dict(re.findall(r'X\((KINF__LOG_[A-Z]+), "(\w+)"\)', read("src/base/log.h")))
        said = "".join(re.search(r"The modules (?:that log )?are (.*?\.)", page(name), re.S)[1]
                       for name in ("kinformerd.8", "libkinformer.3"))
        self.assertEqual(set(re.findall(r"\w+", said)) - {"and"}, set(modules.values()))
        source = "".join(read(path) for path in glob.glob("src/*/*.c", root_dir=ROOT))
        self.assertEqual([name for name in modules if not re.search(rf"\b{name}\b", source)], [])

    def complete_in_bash(self, *words):
        script = 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _kinformer; printf "%s\\n" "${COMPREPLY[@]}"'
        done = subprocess.run(["bash", "-uc", script, "bash", os.path.join(ROOT, "completions", "kinformer.bash"), *words],
                              cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.stderr, "")
        return set(done.stdout.split())

    def test_bash_knows_all_options_and_which_have_a_value(self):
        for program in PAGES:
            wanted = options_of(program)
            with self.subTest(program):
                self.assertEqual(self.complete_in_bash(program, "--"), set(wanted))
                for option, value in wanted.items():
                    offered = self.complete_in_bash(program, option, "")
                    self.assertEqual(any(word.startswith("--") for word in offered), value == "", option)

    def test_bash_offers_values_and_files(self):
        for words, wanted in ((("kinformerd", "--events", ""), {"text", "json", "none"}),
                              (("kinformerd", "--events", "=", "j"), {"json"}),
                              (("kinformerd", "--events", "="), {"text", "json", "none"}),
                              (("kinformerd", "--resource", "daemon"), {"daemonsets.apps"}),
                              (("kinformerd", "--config", "config/kinformerd.y"), {"config/kinformerd.yaml"}),
                              (("kinformerd", "--listen", "unix", ":", "LIC"), {"LICENSE"}),
                              (("/bin/kinformer-sim", "--load", "config/sam"), {"config/sample.yaml"})):
            with self.subTest(words):
                self.assertEqual(self.complete_in_bash(*words), wanted)

    def test_zsh_knows_all_options_and_which_have_a_value(self):
        parts = re.split(r"^(kinformer\S+)\)$", read("completions/_kinformer"), flags=re.M)
        for program, text in zip(parts[1::2], parts[2::2]):
            with self.subTest(program):
                self.assertEqual(set(re.findall(r"'[^']*?(--[a-z-]+)(=?)\[", text)),
                                 {(option, "=" if value else "") for option, value in options_of(program).items()})

    def test_bash_completes_what_is_typed(self):
        self.check_typing(("bash", "--norc", "-i"), "source completions/kinformer.bash")

    @unittest.skipUnless(shutil.which("zsh"), "there is no zsh")
    def test_zsh_completes_what_is_typed(self):
        subprocess.run(["zsh", "-n", os.path.join(ROOT, "completions", "_kinformer")], check=True)
        self.check_typing(("zsh", "-f", "-i"), "fpath=($PWD/completions $fpath); autoload -Uz compinit; compinit -D -u")

    def check_typing(self, shell, command):
        for typed, wanted in (("kinformerd --events j\t", "--events json "),
                              ("kinformerd --events=te\t", "--events=text "),
                              ("kinformerd --resource daemo\t", "--resource daemonsets.apps "),
                              ("kinformerd --measu\t", "kinformerd --measure "),
                              ("kinformer-sim --load config/sam\t", "--load config/sample.yaml ")):
            with self.subTest(typed):
                self.assertIn(wanted, self.type_into(shell, command, typed, wanted))

    @staticmethod
    def type_into(shell, command, typed, wanted):
        """What the terminal shows, until that is `wanted` or it is in vain."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(ROOT)
            os.execvpe(shell[0], shell, {**os.environ, "TERM": "dumb"})
        try:
            os.write(terminal, f"PS1=; {command}; echo re''ady\n".encode())
            shown, end = b"", time.monotonic() + PATIENCE
            while wanted.encode() not in shown and select.select([terminal], [], [], end - time.monotonic())[0]:
                shown += os.read(terminal, 4096)
                if b"ready" in shown:
                    os.write(terminal, typed.encode())
                    shown = b""
            return shown.decode()
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(terminal)

    def test_the_server_has_the_resources_that_are_offered(self):
        offered = self.complete_in_bash("kinformerd", "--resource", "")
        self.assertEqual(offered, set(re.search(r"^resources=\((.*?)\)", read("completions/_kinformer"), re.S | re.M)[1].split()))
        arguments = [word for resource in sorted(offered) for word in ("--resource", resource)]
        code, _, problem = run_daemon("--check-config", "--online", "--kubeconfig", cluster().kubeconfig(), *arguments)
        self.assertEqual(code, 0, problem)


class ExamplesTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name in ("config", "examples"):
            os.symlink(os.path.join(ROOT, name), os.path.join(self.folder, name))
        shutil.copy(os.path.join(ROOT, SAMPLE), self.folder)
        self.env = {**os.environ, "PATH": os.path.dirname(daemon_path("asan")) + ":" + os.environ["PATH"]}

    def run_command(self, command, **env):
        done = subprocess.run(command, shell=True, cwd=self.folder, env={**self.env, **env}, text=True, timeout=PATIENCE,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 0, command + "\n" + done.stderr)
        return done.stdout

    def test_kinformerd_takes_the_commands_of_its_page(self):
        commands = [(command, said) for command, said in examples("kinformerd.8") if command.startswith("kinformerd ")]
        self.assertGreater(len(commands), 4)
        for command, said in commands:
            with self.subTest(command):
                answer = self.run_command(command + " --check-config", KUBECONFIG=cluster().kubeconfig())
                if "--check-config" in command:
                    self.assertEqual(answer, said)

    def test_what_a_measurement_says_begins_as_on_the_page(self):
        command, said = next(example for example in examples("kinformerd.8") if "--measure" in example[0])
        answer = self.run_command(command, KUBECONFIG=cluster().kubeconfig())
        names = [word.partition("=")[0] for word in said.replace(" ...", "").split()]
        self.assertEqual([word.partition("=")[0] for word in answer.splitlines()[0].split()][:len(names)], names)

    def test_kinformer_sim_runs_the_commands_of_its_page(self):
        with open(os.path.join(self.folder, "policy.yaml"), "w", encoding="utf-8") as file:
            file.write(next(text for text in literals("kinformer-sim.1") if text.startswith("users:")))
        found = [example for example in examples("kinformer-sim.1") if not example[0].startswith("kubectl")]
        self.assertGreater(len(found), 3)
        sim = None
        for command, said in found:
            with self.subTest(command):
                if command.startswith("curl"):
                    self.assertEqual(self.run_command(command.replace("curl", "curl -s")).strip(), said.strip())
                    continue
                self.stop(sim)
                sim = subprocess.Popen("exec " + command, shell=True, cwd=self.folder, env=self.env, text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                self.assertTrue(sim.stdout.readline().startswith("serving http"))
                if " --fault-listen" in command:
                    self.assertTrue(sim.stdout.readline().startswith("faults "))
        self.stop(sim)

    def stop(self, sim):
        if sim is not None:
            sim.terminate()
            _, problem = sim.communicate(timeout=PATIENCE)
            self.assertEqual(sim.returncode, 0, problem)


class NamesTest(unittest.TestCase):
    def test_what_is_named_is_there(self):
        """Paths with a slash, and targets of make."""
        targets = set(re.findall(r"^([a-z0-9_.-]+):", read("Makefile"), re.M))
        pages = [os.path.join("docs", name) for name in os.listdir(os.path.join(ROOT, "docs")) if name.endswith(".md")]
        for document in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", "tests/README.md", *pages):
            text = read(document)
            paths = re.findall(r"(?<![\w/.])(?:src|tests|scripts|config|docs|examples|\.ci)/[\w./-]*\w", text)
            self.assertEqual([path for path in paths if not os.path.exists(os.path.join(ROOT, path))], [], document)
            named = re.findall(r"(?:`|^    )make ((?:[a-z0-9_.-]+ ?)+)", text, re.M)
            self.assertEqual({target for names in named for target in names.split()} - targets, set(), document)


@unittest.skipUnless(shutil.which("scdoc") and shutil.which("man"), "there is no scdoc, or no man")
class RenderedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.shown = {}
        for name in sorted(os.listdir(os.path.join(ROOT, "docs", "man"))):
            name = name.removesuffix(".scd")
            path = os.path.join(cls.folder.name, name)
            with open(path, "wb") as file:
                subprocess.run([os.path.join(ROOT, "scripts", "man-page.sh"), f"docs/man/{name}.scd", "1.2.3", "scdoc"],
                               check=True, stdout=file)
            cls.shown[name] = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", path], text=True, check=False,
                                             env={**os.environ, "MANWIDTH": "80", "MAN_KEEP_FORMATTING": ""},
                                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def test_there_is_a_page_of_each(self):
        self.assertEqual(set(self.shown), {*PAGES.values(), CONFIG_PAGE, "libkinformer.3"})

    def test_they_are_shown_without_a_warning_and_begin_and_end_as_pages_do(self):
        for name, shown in self.shown.items():
            with self.subTest(name):
                self.assertEqual(shown.stderr, "")
                self.assertEqual(re.findall(r"^([A-Z]+)$", shown.stdout, re.M)[0], "NAME")
                self.assertIn("\nSEE ALSO\n", shown.stdout)
                self.assertRegex(shown.stdout.splitlines()[-1], r"^kinformer 1\.2\.3 ")

    def test_they_fit_a_terminal_but_for_the_program(self):
        for name, shown in self.shown.items():
            text = re.sub(r"^PROGRAM$.*?^[A-Z]", "", shown.stdout, flags=re.S | re.M)
            wide = [line for line in text.splitlines() if len(line) > 80]
            self.assertFalse(wide, name)

    def test_no_name_is_broken(self):
        for name, shown in self.shown.items():
            self.assertFalse(re.findall(r"\S+[-\u2010]$", shown.stdout, re.M), name)

    def test_the_program_of_the_library_is_that_of_the_examples(self):
        """Which is compiled and run elsewhere: no character of it is lost."""
        shown = re.search(r"^PROGRAM$.*?(^ *#include.*?)^[A-Z]", self.shown["libkinformer.3"].stdout, re.S | re.M)[1]
        program = read("examples/pod-logger/main.c").partition("*/\n")[2]
        self.assertEqual([line[11:] for line in shown.rstrip().splitlines()], program.rstrip().splitlines())

    def test_the_library_has_its_headers_each_with_what_it_is(self):
        shown = self.shown["libkinformer.3"].stdout
        said = dict(re.findall(r"^ {7}kinformer/(\S+)\n {11}(\S.*)$", shown, re.M))
        headers = set(os.listdir(os.path.join(ROOT, "src", "include", "kinformer")))
        self.assertEqual(set(said), headers)
        apart = re.findall(r"kinformer/(\w+\.\w+)", re.search(r"includes\s+them all but (.*?)\.\n", shown, re.S)[1])
        included = re.findall(r"#include <kinformer/(\S+)>", read("src/include/kinformer/kinformer.h"))
        self.assertEqual({*apart, *included, "kinformer.h"}, headers)


if __name__ == "__main__":
    unittest.main()
