"""Out of results.json: RESULTS.md, its pictures, the figures in the project's README.md, and warnings."""

import hashlib
import json
import os
import re
import statistics
import subprocess

from lab import BENCH, CURL, ROOT, Failure

README = os.path.join(ROOT, "README.md")
OURS = "kinformer"
SIDECAR_FIRST = "API server"
NOTABLE = 1.2  # a ratio to curl that is worse by more than this is told

# --- numbers ---


def figure(row, name):
    """The median, or None."""
    values = row["figures"].get(name) if row and "void" not in row else None
    return statistics.median(values) if values else None


def number(value):
    """Three digits that count; none behind the point from 100 on."""
    if value is None:
        return ""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{float(f'{value:.3g}'):g}"


def spread(values):
    """Median, and between which."""
    low, high = min(values), max(values)
    text = number(statistics.median(values))
    return text if len(values) == 1 or number(low) == number(high) else f"{text} ({number(low)} to {number(high)})"


def times(value, reference):
    return f"{number(value / reference)}x" if value and reference else ""


# --- tables ---


def markdown(headings, lines):
    rows = [headings, ["---"] + ["---:"] * (len(headings) - 1), *lines]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in rows) + "\n"


def by_name(rows):
    return {row["of"]: row for row in rows}


def voids(rows):
    return "".join(f"\n`{row['of']}` is void: {row['void']}.\n" for row in rows if "void" in row)


def beside(rows, columns):
    """Clients beside each other. A column: heading, figure, names of those that it is compared with."""
    rows_of, lines = by_name(rows), []
    for row in rows:
        cells = [row["of"]]
        for _, name, references in columns:
            values = row["figures"].get(name)
            if "void" in row:
                cells += ["void"] + [""] * len(references)
            else:
                cells.append(spread(values) if values else "")
                cells += [times(figure(row, name), figure(rows_of.get(of), name)) if row["of"] != of else ""
                          for of in references]
        lines.append(cells)
    headings = [""]
    for heading, _, references in columns:
        headings += [heading] + ["to " + of for of in references]
    return markdown(headings, lines) + voids(rows)


def matrix(rows, reference=None):
    """What was measured of several, each a column; beside it how many times the reference's figure is theirs."""
    names = list(dict.fromkeys(name for row in rows for name in row["figures"]))
    headings, lines = [""], []
    for name in names:
        headings += [name] + (["ratio"] if reference and name != reference else [])
    for row in rows:
        cells = [row["of"]]
        for name in names:
            values = row["figures"].get(name)
            cells.append(spread(values) if values else "")
            if reference and name != reference:
                cells.append(times(figure(row, reference), figure(row, name)))
        lines.append(cells)
    return markdown(headings, lines)


BOTH = (CURL, OURS)
SYNC = [("first sync, s", "wall_s", BOTH), ("CPU, s", "cpu_s", BOTH), ("peak, MiB", "peak_mib", (OURS,)),
        ("after it, MiB", "settled_mib", (OURS,))]
REAL = [*SYNC, ("on the wire, MiB", "wire_mib", (OURS,))]
SATURATED = [("CPU an event, us", "cpu_us", BOTH), ("events/s", "per_s", BOTH)]
PACED = [("CPU an event, us", "cpu_us", BOTH), ("p50, ms", "p50_ms", ()), ("p99, ms", "p99_ms", (OURS,)),
         ("p99.9, ms", "p99.9_ms", ())]
RELIST = [("CPU, s", "cpu_s", (OURS,)), ("before it, MiB", "settled_mib", ()), ("peak, MiB", "peak_mib", (OURS,)),
          ("callbacks", "again", ())]


def events_text(found):
    text = "As fast as each takes them:\n\n" + beside([row for row in found["rows"] if row["rate"] == 0], SATURATED)
    for rate in sorted({row["rate"] for row in found["rows"]} - {0}):
        rows = [row for row in found["rows"] if row["rate"] == rate]
        absent = [row["of"] for row in found["rows"] if row["rate"] == 0 and row["of"] not in by_name(rows)]
        text += f"\n{rate:,} a second:\n\n" + beside(rows, PACED)
        if absent:
            text += f"\nToo many for {', '.join(absent)}.\n"
    return text


