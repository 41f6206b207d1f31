"""The soak: its oracle finds each class of defect and accuses nobody who is right; and a short form of it all, on both
servers.

The oracle's own tests write the history by hand and are the followers, so they need no server.
"""

import glob
import http.server
import json
import os
import socket
import sys
import tempfile
import threading
import time
import unittest

import relay
from harness import ROOT, needs_cluster, needs_sim, wait_until

sys.path.insert(0, os.path.join(ROOT, "tests", "soak"))

import parts  # pylint: disable=wrong-import-position
import schedule  # pylint: disable=wrong-import-position
import soak  # pylint: disable=wrong-import-position

POD, KEY = "pods", "soak-0/o-1"
PATIENCE_MS = 20000
SEED, SECONDS = 4, 8  # of the short form, and of a round of it
SIM_SECONDS, CLUSTER_SECONDS = 120, 300  # of it all


class Follower:
    """What a test says for a follower."""

    def __init__(self, oracle, hello):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(oracle.path)
        self.say("hello " + hello)

    def say(self, *lines):
        self.socket.sendall("".join(line + "\n" for line in lines).encode())


def pod(rv, text="x", uid="u", name="o-1"):
    return json.dumps({"metadata": {"name": name, "namespace": "soak-0", "uid": uid, "resourceVersion": str(rv)},
                       "spec": text}, separators=(",", ":"))


def fnv(text):
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def pod_note(rv, text="x", uid="u"):
    """UID RV SUM of such a pod."""
    summed = pod(rv, text, uid)[1:].replace(f'Version":"{rv}"', 'Version":""')
    return f"{fnv(uid)} {rv} {fnv(summed)}"


