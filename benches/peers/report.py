"""Runs as Markdown tables: medians, and ratios to the limit in the same round."""

import statistics

REFERENCE = "limit-kex"


def by_row(runs):
    """Row, then engine, then round: the run. Failed runs are left out."""
    table = {}
    for run in runs:
        if run["exit"] == 0:
            table.setdefault(run["row"], {}).setdefault(run["engine"], {})[run["round"]] = run
    return table


def median(runs, key):
    return statistics.median(run[key] for run in runs.values())


def ratio(runs, reference):
    """The median of each round's ratio: neighbours in time met the same weather."""
    both = [runs[n]["wall"] / reference[n]["wall"] for n in runs if n in reference]
    return statistics.median(both) if both else None


def table(runs, titles, engines, cell):
    rows = by_row(runs)
    engines = [engine for engine in engines if any(engine in row for row in rows.values())]
    lines = [f"| | {' | '.join(engines)} |", f"|---|{'---|' * len(engines)}"]
    for name, title in titles.items():
        if name in rows:
            cells = [cell(rows[name][engine], rows[name]) if engine in rows[name] else "" for engine in engines]
            lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def seconds(value):
    return f"{value:.3f}" if value < 0.1 else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def wall(runs, row):
    share = ratio(runs, row[REFERENCE]) if REFERENCE in row else None
    times = "" if share is None else f" ({share:.1f}x)"
    return seconds(median(runs, "wall")) + times


def cpu(runs, _):
    return f"{seconds(median(runs, 'controller_cpu'))} + {seconds(median(runs, 'host_cpu'))}"


def memory(runs, _):
    # What is over before the first sample shows no memory.
    largest = median(runs, "largest_process")
    return f"{median(runs, 'memory'):.0f} ({largest:.0f})" if largest else ""


def report(runs, titles, engines):
    failed = [f"{run['row']} by {run['engine']}, round {run['round']}: exit {run['exit']}" for run in runs if run["exit"]]
    noise = sum(run["others"] * run["wall"] for run in runs) / max(sum(run["wall"] for run in runs), 0.001)
    rounds = len({run["round"] for run in runs})
    parts = [
        f"Medians of {rounds} rounds. Meanwhile others took {noise:.0%} of this machine's CPU.",
        f"### Wall time, seconds (times {REFERENCE})",
        table(runs, titles, engines, wall),
        "### CPU, seconds: controller + all hosts",
        table(runs, titles, engines, cpu),
        "### Peak memory on the controller, MiB: held by all processes (resident in the largest)",
        table(runs, titles, engines, memory),
    ]
    if failed:
        parts += ["### Failed, and left out above", "\n".join(f"- {line}" for line in failed)]
    return "\n\n".join(parts) + "\n"
