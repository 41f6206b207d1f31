"""The soak's report: what was tried, what was told, and what diverged."""

import subprocess

import schedule
from clients import NAMES
from harness import ROOT
from servers import ClusterServer, SimServer

HEAD = """# The soak

Written by `{command}`: {result}{short}.

| | |
|---|---|
| server | {server} |
| commit, build | {commit}, `MODE={mode}` |
| seed | {seed} |
| rounds, of {round:g} s each and the quiet behind it | {n_rounds} |
| time | {minutes:.0f} min |
| writes, {n_writes_second:.0f} a second | {n_writes} |
| **events told and judged**, {n_events_second:.0f} a second | **{n_events}** |
| lists and watches that were asked for | {n_reads} |
| restarts of followers, kinformerd, clients | {n_restarts} |
| rounds in which the server lied, too | {n_lying} |
| writes through the sidecar, each read again there | {n_sessions} |
| of these not answered | {n_unread} |
| of these judged: not while the server lied, nor behind a restore | {n_judged} |
| terms of leaders | {n_terms} |
| longest time from a write's answer to its being told | {staleness:.1f} s |
| **divergences** | **{n_divergences}** |

"""

WHO = {
    "by-key": "a library client, its queue by key",
    "in-order": "one in order, by watch lists",
    "coalesce": "one that is slow, and whose changes merge",
    "namespaces": "one of two namespaces of the four",
    "shard-0-2": "the first half, by uid",
    "shard-1-2": "the other half",
    "controller-a": "a controller with a queue behind a Lease",
    "controller-b": "another",
    "kinformerd": "the daemon's own events",
    "watcher": "a raw client of its sidecar",
}

SERVERS = {"sim": "kinformer-sim", "cluster": "etcd and kube-apiserver"}
HALTED = {"sim": SimServer.HALTED, "cluster": ClusterServer.HALTED}


def commit():
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], stdout=subprocess.PIPE, text=True,
                          check=False)
    return done.stdout.strip()


def command(arguments):
    """How it is repeated; where it left its files does not count."""
    numbers = ((name, getattr(arguments, name)) for name in ("events", "seconds", "seed", "rate", "round", "patience"))
    given = [f"--{name} {value:.10g}" for name, value in numbers if value]
    given += [f"--{name} {value}" for name, value in (("server", arguments.server), ("mode", arguments.mode))]
    return f'make soak ARGS="{" ".join(given)}"'


def short(run):
    """Why it is not as long as it was to be."""
    asked = run.arguments.events
    return f"; its time was over behind {run.n_events()} of {asked} events" if asked and run.n_events() < asked else ""


def figures(run, problem):
    totals, seconds = run.totals, max(run.seconds, 1)
    return {
        "command": command(run.arguments), "short": "" if problem else short(run),
        "result": "it diverged" if problem else "nothing diverged", "commit": run.commit, "mode": run.arguments.mode,
        "seed": run.arguments.seed, "server": SERVERS[run.arguments.server],
        "round": run.arguments.round, "n_rounds": len(run.rounds),
        "n_lying": sum(map(schedule.lies, run.rounds)), "minutes": seconds / 60,
        "n_writes": totals["writes"], "n_writes_second": totals["writes"] / seconds, "n_events": run.n_events(),
        "n_events_second": run.n_events() / seconds, "n_reads": run.n_reads or "not counted",
        "n_restarts": sum(stream["connections"] - 1 for stream in run.streams.values()),
        "n_sessions": totals["sessions"], "n_unread": totals["unread"], "n_judged": totals["judged"],
        "n_terms": totals["terms"],
        "staleness": max(stream["staleness"] for stream in run.streams.values()) / 1000,
        "n_divergences": totals["divergences"]}


def faults(run):
    lines = ["| fault | how often |", "|---|---|"]
    of_server = (*schedule.FAULTS, *schedule.ACTS) if run.arguments.server == "sim" else schedule.CLUSTER_ACTS.values()
    halts = [f"SIGSTOP of {name}" for name in HALTED[run.arguments.server]]
    restores = schedule.RESTORES.values() if run.arguments.server == "cluster" else ("restore",)
    names = (*of_server, *restores, *halts, "SIGKILL", "SIGSTOP", "reload")
    lines += [f"| {name} | {run.tally[name]} |" for name in names]
    return lines


def streams(run):
    lines = ["| who | | starts | events | longest staleness, s |", "|---|---|---|---|---|"]
    for name, stream in sorted(run.streams.items()):
        lines.append(f"| `{name}` | {WHO.get(name, '')} | {stream['connections']} | {stream['events']} | "
                     f"{stream['staleness'] / 1000:.1f} |")
    return lines


def clients(run):
    lines = ["Others' clients of the sidecar, which are compared with the server whenever all is quiet:", "",
             "| who | starts | lines |", "|---|---|---|"]
    lines += [f"| `{name}` | {n_starts} | {n_lines} |" for name, (n_starts, n_lines) in sorted(run.clients.items())]
    missing = [name for name in NAMES if name not in run.clients]
    return lines + (["", f"Not there: {', '.join(missing)}."] if missing else [])


def write(path, run, problem):
    text = HEAD.format(**figures(run, problem))
    text += "\n".join(["## Faults", "", *faults(run), "", "## Followers", "", *streams(run), "", *clients(run), ""])
    if problem:
        text += f"\n## What diverged\n\n```\n{problem}\n```\n"
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