def sheet(rows, columns):
    """A line for each row; columns: heading, what it shows of the row."""
    return markdown([heading for heading, _ in columns], [[show(row) for _, show in columns] for row in rows]) + voids(rows)


def shown(name):
    return lambda row: "void" if "void" in row else spread(row["figures"][name]) if name in row["figures"] else ""


def each(name, scale):
    """Of one object."""
    return lambda row: number(figure(row, name) * scale / row["objects"]) if figure(row, name) is not None else ""


def counted(name):
    return lambda row: f"{row[name]:,}"


def name_of(row):
    return row["of"]


GROWTH = [("objects", counted("objects")), ("kB", lambda row: number(row["object_bytes"] / 1000) if "object_bytes" in row else ""), ("", name_of),
          ("first sync, s", shown("wall_s")), ("CPU, s", shown("cpu_s")), ("CPU an object, us", each("cpu_s", 1e6)),
          ("peak, MiB", shown("peak_mib")), ("kB an object", each("peak_mib", 1024)), ("relist, CPU s", shown("relist_cpu_s")),
          ("CPU an object, us", each("relist_cpu_s", 1e6)), ("relist, callbacks", shown("relist_again")), ("GetByKey, us", shown("get_us")),
          ("ByIndex of 100, us", shown("by_index_us")), ("stop, ms", shown("stop_ms"))]
READING = [("objects", counted("objects")), ("", name_of), ("list, 100 match, us", shown("few_us")), ("list, all match, us", shown("all_us")),
           ("all, ns an object", each("all_us", 1e3)), ("GetByKey, us", shown("get_us")), ("ByIndex of 100, us", shown("by_index_us"))]
WRITING = [("readers", counted("readers")), ("", name_of), ("a write, median, us", shown("p50_us")), ("p99, us", shown("p99_us")),
           ("writes/s", shown("per_s")), ("lists/s", shown("lists_per_s"))]


def readers_text(found):
    return (sheet([row for row in found["rows"] if "objects" in row], READING) +
            "\nOne thread writes 20,000 a second by the clock (median and p99; lists/s is what the readers did meanwhile), then as fast as it can "
            "(writes/s). Each reader lists a namespace of 1,000, pauses for 20 ms, and lists the next.\n\n" +
            sheet([row for row in found["rows"] if "readers" in row], WRITING))


