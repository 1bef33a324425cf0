"""Fits the correction of forecasts: forecast_correction.py fit|validate FEATURES.csv...

Each file is of `almanacd eval timing HISTORY --features`. `fit` writes the trees of all of them to the standard output,
as src/timing/estimator/correction/trees.txt has them. `validate` says what the correction does to calls that it was not
fitted on: pinball loss as a share of the uncorrected forecasts', by groups of hosts that are left out in turn, and for
each file when it is fitted on the others.

Of each level, small trees foretell by how much the forecast's own level should be moved, as log odds: 0 where its
quantile is right. There, a level has the same meaning for a call of a millisecond and one of an hour, and what is moved
stays within what the forecast holds possible. A call counts as much as its forecast's interval is wide, since that is
what a pinball loss in ln(ms) is made of.
"""

import sys

import lightgbm
import numpy
import pandas
from scipy.special import expit, logit, ndtri

LEVELS = [0.05, 0.25, 0.5, 0.75, 0.9, 0.95]
JUDGED = [0.5, 0.9, 0.95]
FIRST, LAST = "width", "shared_mean_error"
# Trees that see few calls foretell what they saw: of a correction, so much is believed.
BELIEVED = 0.5
# As src/timing/estimator/correction.rs has it: from the level on, quantiles are moved down by so much of that.
TAIL, BELIEVED_DOWN = 0.9, 0.4
GROUPS = 5
TREES = {
    "n_estimators": 40,
    "num_leaves": 8,
    "learning_rate": 0.15,
    "min_child_samples": 100,
    "subsample": 0.7,
    "subsample_freq": 1,
    "colsample_bytree": 0.6,
    "reg_lambda": 1.0,
    "max_bin": 63,
    "use_missing": False,
    "n_jobs": 1,
    "seed": 7,
    "deterministic": True,
    "force_row_wise": True,
    "verbose": -1,
}


class Calls:
    def __init__(self, table):
        self.features = table.loc[:, FIRST:LAST].to_numpy()
        self.place = logit(table["below"].clip(2e-4, 1 - 2e-4).to_numpy())
        self.ln = table["ln_ms"].to_numpy()
        self.weight = self.features[:, 0]
        columns = [name for name in table.columns if name[0] == "q" and name[1].isdigit()]
        self.grid = ndtri([float(name[1:]) for name in columns])
        self.quantiles = table[columns].to_numpy()
        self.host = table["host"].to_numpy()

    def of(self, chosen):
        part = object.__new__(Calls)
        for name, value in vars(self).items():
            setattr(part, name, value if name == "grid" else value[chosen])
        return part

    def at(self, moved):
        """The places in ln(ms) of levels as log odds, one for each call."""
        step = self.grid[1] - self.grid[0]
        within = ((ndtri(expit(moved)) - self.grid[0]) / step).clip(0, len(self.grid) - 1.001)
        whole = within.astype(int)
        rows = numpy.arange(len(self.ln))
        below, above = self.quantiles[rows, whole], self.quantiles[rows, whole + 1]
        return below + (within - whole) * (above - below)


def fitted(calls):
    def one(level):
        trees = lightgbm.LGBMRegressor(objective="quantile", alpha=level, **TREES)
        return trees.fit(calls.features, calls.place - logit(level), sample_weight=calls.weight)

    return {level: one(level) for level in LEVELS}


def moved(trees, calls):
    """The forecast's levels that stand for each of LEVELS, as log odds."""

    def place(level):
        by = BELIEVED * trees[level].predict(calls.features)
        return logit(level) + (numpy.where(by < 0, BELIEVED_DOWN * by, by) if level >= TAIL else by)

    return dict(zip(LEVELS, numpy.maximum.accumulate([place(level) for level in LEVELS])))


def pinball(calls, places):
    """The mean over JUDGED, for each call."""

    def one(level):
        off = calls.ln - calls.at(places[level])
        return numpy.maximum(level * off, (level - 1) * off)

    return numpy.mean([one(level) for level in JUDGED], axis=0)


def report(name, calls, places):
    plain = {level: numpy.full(len(calls.ln), logit(level)) for level in LEVELS}
    before, after = pinball(calls, plain), pinball(calls, places)
    inside = (calls.ln >= calls.at(places[0.05])) & (calls.ln <= calls.at(places[0.95]))
    share = after.sum() / before.sum()
    print(f"{name:40}{len(calls.ln):>8} calls  pinball x {share:.4f}  in the interval {100 * inside.mean():.1f} %")


def validate(files):
    tables = {name: Calls(pandas.read_csv(name, keep_default_na=False)) for name in files}
    for name, calls in tables.items():
        rest = [other for other in files if other != name]
        hosts = sorted(set(calls.host))
        group = {host: place % GROUPS for place, host in enumerate(hosts)}
        groups = numpy.array([group[host] for host in calls.host])
        places = {level: numpy.zeros(len(calls.ln)) for level in LEVELS}
        for left_out in range(min(GROUPS, len(hosts))):
            parts = [calls.of(groups != left_out)] + [tables[other] for other in rest]
            chosen = groups == left_out
            for level, place in moved(fitted(joined(parts)), calls.of(chosen)).items():
                places[level][chosen] = place
        report(f"{name}, hosts left out", calls, places)
        for left_out in range(min(GROUPS, len(hosts))):
            chosen = groups == left_out
            report(f"  group {left_out}", calls.of(chosen), {level: at[chosen] for level, at in places.items()})
        if rest:
            report(f"{name}, left out", calls, moved(fitted(joined([tables[other] for other in rest])), calls))


def joined(parts):
    whole = object.__new__(Calls)
    for name in vars(parts[0]):
        value = parts[0].grid if name == "grid" else numpy.concatenate([getattr(part, name) for part in parts])
        setattr(whole, name, value)
    return whole


def written(node):
    """A tree, each fork before what is below its threshold and that before what is above."""
    if "leaf_value" in node:
        return [f"={BELIEVED * node['leaf_value']:.4f}"]
    fork = f"{node['split_feature']}<{node['threshold']:.4g}"
    return [fork, *written(node["left_child"]), *written(node["right_child"])]


def fit(files):
    calls = joined([Calls(pandas.read_csv(name, keep_default_na=False)) for name in files])
    for level, trees in fitted(calls).items():
        print("level", level)
        for tree in trees.booster_.dump_model()["tree_info"]:
            print(*written(tree["tree_structure"]))


{"fit": fit, "validate": validate}[sys.argv[1]](sys.argv[2:])
