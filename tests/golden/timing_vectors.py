"""Writes timing_vectors.csv: a made-up stream of calls with the answers of the reference estimator, each made before its call.

Usage: python3 timing_vectors.py REFERENCE_ESTIMATOR.py > timing_vectors.csv   (needs numpy and numba)

Four cases of 500 calls, each a model of its own: plain; hinted (every tool with a hint); fleet (hosts learn from each other);
given-up (some calls are given up at a limit, and only that is known of them). The durations have what real ones have: several
modes, heavy tails, slopes over sizes, a host that becomes three times slower, and keys of very different use.
"""

import importlib
import math
import os
import random
import sys

import numpy as np

SIZES = ("content_length", "num_perspectives", "num_branches", "thinking_budget", "context_tokens")
CALLS = 500


def calls(random, case):
    """Rows of a stream, as dictionaries."""
    # (tool, mode): location and spread in ln(ms), share of calls near 20 ms, slope over content_length, share of use
    keys = {
        ("search", "web"): (7.2, 0.5, 0.0, 0.0, 9),
        ("search", "code"): (5.9, 0.2, 0.3, 0.0, 6),
        ("build", ""): (10.1, 1.2, 0.2, 0.0, 5),
        ("think", "deep"): (9.6, 0.3, 0.0, 0.4, 6),
        ("think", "quick"): (8.1, 0.1, 0.0, 0.4, 3),
        ("ping", ""): (3.2, 0.1, 0.0, 0.0, 3),
        ("sleep", ""): (9.4, 0.0, 0.0, 0.0, 3),
        ("rare", "a"): (6.0, 2.0, 0.0, 0.0, 1),
        ("rare", "b"): (12.0, 2.0, 0.0, 0.0, 1),
    }
    now = 0
    for call in range(CALLS):
        now += random.randint(10, 100_000)
        host = random.choice(("h1", "h1", "h2"))
        (tool, mode), (centre, spread, quick, slope, _) = random.choices(
            list(keys.items()), [key[-1] for key in keys.values()]
        )[0]
        sizes = {
            "content_length": int(random.lognormvariate(5, 2)),
            "num_perspectives": random.choice((0, 0, 2, 4)),
            "num_branches": random.choice((0, 3)),
            "thinking_budget": random.choice((0, 4096, 16384)) if tool == "think" else 0,
            "context_tokens": 1000 + 300 * call,
        }
        ln = centre + slope * (math.log1p(sizes["content_length"]) - 5) + spread * random.gauss(0, 1)
        ln += random.expovariate(0.7) * (random.random() < 0.05)
        if random.random() < quick:
            ln = 3 + 0.1 * random.gauss(0, 1)
        if host == "h2" and call > CALLS * 0.6:
            ln += math.log(3)
        duration, outcome = max(0, round(math.exp(ln))), "success"
        limit = 15_000
        if case == "given-up" and duration > limit:
            duration, outcome = limit, random.choice(("timeout", "cancelled"))
        hint = max(1, round(math.exp(centre + 0.5))) if case == "hinted" else ""
        yield dict(sizes, ts_ms=now, host=host, tool=tool, mode=mode, duration_ms=duration, outcome=outcome, hint_ms=hint)


def numbered(names):
    """Each name's number in order of first use."""
    seen = {}
    return np.array([seen.setdefault(name, len(seen)) for name in names])


def answer(reference, case, rows):
    """What the reference says of each row."""
    y = np.array([math.log(max(1.0, row["duration_ms"])) for row in rows])
    hints = np.array([math.log(float(row["hint_ms"] or 15000)) for row in rows])
    stream = {
        "kid": numbered((row["host"], row["tool"], row["mode"]) for row in rows),
        "tid": numbered((row["host"], row["tool"]) for row in rows),
        "ts": np.array([row["ts_ms"] for row in rows]),
        "x": np.array([[math.log1p(float(row[size])) for size in SIZES] for row in rows]),
        "y": y,
        "hint": hints,
        "def15": np.full(len(rows), math.log(15000.0)),
        "thr": np.array([math.log(30000.0)] * 4),
    }
    given_up = np.array([ln if row["outcome"] != "success" else 0.0 for row, ln in zip(rows, y)])
    fleet = numbered((row["tool"], row["mode"]) for row in rows)
    quantiles, _, over, fifth, double, _, densest, *_ = reference.run(
        stream, hint=case == "hinted", cens=given_up, fid=fleet, fleet=float(case == "fleet")
    )
    seen = {}
    for i, key in enumerate(stream["kid"]):
        samples = seen.get(key, 0)
        seen[key] = samples + 1
        confident = "high" if fifth[i] >= 0.8 else "medium" if double[i] >= 0.8 else "low"
        yield {
            "samples": samples,
            **{f"p{p}_ms": f"{math.exp(quantiles[i, j]):.4f}" for p, j in (("05", 0), ("50", 2), ("90", 3), ("95", 4))},
            "estimated_ms": f"{math.exp(densest[i]):.4f}",
            "p_over_30s": f"{over[i, 0]:.6f}",
            "p_within_20pct": f"{fifth[i]:.6f}",
            "p_within_x2": f"{double[i]:.6f}",
            "confidence": confident if samples >= 5 else "low",
        }


def main():
    folder, file = os.path.split(os.path.abspath(sys.argv[1]))
    sys.path.insert(0, folder)
    reference = importlib.import_module(file.removesuffix(".py"))
    header = None
    for number, case in enumerate(("plain", "hinted", "fleet", "given-up")):
        rows = list(calls(random.Random(number), case))
        for row, said in zip(rows, answer(reference, case, rows)):
            line = {"case": case, **row, **said}
            if header is None:
                header = list(line)
                print(",".join(header))
            print(",".join(str(line[column]) for column in header))


if __name__ == "__main__":
    main()
