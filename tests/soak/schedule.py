"""What befalls the parts of the soak, drawn from a seed: a round is a list of steps, each at its time.

A schedule says all of what is tried, so it can be repeated, and shortened until what it showed shows no more.
"""

import collections
import json
import random

# `at`: seconds from the round's begin. `what`: fault, kill, halt, reload, act, restore; `name` which of them or whom,
# `detail` its line, its seconds.
Step = collections.namedtuple("Step", "at what name detail")

RESOURCES = ("pods", "deployments", "widgets", "leases", "*")
READS = ("list,watch,watchlist", "watch,watchlist", "list")

# What a server sends that is not so: nobody can tell, until it is listed again. These rounds end with a list; what was
# told as deleted meanwhile is no divergence, and no read by the sidecar is judged. So most rounds have none of them.
LIES = ("empty", "grow", "flip")
LYING_ROUNDS = 0.25
# Rounds with a restore, of those in which it does not lie.
RESTORING_ROUNDS = {"sim": 0.2, "cluster": 0.4}


def place(chance):
    return chance.choice((f"after={chance.randrange(8000)}", f"after={chance.randrange(60)}events",
                          f"after={chance.randrange(50, 2000)}ms"))


def fault_line(kind, chance):
    """A line of `--fault` with a fault of this kind, for those who are tested."""
    resource, reads = chance.choice(RESOURCES), chance.choice(READS)
    line = {
        "code": lambda: f"{reads} {resource} {chance.choice(('429 retry-after=1', 500, 503, 504, 403, 401, 410))}",
        "login": lambda: f"{reads} {resource} login",
        "hang": lambda: f"{reads} {resource} hang={chance.randrange(200, 4000)}ms",
        "refuse": lambda: f"watchlist {resource} refuse="
                          f"{chance.choice(('422', 'old', '400', '403', '500', 'ignored', 'endless'))}",
        "reset": lambda: f"{reads} {resource} reset {place(chance)}",
        "cut": lambda: f"{reads} {resource} cut {place(chance)}",
        "close": lambda: f"{reads} {resource} close {place(chance)}",
        "truncate": lambda: f"{reads} {resource} truncate after={chance.randrange(6000)}",
        "stall": lambda: f"{reads} {resource} stall={chance.randrange(200, 9000)}ms {place(chance)}",
        "drip": lambda: f"{reads} {resource} drip={chance.randrange(2000, 9000)}/5ms",
        # Elsewhere it may be a digit of some value, which is a lie until the object changes.
        "flip": lambda: f"{reads} {resource} flip at={chance.randrange(2)}",
        "gzip": lambda: f"list {resource} gzip={chance.randrange(100, 9000)}",
        "empty": lambda: f"list {resource} empty",
        "grow": lambda: f"list {resource} grow=1100K",
        "twice": lambda: f"watch {resource} twice",
        "error": lambda: f"watch {resource} error={chance.choice((410, 500))} after={chance.randrange(50)}events",
        "bookmark": lambda: f"watch {resource} bookmark={chance.choice(('twice', 'old', 'none'))}",
        "refused-write": lambda: f"write configmaps,leases {chance.choice((409, 429, 500, 503))}",
        "lost-answer": lambda: f"write configmaps,leases {chance.choice(('reset', 'cut', '500 late', 'hang=6s late'))}",
        "lost-request": lambda: f"write configmaps,leases {chance.choice(('reset early', 'cut early', 'hang=3s'))}",
    }[kind]()
    return f"{line} user-agent=kinformer p={chance.choice((0.3, 0.6, 1))} for={chance.randrange(2, 9)}s"


FAULTS = ("code", "login", "hang", "refuse", "reset", "cut", "close", "truncate", "stall", "drip", "flip", "gzip", "empty",
          "grow", "twice", "error", "bookmark", "refused-write", "lost-answer", "lost-request")
TRUTHFUL = tuple(name for name in FAULTS if name not in LIES)
ACTS = ("drop", "expire", "rotate")

# By what servers.py calls them: as the report does.
CLUSTER_ACTS = {"crash": "kube-apiserver killed by SIGKILL, and started", "crash_etcd": "etcd killed by SIGKILL, and started",
                "restart": "kube-apiserver ended by SIGTERM, and started", "compact": "etcd compacted",
                "withdraw_versions": "the custom resource withdrawn, and served again",
                "withdraw": "the followers' rights withdrawn, until the next quiet",
                "change_versions": "the versions of the custom resource changed",
                "rotate": "certificates of kube-apiserver and of the followers changed",
                "rotate_authority": "the authority and all its certificates changed"}

# The name of a restore, and what the report calls it.
OVERTAKEN = "overtaken"
RESTORES = {"server": "restore", OVERTAKEN: "restore, overtaken by writes before anybody looks"}

# A watch that goes on meets no fault: by these everybody asks again.
ASK_AGAIN = {**dict.fromkeys(FAULTS, "drop"),
             **dict.fromkeys(("refuse", "gzip", "empty", "grow", "drip", "truncate"), "expire")}