# Of each measurement in RESULTS.md: title, what it is in a sentence, how it is made text, pictures.
SECTIONS = {
    "sync": ("First sync", "From the start of the process until the handler was told of all pods.",
             lambda found: beside(found["rows"], SYNC), ["sync"]),
    "events": ("Events", "MODIFIED events of whole pods; a tenth comes first and is not counted. Latency is from when an event was to be "
               "sent to its callback.", events_text, ["events", "latency"]),
    "relist": ("Relist", "The watch is told 410, and everything is listed again, unchanged.",
               lambda found: beside(found["rows"], RELIST), []),
    "growth": ("Growth", "Of more and more pods: first sync, a relist behind a 410 without news, reading, stop. Who is not there "
               "would have taken more than half of the memory that was free.", lambda found: sheet(found["rows"], GROWTH), ["growth"]),
    "readers": ("Readers", "An informer's store is listed by a label, and read by key and by index, another object each time: CPU of the process.", readers_text, ["readers"]),
    "streamed": ("First sync by a watch list", "As above, from a server that has watch lists.",
                 lambda found: beside(found["rows"], SYNC), []),
    "real": ("A real kube-apiserver", "First sync from kube-apiserver, whose own work for it is most of the time. Each client asks "
             "as it does by default: client-go and `watch list` for a watch list, kube-rs for pages of 500. `On the "
             "wire` is what a first sync receives, TLS included.",
             lambda found: beside(found["rows"], REAL), []),
    "sidecar": ("Beside the API server", "The same client asks the API server, `kubectl proxy` and the daemon. The ratio says how many times "
                "the API server's figure is theirs.", lambda found: matrix(found["rows"], SIDECAR_FIRST), []),
    "watches": ("Many watches", "Beside the API server, as above.", lambda found: matrix(found["rows"], SIDECAR_FIRST), []),
    "crowd": ("Upstream's largest cluster", "kinformerd on the canned server, and 1,000 watches of a node each on it. \"Write to event\" is from when "
              "an event was due.", lambda found: matrix(found["rows"]), []),
    "storm": ("Restarts", "All watches connect at once after a restart of the server that they watch, or of the API server behind it.",
              lambda found: matrix(found["rows"], SIDECAR_FIRST), []),
    "hostile": ("A hostile client", "A hundred clients GET twice a second, alone and beside one that attacks.",
                lambda found: matrix(found["rows"], SIDECAR_FIRST), []),
    "controllers": ("A controller", "`examples/configmap-sync`, and the same with controller-runtime and kube-rs.",
                    lambda found: matrix(found["rows"]), []),
    "restart": ("A start that goes on from a file", "From the start of the process to the first GET of a pod that is answered with 200.",
                lambda found: matrix(found["rows"]), []),
    "session": ("One's own writes", "Pairs of a PATCH and a GET by client-go, directly and through kinformerd.",
                lambda found: matrix(found["rows"]), []),
    "simulator": ("kinformer-sim", "How soon it serves, what it holds, and how many changes a second it makes and serves.",
                  lambda found: matrix(found["rows"]), []),
}


def about(found):
    parts = [f"{found['objects']:,} objects" if "objects" in found else "", found.get("note", ""),
             f"medians of {found['runs']} runs, least and most in brackets" if found.get("runs", 1) > 1 else "one run",
             f"commit {found['commit']}, {found['date']}", found["machine"],
             f"load {found['load']} before it" if "load" in found else ""]
    versions = ", ".join(f"{name} {version}" for name, version in found.get("versions", {}).items())
    return "; ".join(part for part in [*parts, versions] if part) + "."


def text_of(name, found):
    title, what, table, pictures = SECTIONS[name]
    shown = "".join(f"![{title}]({picture}.svg)\n" for picture in pictures)
    return f"## {title}\n\n{what} {about(found)}\n\n{table(found)}\n{shown}"


def results_text(results):
    head = ("# Results\n\nMade by `bench/run.py` out of [results.json](results.json); [README.md](README.md) says how each is measured, "
            "and what it says.\n`make bench` measures again.\n\n")
    return head + "\n".join(text_of(name, results[name]) for name in SECTIONS if name in results)


# --- the project's README ---


def peers_table(results):
    first, saturated, paced = (by_name(rows) for rows in (
        results["sync"]["rows"], [row for row in results["events"]["rows"] if row["rate"] == 0],
        [row for row in results["events"]["rows"] if row["rate"] == 1000]))
    columns = [("first sync, s", first, "wall_s"), ("its CPU, s", first, "cpu_s"), ("peak memory, MiB", first, "peak_mib"),
               ("CPU an event, us", saturated, "cpu_us"), ("events/s", saturated, "per_s"), ("p99 at 1,000/s, ms", paced, "p99_ms")]
    return markdown(["", *(heading for heading, _, _ in columns)],
                    [[name, *(number(figure(rows.get(name), key)) for _, rows, key in columns)]
                     for name in first if name in saturated])


IN_README = {"peers": peers_table}
FIGURES = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end -->)", re.S)


def readme_text(text, results):
    def made(found):
        try:
            return found[1] + IN_README[found[2]](results) + found[3]
        except KeyError as missing:
            raise Failure(f"README.md wants what was not measured: {missing}") from missing
    return FIGURES.sub(made, text)


# --- pictures ---

COMMON = """set terminal svg size 720,{height} font "sans-serif,12" background "white"
set output "{path}"
set style fill solid 0.9
set grid ytics lc rgb "#dddddd"
set border 3
set tics nomirror
"""


