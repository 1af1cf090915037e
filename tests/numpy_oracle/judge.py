"""Whether a result is right: as near to the evaluation in f64 as disturbed and rounded evaluations are."""

import numpy as np

from arithmetic import Arithmetic
from evaluate import evaluate
from formats import is_real, round_to, ulp

UNITS = 2  # in the last place, whatever the spread
SPREADS = 8  # times the greatest distance of a disturbed evaluation
FEW, MANY = 6, 60


def evaluations(graph, inputs, symbols, first, last):
    for seed in range(first, last):
        rounds = ("none", "every", "some")[seed % 3]
        yield evaluate(graph, inputs, symbols, Arithmetic(seed, rounds, noise=seed % 7 != 6))


class Spread:
    """What the evaluations say of one output."""

    def __init__(self, expected):
        self.expected = expected
        self.real = is_real(expected.dtype)
        self.distance = np.zeros(expected.shape)
        self.undecided = np.zeros(expected.shape, bool)
        self.nan = np.zeros(expected.shape, bool)

    def add(self, other):
        a, b = self.expected.data, other.data
        if not self.real:
            self.undecided |= a != b
            return
        both = np.isfinite(a) & np.isfinite(b)
        same = both | (np.isnan(a) & np.isnan(b)) | (a == b)
        self.undecided |= ~same
        self.nan |= np.isnan(b)
        with np.errstate(invalid="ignore", over="ignore"):
            self.distance = np.maximum(self.distance, np.where(both, np.abs(a - b), 0))

    def differs(self, actual):
        """Elements that are wrong. Where no digit is left, nothing is promised but that a NaN has a reason."""
        a, b = self.expected.data, actual
        if not self.real:
            return (a != b) & ~self.undecided
        with np.errstate(invalid="ignore", over="ignore"):
            lost = self.undecided | (np.isfinite(a) & (SPREADS * self.distance > np.abs(a)))
            tolerance = UNITS * ulp(self.expected.dtype, a) + SPREADS * self.distance
            near = np.isfinite(a) & np.isfinite(b) & (np.abs(a - b) <= tolerance)
            near_infinity = np.isfinite(a) & np.isinf(b) & np.isinf(round_to(self.expected.dtype, a * (1 + 1e-3)))
        right = near | (np.isnan(a) & np.isnan(b)) | (a == b) | near_infinity | lost
        return ~right | (np.isnan(b) & ~np.isnan(a) & ~self.nan)

    def left_open(self):
        return int(np.sum(self.undecided))


def judge(graph, inputs, symbols, actual):
    """A sentence for each output that differs, and the counts of elements and of undecided ones."""
    expected = evaluate(graph, inputs, symbols, Arithmetic())
    spreads = {name: Spread(value) for name, value in expected.items()}
    for first, last in ((0, FEW), (FEW, MANY)):
        for evaluation in evaluations(graph, inputs, symbols, first, last):
            for name, value in evaluation.items():
                spreads[name].add(value)
        wrong = {name: spread.differs(actual[name]) for name, spread in spreads.items()}
        if not any(np.any(elements) for elements in wrong.values()):
            break
    elements = sum(spread.undecided.size for spread in spreads.values())
    return [describe(name, spreads[name], actual[name], elements) for name, elements in wrong.items()
            if np.any(elements)], elements, sum(spread.left_open() for spread in spreads.values())


def describe(name, spread, actual, wrong):
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    return (f"output {name}: {int(np.sum(wrong))} of {wrong.size} elements differ, first at {list(at)}: "
            f"{actual[at]!r}, NumPy has {spread.expected.data[at]!r} and a spread of {spread.distance[at]:.3g}")