def draw_time(chance, seconds):
    return round(chance.uniform(0, seconds * 0.8), 2)


def fault_steps(chance, at, kind):
    """The fault, and that everybody asks again."""
    return [Step(at, "fault", kind, fault_line(kind, chance)), Step(round(at + 0.1, 2), "act", ASK_AGAIN[kind], "")]


def draw_steps(chance, seconds, parts, faults):
    """One or two; `parts`: who can be killed and halted."""
    at = draw_time(chance, seconds)
    what = chance.choices(("fault", "kill", "halt", "reload", "act"), (60, 14, 12, 4, 10))[0]
    if what == "fault":
        return fault_steps(chance, at, chance.choice(faults))[:chance.randint(1, 2)]
    if what == "act":
        return [Step(at, what, chance.choice(ACTS), "")]
    if what == "reload":
        return [Step(at, what, "kinformerd", "")]
    victims = [*parts, "server"] if what == "halt" else parts
    return [Step(at, what, chance.choice(victims), round(chance.uniform(0.1, 4), 2))]


def draw_cluster_steps(chance, seconds, parts, _):
    """The same for a real server, which has no faults on demand."""
    at = draw_time(chance, seconds)
    what = chance.choices(("kill", "halt", "reload", "act"), (25, 35, 10, 30))[0]
    if what == "act":
        return [Step(at, what, chance.choice(tuple(CLUSTER_ACTS)), "")]
    if what == "reload":
        return [Step(at, what, "kinformerd", "")]
    victims = [*parts, "server", "etcd"] if what == "halt" else parts
    return [Step(at, what, chance.choice(victims), round(chance.uniform(0.1, 6), 2))]


def draw_round(seed, number, seconds, parts, server="sim"):
    chance = random.Random(f"{seed}/{number}")
    draw, most = (draw_steps, 4 + int(seconds)) if server == "sim" else (draw_cluster_steps, 4 + int(seconds) // 3)
    steps, faults = [], FAULTS if chance.random() < LYING_ROUNDS else TRUTHFUL
    for _ in range(chance.randint(3, most)):
        steps += draw(chance, seconds, parts, faults)
    if faults is TRUTHFUL and chance.random() < RESTORING_ROUNDS[server]:
        kinds = tuple(RESTORES) if server == "cluster" else ("server",)
        steps.append(Step(round(seconds * 0.5, 2), "restore", chance.choice(kinds), ""))
    return sorted(steps)


def draw_tour(seed, seconds, parts):
    """Three short rounds in which each kind comes; in the last one the server lies."""
    chance, rounds = random.Random(seed), []
    for kinds in (TRUTHFUL[::2], TRUTHFUL[1::2], LIES):
        steps = [Step(draw_time(chance, seconds), "act", name, "") for name in ACTS]
        for kind in kinds:
            steps += fault_steps(chance, draw_time(chance, seconds), kind)
        for what in ("kill", "halt"):
            steps += [Step(draw_time(chance, seconds), what, name, 1) for name in ("kinformerd", chance.choice(parts))]
        rounds.append(steps)
    rounds[0].append(Step(draw_time(chance, seconds), "halt", "server", 1))
    rounds[1].append(Step(round(seconds * 0.5, 2), "restore", "server", ""))
    rounds[2].append(Step(draw_time(chance, seconds), "reload", "kinformerd", ""))
    return [sorted(steps) for steps in rounds]


def draw_cluster_tour(seed, seconds, parts):
    """The same in one round for a real server; no two steps that cannot follow each other at once, since most take longer
    than there is until the next one."""
    chance = random.Random(seed)
    steps = [Step(draw_time(chance, seconds), "act", name, "") for name in CLUSTER_ACTS]
    killed, halted = chance.sample(parts, 2)
    steps += [Step(draw_time(chance, seconds), "kill", name, 1) for name in ("kinformerd", killed)]
    steps += [Step(draw_time(chance, seconds), "halt", name, 1) for name in ("server", "etcd", halted)]
    steps += [Step(round(seconds * part, 2), "restore", name, "") for part, name in zip((0.3, 0.7), RESTORES)]
    return sorted([*steps, Step(0, "reload", "kinformerd", "")])


def lies(steps):
    return any(step.what == "fault" and step.name in LIES for step in steps)


def withdraws(steps):
    return any(step.what == "act" and step.name == "withdraw_versions" for step in steps)


def write(path, rounds):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(rounds, file, indent=1)


def read(path):
    with open(path, encoding="utf-8") as file:
        return [[Step(*step) for step in steps] for steps in json.load(file)]


# --- shortening ------------------------------------------------------------------------------------


def shorten(steps, fails):
    """The shortest part of `steps` that still `fails`, as far as leaving out halves, quarters and single ones leads."""
    size = max(1, len(steps) // 2)
    while steps:
        for first in range(0, len(steps), size):
            shorter = steps[:first] + steps[first + size:]
            if fails(shorter):
                steps = shorter
                break
        else:
            if size == 1:
                return steps
            size = max(1, size // 2)
    return steps
