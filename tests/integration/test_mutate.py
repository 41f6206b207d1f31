"""scripts/mutate.py: what it changes, what a test kills, what makes no difference, and what the report keeps."""

import contextlib
import io
import os
import sys
import tempfile
import unittest
import unittest.mock

from harness import ROOT

sys.path.insert(0, os.path.join(ROOT, "scripts"))
import mutate  # noqa: E402

SOURCE = """\
int smaller(int a, int b);
void forget(int n);
static const int known[] = { 1, 2 };

/* a < b is no code here. */
int smaller(int a, int b)
{
    int twice = known[0] * 2;

    forget(twice);
    forget(a); // is not looked at
    if (a < b)
        return a;
    return b + 0 * sizeof "x < 1";
}
"""
TEST = """\
int smaller(int a, int b);
static int n_forgotten;
void forget(int n) { n_forgotten += n; }
int main(void) { return smaller(1, 2) != 1 || smaller(3, 2) != 2 || n_forgotten != 8; }
"""


def changes():
    return {f"{mutant.line} {mutant.change}" for mutant in mutate.mutants("smaller.c", SOURCE)}


class Changes(unittest.TestCase):
    def test_each_kind_of_change_is_made_in_functions_alone(self):
        self.assertLessEqual({"12 `<` → `<=`", "8 `2` → `3`", "12 never `a < b`", "12 always `a < b`", "10 no `forget(twice)`",
                              "14 `+` → `-`"}, changes())
        self.assertFalse([change for change in changes() if change.split()[0] in {"3", "5"}])
        self.assertFalse([change for change in changes() if "`1` →" in change], "a text is no constant")

    def test_arguments_are_swapped_and_the_rest_stays_as_it_is(self):
        text = "int f(void)\n{\n    return add(one(1),\n               two) == 3;\n}\n"
        swapped = [mutant.applied_to(text) for mutant in mutate.mutants("f.c", text) if mutant.change.endswith("swapped")]
        self.assertEqual(swapped, [text.replace("one(1)", "x").replace("two", "one(1)").replace("x", "two")])


class Results(unittest.TestCase):
    def setUp(self):
        # Containers may forbid namespaces, and these changes kill nobody.
        self.enterContext(unittest.mock.patch.object(mutate, "CONFINED", []))
        self.enterContext(contextlib.redirect_stdout(io.StringIO()))
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path, test, program = (os.path.join(folder.name, name) for name in ("smaller.c", "test.c", "test"))
        for path, text in ((self.path, SOURCE), (test, TEST)):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        # As of an archive, the unchanged object is linked when nothing before it has its functions.
        for command in (["cc", "-c", self.path, "-o", f"{folder.name}/smaller.o"], ["ar", "rcs", f"{folder.name}/smaller.a", f"{folder.name}/smaller.o"]):
            mutate.subprocess.run(command, check=True)
        link = ["cc", "-w", test, f"{folder.name}/smaller.a", "-o", program]
        mutate.subprocess.run(link, check=True)
        build = mutate.Build("debug", ["cc", "-O0"], {"test_smaller": link}, 15)
        self.trial = mutate.Trial([build])

    def result(self, change):
        found = [mutant for mutant in mutate.mutants(self.path, SOURCE) if f"{mutant.line} {mutant.change}" == change]
        return list(self.trial.run(found, 1).values())

    def test_a_change_that_the_test_sees_is_killed_and_others_survive_or_are_equal(self):
        self.assertEqual(self.result("12 never `a < b`"), ["test_smaller"])
        self.assertEqual(self.result("10 no `forget(twice)`"), ["test_smaller"])
        self.assertEqual(self.result("12 `<` → `<=`"), [None])
        self.assertEqual(self.result("14 `+` → `-`"), ["equal"])

    def test_the_report_keeps_reasons_and_counts_anew_what_is_killed_since(self):
        found = {f"{mutant.line} {mutant.change}": mutant for mutant in mutate.mutants("smaller.c", SOURCE)}
        survivor, other, killed = found["12 `<` → `<=`"], found["8 `2` → `3`"], found["12 never `a < b`"]
        results = {survivor: None, other: None, killed: "test_smaller"}
        row, lines = mutate.folder_section("smaller", (1, 0, 0), results, [])
        self.assertEqual(row, "| smaller | 1 | 3 | 0 | 1 | 2 | 0 | 33 % |")
        self.assertEqual(lines, [mutate.entry(other, "survives"), mutate.entry(survivor, "survives")])
        reasoned = [lines[0], mutate.entry(survivor, "equivalent: equal numbers are one").replace(":12:", ":10:")]
        again = {survivor: None, other: "test_smaller"}
        row, lines = mutate.folder_section("smaller", mutate.without_survivors(row), again, reasoned)
        self.assertEqual(row, "| smaller | 1 | 3 | 0 | 2 | 1 | 1 | 100 % |")
        self.assertEqual(lines, [mutate.entry(survivor, "equivalent: equal numbers are one")])
        report = f"{mutate.HEAD}{row}\n\n## smaller\n\n{lines[0]}\n"
        self.assertEqual(mutate.sections(report), {"smaller": (row, lines)})
        with unittest.mock.patch.object(mutate, "read", lambda path: report):
            self.assertEqual(list(mutate.survivors_of(found.values(), "smaller")), [survivor])

    def test_files_name_a_file_a_line_or_a_column(self):
        found = list(mutate.mutants("src/smaller.c", SOURCE))
        self.assertEqual(list(mutate.chosen(found, "")), found)
        self.assertEqual(list(mutate.chosen(found, "other.c,smaller.c")), found)
        self.assertEqual({mutant.line for mutant in mutate.chosen(found, "smaller.c:10,smaller.c:14")}, {10, 14})
        self.assertEqual([mutant.change for mutant in mutate.chosen(found, "smaller.c:12:11")], ["`<` → `<=`"])


if __name__ == "__main__":
    unittest.main()