@needs_sim("nothing of either server")
class OracleTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.oracle = soak.Oracle(self.folder, "asan")
        self.addCleanup(self.oracle.end)
        self.followers = []
        self.addCleanup(lambda: [follower.socket.close() for follower in self.followers])

    def follow(self, hello="f handler"):
        self.followers.append(Follower(self.oracle, hello))
        return self.followers[-1]

    def note(self, *versions, key=KEY):
        """Versions "UID RV SUM", or ("gone", RV)."""
        for version in versions:
            if isinstance(version, tuple):
                self.oracle.tell("gone", POD, key, version[1])
            else:
                self.oracle.tell("note", POD, key, version)

    def found(self, names="f"):
        """Which promises are broken, once it has settled or not."""
        settled = self.oracle.tell("settle", 300, names)["settled"]
        kinds = {promise for promise, _ in self.oracle.divergences}
        self.assertEqual(settled, "settled" not in kinds)
        return kinds

    def after(self, *lines, hello="f handler"):
        """What is found behind these lines, of an object that was 1, 2, 3, deleted at 4, and is 5 with another uid."""
        self.note("7 1 11", "7 2 12", "7 3 13", ("gone", 4), "8 5 15")
        follower = self.follow(hello)
        follower.say(*lines)
        return self.found()

    def test_who_ends_while_all_settles_is_told_behind_the_answer(self):
        def look():
            raise soak.Diverged("somebody ended")
        with self.assertRaisesRegex(soak.Diverged, "somebody ended"):
            self.oracle.tell("settle", 1500, "nobody", meanwhile=look)
        self.assertIn("divergences", self.oracle.report()[0])

    # --- who is right ---

    def test_every_change_may_be_told(self):
        self.assertEqual(self.after(f"A {POD} {KEY} 7 1 11 1", f"U {POD} {KEY} 7 2 12 1 11", f"U {POD} {KEY} 7 3 13 2 12",
                                    f"D {POD} {KEY} 7 4 13 0", f"A {POD} {KEY} 8 5 15 0"), set())

    def test_what_passed_while_a_follower_was_away_need_not_be_told(self):
        self.assertEqual(self.after(f"A {POD} {KEY} 7 1 11 1", f"D {POD} {KEY} 7 1 11 1", f"A {POD} {KEY} 8 5 15 0"), set())

    def test_an_answer_may_come_later_than_the_event(self):
        self.oracle.tell("begin", POD, KEY)
        follower = self.follow()
        follower.say(f"A {POD} {KEY} 7 1 11 0")
        self.oracle.tell("settle", 200, "g")  # it has been looked at meanwhile
        self.oracle.divergences.clear()
        self.note("7 1 11")
        self.assertEqual(self.found(), set())

    def test_a_follower_that_starts_anew_is_told_anew(self):
        self.note("7 1 11", "7 2 12")
        self.follow().say(f"A {POD} {KEY} 7 1 11 1", f"U {POD} {KEY} 7 2 12 1 11")
        self.assertEqual(self.found(), set())
        self.followers[0].socket.close()
        self.follow().say(f"A {POD} {KEY} 7 2 12 1")
        self.assertEqual(self.found(), set())

    def test_a_restored_server_goes_back(self):
        self.note("7 1 11")
        self.oracle.tell("backup")
        self.note("7 2 12")
        self.oracle.tell("restoring")
        self.follow().say(f"A {POD} {KEY} 7 1 11 1", f"U {POD} {KEY} 7 2 12 1 11", f"U {POD} {KEY} 7 1 11 2 12")
        self.oracle.tell("settle", 200, "g")  # it has been looked at meanwhile
        self.oracle.divergences.clear()
        self.oracle.tell("restore")
        self.assertEqual(self.found(), set())

    def test_a_restore_undoes_something_of_everybody_or_not(self):
        keys = [f"soak-{i}/o-1" for i in range(4)]

        def undoes():
            self.assertEqual(self.found(), set())
            return self.oracle.tell("undoes", "f")["undoes"]

        for key in keys:
            self.note("7 1 11", key=key)
        self.oracle.tell("backup")
        follower = self.follow("f handler types=pods")
        follower.say(*(f"A {POD} {key} 7 1 11 1" for key in keys))
        for i, key in enumerate(keys):
            self.note("7 2 12", key=key)
            follower.say(f"U {POD} {key} 7 2 12 1 11")
            self.assertEqual(undoes(), i == len(keys) - 1)
        self.note(("gone", 3), key=keys[0])
        follower.say(f"D {POD} {keys[0]} 7 3 12 0")
        self.assertFalse(undoes(), "it has nothing there any more")

    def test_what_a_server_does_not_serve_may_be_told_as_deleted(self):
        widget = "widgets.soak.kinformer.dev"
        self.oracle.tell("note", widget, KEY, "7 1 11")
        self.note("7 1 11")
        lines = ("A {0} {1} 7 1 11 1", "D {0} {1} 7 1 11 1", "A {0} {1} 7 1 11 1")
        for resource, right in ((widget, set()), (POD, {"history"})):
            with self.subTest(resource=resource):
                self.oracle.divergences.clear()
                self.oracle.tell("withdraws", 1)
                self.follow("f handler types=" + resource).say(*(line.format(resource, KEY) for line in lines))
                self.assertEqual(self.found(), right)
                self.followers[-1].socket.close()
        self.oracle.divergences.clear()
        self.oracle.tell("withdraws", 0)
        self.follow("f handler types=" + widget).say(*(line.format(widget, KEY) for line in lines))
        self.assertEqual(self.found(), {"history"})

    def test_a_restored_server_has_another_object_of_that_name(self):
        self.note("7 1 11")
        self.oracle.tell("backup")
        self.note("7 2 12", ("gone", 0), "8 4 14")
        self.oracle.tell("restore")
        self.note(("gone", 0))
        for lines in ((f"A {POD} {KEY} 8 4 14 1", f"D {POD} {KEY} 8 4 14 1", f"A {POD} {KEY} 7 1 11 0", f"D {POD} {KEY} 7 2 11 0"),
                      (f"A {POD} {KEY} 7 1 11 1", f"D {POD} {KEY} 7 2 11 0")):
            self.follow().say(*lines)
            self.assertEqual(self.found(), set())
            self.followers[-1].socket.close()

    def test_an_object_may_be_marked_as_deleted_before_it_is_gone(self):
        for i, total in enumerate((12, 0)):
            key = f"soak-0/o-{i}"
            self.oracle.tell("note", POD, key, "7 1 11")
            self.oracle.tell("mark", POD, key, total)
            self.oracle.tell("gone", POD, key, 0)
        names = ("told", "deleted", "missed")
        for name, lines in zip(names, (("U {} {} 7 2 12 1 11", "D {} {} 7 3 12 0"), ("D {} {} 7 3 12 0",), ("D {} {} 7 1 11 1",))):
            for i in range(2):
                key = f"soak-0/o-{i}"
                if i == 0:
                    self.follow(name + " handler")
                self.followers[-1].say(*(line.format(POD, key) for line in ("A {} {} 7 1 11 1", *lines)))
            self.assertEqual(self.found(name), set())
        self.follow("other handler").say(f"A {POD} soak-0/o-1 7 1 11 1", f"U {POD} soak-0/o-1 7 2 13 1 11")
        self.assertIn("history", self.found("other"), "that was told otherwise")

    # --- classes of defects ---

    def test_it_finds_a_lost_object(self):
        self.assertEqual(self.after(), {"settled"})

    def test_it_finds_an_object_that_is_not_the_newest(self):
        self.assertEqual(self.after(f"A {POD} {KEY} 7 3 13 1"), {"settled"})

    def test_it_finds_an_object_that_is_gone(self):
        self.note("7 1 11", ("gone", 2))
        self.follow().say(f"A {POD} {KEY} 7 1 11 0")
        self.assertEqual(self.found(), {"settled"})

    def test_it_finds_a_follower_that_is_not_there(self):
        self.assertEqual(self.found("nobody"), {"settled"})

    def test_it_finds_a_version_that_goes_back(self):
        self.assertEqual(self.after(f"A {POD} {KEY} 7 2 12 1", f"U {POD} {KEY} 7 1 11 2 12"), {"history", "settled"})

    def test_it_finds_what_is_told_twice(self):
        self.assertEqual(self.after(f"A {POD} {KEY} 8 5 15 1", f"U {POD} {KEY} 8 5 15 5 15"), {"history"})

    def test_it_finds_bytes_that_the_server_never_had(self):
        self.assertEqual(self.after(f"A {POD} {KEY} 8 5 16 1"), {"history", "settled"})

    def test_it_finds_a_wrong_old(self):
        self.assertEqual(self.after(f"A {POD} {KEY} 7 1 11 1", f"U {POD} {KEY} 7 3 13 2 12", f"D {POD} {KEY} 7 4 13 0",
                                    f"A {POD} {KEY} 8 5 15 0"), {"old"})

    def test_it_finds_a_second_add(self):
        self.assertEqual(self.after(f"A {POD} {KEY} 7 1 11 1", f"A {POD} {KEY} 8 5 15 0"), {"sequence"})

    def test_it_finds_an_update_of_what_is_not_there(self):
        self.assertIn("old", self.after(f"U {POD} {KEY} 8 5 15 5 15"))

    def test_it_finds_an_update_that_joins_two_objects(self):
        self.assertEqual(self.after(f"A {POD} {KEY} 7 3 13 1", f"U {POD} {KEY} 8 5 15 3 13"), {"old"})

    def test_it_finds_a_delete_of_what_is_not_there(self):
        self.assertEqual(self.after(f"D {POD} {KEY} 7 4 13 0", f"A {POD} {KEY} 8 5 15 0"), {"sequence"})

    def test_it_finds_a_delete_that_nobody_did(self):
        self.assertEqual(self.after(f"A {POD} {KEY} 8 5 15 1", f"D {POD} {KEY} 8 5 15 1"), {"history", "settled"})

    def test_it_finds_a_delete_with_another_state_than_the_last(self):
        self.assertEqual(self.after(f"A {POD} {KEY} 7 1 11 1", f"D {POD} {KEY} 7 4 11 0", f"A {POD} {KEY} 8 5 15 0"),
                         {"history"})

    def test_it_finds_what_is_not_followed(self):
        self.assertIn("scope", self.after(f"A {POD} {KEY} 8 5 15 1", hello="f handler namespaces=1,2"))

    def test_it_finds_what_two_shards_have_or_none(self):
        self.note("7 1 11")
        shards = [self.follow(f"{name} handler part=p") for name in "fg"]
        self.assertEqual(self.found(), {"settled"})
        shards[0].say(f"A {POD} {KEY} 7 1 11 1")
        self.oracle.divergences.clear()
        self.assertEqual(self.found(), set())
        shards[1].say(f"A {POD} {KEY} 7 1 11 1")
        wait_until(lambda: self.oracle.report()[1].get("g", {}).get("events") == 1, "both have it")
        self.assertEqual(self.found(), {"settled"})

    def test_it_finds_what_a_store_lacks_or_has_otherwise(self):
        self.note("7 1 11")
        follower = self.follow("f handler types=pods")
        follower.say(f"A {POD} {KEY} 7 1 11 1")
        self.assertEqual(self.found(), set())
        right, other, extra = f"S {POD} {KEY} 7 1 11", f"S {POD} {KEY} 7 1 12", f"S {POD} soak-0/o-2 7 1 11"
        # What should not be there is told when it comes, and at the end.
        for stored, n in (([right], 0), ([], 1), ([other], 1), ([right, extra], 2)):
            with self.subTest(stored=stored):
                self.oracle.divergences.clear()
                print("stores", PATIENCE_MS, file=self.oracle.process.stdin, flush=True)
                self.assertEqual(follower.socket.recv(6), b"check\n")
                follower.say(*stored, f"E {POD}")
                self.oracle.wait_answer("stores")
                self.assertEqual([promise for promise, _ in self.oracle.divergences], n * ["store"])

    def test_it_takes_a_followers_own_word_that_something_is_wrong(self):
        self.follow().say("X soak-0/o-1 is not in byApp=a1")
        self.assertEqual(self.found(), {"follower"})

    # --- kinformerd, and watches of the sidecar ---

    def line(self, kind, rv, old=None, **members):
        event = {"type": kind, "resource": POD, "key": KEY, "resourceVersion": str(rv), "initial": False,
                 "finalStateUnknown": False, **members}
        text = json.dumps(event, separators=(",", ":"))[:-1] + f',"object":{pod(rv)}'
        return text + (f',"oldObject":{pod(old)}' if old else "") + "}"

    def test_it_reads_the_lines_of_kinformerd(self):
        self.note(pod_note(1), pod_note(2), ("gone", 0))
        self.follow("f kinformerd").say(f'{{"type":"SYNCED","resource":"{POD}"}}', self.line("ADDED", 1),
                                        self.line("MODIFIED", 2, old=1), self.line("DELETED", 3))
        self.assertEqual(self.found(), set())

    def test_it_finds_a_wrong_old_of_kinformerd(self):
        self.note(pod_note(1), pod_note(2))
        self.follow("f kinformerd").say(self.line("ADDED", 1), self.line("MODIFIED", 2, old=2))
        self.assertEqual(self.found(), {"old"})

    def watch(self, *lines):
        self.follow("f watch").say(*lines)
        return self.found()

    def test_a_watch_may_begin_anew(self):
        self.note(pod_note(1), pod_note(2), pod_note(3))
        self.assertEqual(self.watch(f"B {POD}", f'W {POD} {{"type":"ADDED","object":{pod(1)}}}', f"E {POD}",
                                    f'W {POD} {{"type":"MODIFIED","object":{pod(2)}}}', f"B {POD}",
                                    f'W {POD} {{"type":"ADDED","object":{pod(3)}}}', f"E {POD}"), set())

    def test_it_finds_a_list_that_goes_back(self):
        self.note(pod_note(1), pod_note(2))
        self.assertEqual(self.watch(f"B {POD}", f'W {POD} {{"type":"ADDED","object":{pod(2)}}}', f"E {POD}", f"B {POD}",
                                    f'W {POD} {{"type":"ADDED","object":{pod(1)}}}', f"E {POD}"), {"history", "settled"})

    def test_it_finds_a_list_without_what_is_there(self):
        self.note(pod_note(1))
        self.assertEqual(self.watch(f"B {POD}", f'W {POD} {{"type":"ADDED","object":{pod(1)}}}', f"E {POD}", f"B {POD}",
                                    f"E {POD}"), {"history", "settled"})

    def test_it_finds_other_bytes_in_a_watch(self):
        self.note(pod_note(1))
        self.assertEqual(self.watch(f"B {POD}", f'W {POD} {{"type":"ADDED","object":{pod(1, "y")}}}', f"E {POD}"),
                         {"history", "settled"})

    def test_it_finds_an_event_that_is_lost_before_a_watch_goes_on(self):
        self.note(pod_note(1), pod_note(2))
        self.assertEqual(self.watch(f"B {POD}", f'W {POD} {{"type":"ADDED","object":{pod(1)}}}', f"E {POD}"), {"settled"})

    # --- leaders ---

    def lead(self, *lines):
        self.follow("f handler types=").say(*lines)
        return self.found()

    def test_leaders_may_follow_each_other(self):
        self.assertEqual(self.lead("L a 1 100 101", "L a 1 200 300", "L b 2 250 251", "L b 2 400 401"), set())

    def test_a_leader_that_was_halted_between_its_looks_at_the_clock_is_none_that_acts(self):
        self.assertEqual(self.lead("L b 2 250 251", "L a 1 200 9000"), set())

    def test_it_finds_two_leaders_whoever_tells_first(self):
        self.assertEqual(self.lead("L a 1 100 101", "L b 2 250 251", "L a 1 252 253"), {"leader"})
        self.oracle.divergences.clear()
        self.followers[-1].say("L a 3 500 501", "L b 4 350 351")
        self.assertEqual(self.found(), {"leader"})

    def test_it_finds_two_leaders_across_a_restore(self):
        self.oracle.tell("restore")
        self.assertEqual(self.lead("L a 5 100 101", "L b 5 300 301", "L b 4 350 351"), set())
        self.followers[-1].say("L a 5 400 401")
        self.assertEqual(self.found(), {"leader"})

    def test_it_finds_two_in_one_term(self):
        self.assertEqual(self.lead("L a 1 100 101", "L b 1 200 201"), {"leader"})