COLOURS = {"kinformer": "#16407a", "kinformer, agent fields": "#5b9bd5", "kinformer, compressed": "#8040a0", "kinformer, metadata": "#9080c0",
           "client-go, JSON": "#2f7d32", "client-go, dynamic": "#81b884", "client-go, metadata": "#90a030",
           "kube-rs": "#c55a11", "kube-rs, dynamic": "#f0b080", CURL: "#808080"}


def line_of(name, data):
    return f'{data} with linespoints pt 7 ps 0.5 lw 2 lc rgb "{COLOURS[name]}" title "{name}"'


def block(name, lines):
    return f"${name} << EOD\n" + "\n".join(lines) + "\nEOD\n"


def bars(rows, *names):
    return [f'"{row["of"]}" ' + " ".join(str(figure(row, name) or "nan") for name in names) for row in rows]


def sync_plot(results):
    return 640, block("d", bars(results["sync"]["rows"], "wall_s", "cpu_s", "peak_mib")) + """
set multiplot layout 2,1
set style data histograms
set boxwidth 0.9
set xtics rotate by -20
set logscale y
set yrange [0.01:*]
set ylabel "seconds"
plot $d using 2:xtic(1) title "first sync" lc rgb "#3566a8", '' using 3 title "CPU" lc rgb "#e0a030"
set yrange [10:*]
set ylabel "MiB"
plot $d using 4:xtic(1) title "peak memory" lc rgb "#508050"
unset multiplot
"""


def events_plot(results):
    rows = results["events"]["rows"]
    names = [row["of"] for row in rows if row["rate"] == 0]
    data, plots = "", []
    for i, name in enumerate(names):
        points = [(row["rate"], figure(row, "cpu_us")) for row in rows if row["of"] == name and row["rate"]]
        most = next(row for row in rows if row["of"] == name and row["rate"] == 0)
        points += [(figure(most, "per_s"), figure(most, "cpu_us"))]
        data += block(f"d{i}", [f"{rate} {cpu}" for rate, cpu in sorted(points) if cpu])
        plots.append(line_of(name, f"$d{i} using 1:2"))
    return 400, data + ('set logscale xy\nset key outside right\nset xlabel "events a second, the last point as fast as it takes them"\n'
                        'set ylabel "CPU an event, us"\nplot ' + ", ".join(plots) + "\n")


def latency_plot(results):
    rows = [row for row in results["events"]["rows"] if row["rate"] == 1000 and row["of"] != CURL]
    return 340, block("d", bars(rows, "p50_ms", "p99_ms", "p99.9_ms")) + """
set style data histograms
set boxwidth 0.9
set logscale y
set yrange [0.05:*]
set ylabel "ms at 1,000 events a second"
plot $d using 2:xtic(1) title "p50" lc rgb "#a0c0e0", '' using 3 title "p99" lc rgb "#3566a8", '' using 4 title "p99.9" lc rgb "#203050"
"""


def panels(rows, x, labels):
    """The data, and what draws each figure of the labels over x, a line for each client."""
    clients, data, plots = list(dict.fromkeys(row["of"] for row in rows)), "", ""
    for i, of in enumerate(clients):
        data += block(f"{x}{i}", [" ".join([str(row[x]), *(str(figure(row, name) or "nan") for name in labels)])
                                  for row in rows if row["of"] == of])
    for column, (name, label) in enumerate(labels.items(), 2):
        plots += f'set ylabel "{label}"\nplot ' + ", ".join(
            line_of(of, f"${x}{i} using 1:{column}") for i, of in enumerate(clients)
            if any(figure(row, name) for row in rows if row["of"] == of)) + "\n"
    return data, plots


def growth_plot(results):
    """Of the large pods, of which all have some."""
    data, plots = panels([row for row in results["growth"]["rows"] if row["object_bytes"] > 10000], "objects",
                         {"cpu_s": "first sync, CPU s", "peak_mib": "peak, MiB", "relist_cpu_s": "relist, CPU s", "get_us": "GetByKey, us"})
    return 1200, data + 'set logscale xy\nset key outside right\nset xlabel "pods"\nset multiplot layout 4,1\n' + plots + "unset multiplot\n"