class Memory(http.server.ThreadingHTTPServer):
    """A server of objects and its sidecar in one; `is_blind`: the sidecar does not find what is there."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Request)
        self.objects, self.version = {}, 0
        self.lock = threading.Lock()
        self.is_blind = False
        self.url = f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_):
        pass  # the oracle goes without a word


class Request(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16  # an answer in one piece
    MISSING = {"kind": "Status", "code": 404, "details": {}}

    def log_message(self, *_):
        pass

    def answer(self, status, body):
        text = json.dumps(body, separators=(",", ":")).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def store(self, path, uid):
        self.rfile.read(int(self.headers["Content-Length"]))
        _, name_space, _, name = path.rsplit("/", 3)
        self.server.version += 1
        self.server.objects[path] = {"metadata": {"name": name, "namespace": name_space, "uid": uid or str(self.server.version),
                                                  "resourceVersion": str(self.server.version)}}
        return self.server.objects[path]

    def do_GET(self):
        found = None if self.server.is_blind and "Authorization" in self.headers else self.server.objects.get(self.path)
        self.answer(200 if found else 404, found or self.MISSING)

    def do_POST(self):
        body = self.rfile.peek()
        with self.server.lock:
            made = self.store(f"{self.path}/{json.loads(body)['metadata']['name']}", None)
        self.answer(201, made)

    def do_PATCH(self):
        with self.server.lock:
            made = self.store(self.path, self.server.objects[self.path]["metadata"]["uid"])
        self.answer(200, made)

    def do_DELETE(self):
        del self.server.objects[self.path.partition("?")[0]]
        self.answer(200, {"kind": "Status", "status": "Success"})


@needs_sim("nothing of either server")
class SessionTest(unittest.TestCase):
    def setUp(self):
        folder = self.enterContext(tempfile.TemporaryDirectory())
        self.server = self.enterContext(Memory())
        threading.Thread(target=self.server.serve_forever).start()
        self.addCleanup(self.server.shutdown)
        self.oracle = soak.Oracle(folder, "asan", "--server", self.server.url, "--sidecar", self.server.url, "--token", "t")
        self.addCleanup(self.oracle.end)

    def found(self):
        """Which promises some reads behind writes break."""
        self.oracle.divergences.clear()
        before = self.oracle.report()[0]["sessions"]
        self.oracle.tell("go", 1000)
        wait_until(lambda: self.oracle.report()[0]["sessions"] > before + 15, "reads")
        self.oracle.tell("pause")
        return {promise for promise, _ in self.oracle.divergences}

    def test_it_finds_a_read_that_does_not_see_the_write_before_it(self):
        self.assertEqual(self.found(), set())
        self.server.is_blind = True
        self.assertEqual(self.found(), {"session"})

    def test_what_a_sidecar_answers_that_is_lied_to_is_judged_by_nobody(self):
        """A list without its items, newer than the write, is all that the sidecar knows."""
        self.oracle.tell("lies", 1)
        self.server.is_blind = True
        self.assertEqual(self.found(), set())
        self.assertEqual(self.oracle.report()[0]["judged"], 0)
        self.oracle.tell("lies", 0)
        self.oracle.tell("forget")
        self.assertEqual(self.found(), {"session"})


class Shortening(unittest.TestCase):
    def test_the_shortest_schedule_that_shows_it_is_found(self):
        steps = list(range(23))
        self.assertEqual(schedule.shorten(steps, {5, 17}.issubset), [5, 17])
        self.assertEqual(schedule.shorten(steps, lambda _: True), [])
        self.assertEqual(schedule.shorten([3], {3}.issubset), [3])

    def test_a_schedule_is_the_same_each_time_and_survives_a_file(self):
        rounds = [schedule.draw_round(7, number, 20, ["a", "b"]) for number in range(30)]
        self.assertEqual(rounds, [schedule.draw_round(7, number, 20, ["a", "b"]) for number in range(30)])
        with tempfile.TemporaryDirectory() as folder:
            schedule.write(folder + "/rounds", rounds)
            self.assertEqual(schedule.read(folder + "/rounds"), rounds)
        drawn = {step.name for steps in rounds for step in steps}
        self.assertLess(set(schedule.FAULTS) | set(schedule.ACTS), drawn, "each kind comes")
        self.assertLess(0, sum(map(schedule.lies, rounds)), "some lie")
        self.assertLess(sum(map(schedule.lies, rounds)), len(rounds) / 2, "most do not")

    def test_each_kind_of_fault_of_a_real_server_is_drawn(self):
        rounds = [schedule.draw_round(7, number, 20, ["a", "b"], "cluster") for number in range(60)]
        drawn = {step.name for steps in rounds for step in steps}
        self.assertLess({*schedule.CLUSTER_ACTS, *schedule.RESTORES, "etcd"}, drawn)


class Rounds(unittest.TestCase):
    def run_rounds(self, rounds, seconds, *args):
        """`rounds(number)` as of soak.Run.run(). Its run, and how it diverged, if it did; then the ends of its parts' logs
        are shown."""
        with tempfile.TemporaryDirectory() as folder:
            run = soak.Run(soak.parse(["--mode", "asan", "--seed", str(SEED), "--no-clients", "--rate", "150", "--round",
                                       str(seconds), "--keep", folder, *args]))
            problem = run.run(rounds)
            for path in sorted(glob.glob(os.path.join(folder, "*", "*.log"))) if problem else ():
                with open(path, encoding="utf-8", errors="replace") as log:
                    print(f"-- {os.path.basename(path)}:\n{log.read()[-3000:]}")
        return run, problem

    def run_tour(self, server, tour, seconds):
        """The rounds of the tour, and what is drawn until the time has passed."""
        deadline = time.monotonic() + seconds

        def rounds(number):
            if number < len(tour):
                return tour[number]
            is_over = time.monotonic() > deadline
            return None if is_over else schedule.draw_round(SEED, number, SECONDS, soak.PARTS, server)

        run, problem = self.run_rounds(rounds, SECONDS, "--server", server)
        self.assertIsNone(problem, f"round {len(run.rounds) - 1}: {run.rounds[-1]}")
        self.assertGreater(run.n_events(), 500)
        self.assertEqual(run.totals["divergences"], 0)
        for name in (*soak.MODES, "kinformerd", "watcher"):
            self.assertGreater(run.streams[name]["events"], 20, name)
        return run


@needs_sim("no server at all")
class Starts(unittest.TestCase):
    def test_a_follower_waits_for_who_refuses_and_for_who_is_away_by_themselves(self):
        """Six seconds of either: it ends with the tenth of one, and says which."""
        class Refusing(relay.Handler):
            def do_GET(self):
                self.answer(404, b"{}")

        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as oracle:
            oracle.bind(folder + "/oracle")
            oracle.listen()
            with relay.listening(Refusing) as server:
                follower = parts.Part("one", folder, [os.path.join(ROOT, "build", "asan", "soak", "follower"), "one",
                                                      folder + "/oracle", "by-key"],
                                      {"KUBECONFIG": relay.kubeconfig_of(server, folder)})
                self.addCleanup(follower.process.wait)
                self.addCleanup(follower.process.kill)
                self.addCleanup(follower.process.stdin.close)
                time.sleep(6)
            time.sleep(6)
            self.assertIsNone(follower.process.poll(), follower.log_text())


@needs_sim("a server of its own")
class Soak(Rounds):
    def test_nothing_is_lost_through_faults_of_every_kind(self):
        run = self.run_tour("sim", schedule.draw_tour(SEED, SECONDS, soak.PARTS), SIM_SECONDS)
        self.assertGreater(run.totals["judged"], 0)

    def test_a_follower_with_a_defect_is_found(self):
        for defect, promise, patience in (("drop=10", "settled", "5"), ("store=5", "store", "60")):
            with self.subTest(defect=defect):
                _, problem = self.run_rounds({0: []}.get, 2, "--patience", patience, "--defect", defect)
                self.assertRegex(problem or "", rf"(?m)^{promise}: in-order: ")


@needs_cluster("its own faults, on a cluster of its own")
class ClusterSoak(Rounds):
    def test_nothing_is_lost_through_faults_of_every_kind(self):
        run = self.run_tour("cluster", [schedule.draw_cluster_tour(SEED, SECONDS, soak.MODES)], CLUSTER_SECONDS)
        for what in (*schedule.CLUSTER_ACTS.values(), *schedule.RESTORES.values(), "SIGSTOP of server", "SIGSTOP of etcd",
                     "SIGKILL", "SIGSTOP", "reload"):
            self.assertGreater(run.tally[what], 0, what)


if __name__ == "__main__":
    unittest.main()