def readers_plot(results):
    rows = results["readers"]["rows"]
    data, plots = panels([row for row in rows if "objects" in row], "objects", {"few_us": "list, 100 match, us", "get_us": "GetByKey, us"})
    beside_data, beside_plots = panels([row for row in rows if "readers" in row], "readers",
                                       {"p50_us": "a write, median, us", "p99_us": "a write, p99, us", "per_s": "writes/s"})
    return 1400, (data + beside_data + 'set logscale xy\nset key outside right\nset xlabel "pods"\nset multiplot layout 5,1\n' + plots +
                  'unset logscale x\nset xlabel "readers"\n' + beside_plots + "unset multiplot\n")


# Of each picture: its measurement, what draws it.
PLOTS = {"sync": ("sync", sync_plot), "events": ("events", events_plot), "latency": ("events", latency_plot),
         "growth": ("growth", growth_plot), "readers": ("readers", readers_plot)}


def script_of(name, results):
    height, script = PLOTS[name][1](results)
    return COMMON.format(height=height, path="PATH") + script


def mark_of(name, results):
    """In the picture: of which script, and so of which figures, it is."""
    return f"<!-- {hashlib.sha256(script_of(name, results).encode()).hexdigest()[:16]} -->"


def draw(folder, name, results):
    path = os.path.join(folder, name + ".svg")
    subprocess.run(["gnuplot"], input=script_of(name, results).replace("PATH", path), text=True, check=True)
    with open(path, "a", encoding="utf-8") as file:
        file.write(mark_of(name, results) + "\n")


# --- files ---


def read(folder):
    try:
        with open(os.path.join(folder, "results.json"), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return {}


def write(folder, results):
    with open(os.path.join(folder, "results.json"), "w", encoding="utf-8") as file:
        file.write(re.sub(r"\[\s+([^\[\]{}]*?)\s+\]", lambda found: "[" + re.sub(r"\s+", " ", found[1]) + "]",
                          json.dumps(results, indent=1)) + "\n")


def text_in(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def texts(folder, results):
    """Path -> what is in it."""
    made = {os.path.join(folder, "RESULTS.md"): results_text(results)}
    if folder == BENCH:
        made[README] = readme_text(text_in(README), results)
    return made


def render(folder, results):
    for path, text in texts(folder, results).items():
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    for name, (measurement, _) in PLOTS.items():
        if measurement in results:
            draw(folder, name, results)


def check(folder):
    """Says what is not as results.json makes it; returns whether there was something."""
    results = read(folder)
    wrong = [path for path, text in texts(folder, results).items() if text_in(path) != text]
    wrong += [name + ".svg" for name, (measurement, _) in PLOTS.items()
              if measurement in results and mark_of(name, results) not in text_in(os.path.join(folder, name + ".svg"))]
    for path in wrong:
        print(f"bench: {os.path.relpath(path, ROOT)} is not as bench/results.json makes it: bench/run.py --render")
    return bool(wrong)


# --- beside what is committed ---


def to_curl(results):
    """What -> kinformer's figure in curl's of the same run."""
    rows = {"sync": by_name(results.get("sync", {}).get("rows", [])),
            "events": by_name(row for row in results.get("events", {}).get("rows", []) if row["rate"] == 0)}
    found = {}
    for measurement, name in (("sync", "wall_s"), ("sync", "cpu_s"), ("events", "cpu_us")):
        for client in (OURS, OURS + ", agent fields"):
            ours, floor = (figure(rows[measurement].get(of), name) for of in (client, CURL))
            if ours and floor:
                found[f"{measurement}, {client}, {name}"] = ours / floor
    return found


def regressions(before, after):
    was = to_curl(before)
    return [f"{what}: {now:.2f} times curl's, {was[what]:.2f} before" for what, now in to_curl(after).items()
            if what in was and now > NOTABLE * was[what]]
