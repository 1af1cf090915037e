"""One evaluation of a graph: real results exact to f64, rounded, or disturbed by what a target may err
(docs/numerics.md, "What is rounded when" and "How results are compared")."""

import numpy as np

from formats import REALS, compute_type, is_real, round_to, ulp

CORRECT = 0.5  # units in the last place of the compute type
ROUTINE = 2.0


class Value:
    """A dtype and an array: f64, int64 or bool. `undecided` marks elements of which nothing is promised."""

    def __init__(self, dtype, data):
        self.dtype = dtype
        kind = np.float64 if is_real(dtype) else bool if dtype == "bool" else np.int64
        self.data = np.asarray(data, dtype=kind)

    @property
    def shape(self):
        return self.data.shape


class Arithmetic:
    """How results are kept. `noise` disturbs; `rounds` is "none", "every" or "some": which results are rounded to
    dtypes narrower than f32, as a plan does that stores them."""

    def __init__(self, seed=None, rounds="none", noise=True):
        self.random = None if seed is None else np.random.default_rng(seed)
        self.rounds = rounds
        self.noisy = seed is not None and noise
        self.seed = 0 if seed is None else seed

    def amount(self, shape):
        """A random number in [-1, -1/2] or [1/2, 1]."""
        magnitude = self.random.uniform(0.5, 1.0, shape)
        return np.where(self.random.integers(0, 2, shape) == 0, magnitude, -magnitude)

    def coin(self):
        return self.random is not None and self.random.integers(0, 2) == 1

    def keep(self, dtype, x):
        """In the range of the compute type, and rounded where this evaluation rounds."""
        wide = compute_type(dtype)
        if self.rounds == "every" or (self.rounds == "some" and (dtype == wide or self.coin())):
            return round_to(dtype, x)
        magnitude = np.abs(x)
        outside = (magnitude < np.ldexp(1.0, REALS[wide][1])) | (magnitude > REALS[wide][2])
        return np.where(outside, round_to(wide, x), x)

    def real(self, dtype, x, units=CORRECT):
        """The result of an operation that is wrong by at most `units`; exact where the format holds it."""
        x = np.asarray(x, dtype=np.float64)
        if self.noisy:
            wide = compute_type(dtype)
            error = (2 * units if wide == "f64" else units) * ulp(wide, x)
            if units == CORRECT and wide != "f64":
                error = np.where(round_to(wide, x) == x, 0.0, error)
            if dtype != wide and self.rounds == "none":
                error = error + np.where(round_to(dtype, x) == x, 0.0, 0.5 * ulp(dtype, x))
            x = np.where(np.isfinite(x) & (x != 0), x + self.amount(x.shape) * error, x)
        return Value(dtype, self.keep(dtype, x))

    def exact(self, dtype, x):
        """An operand chosen or moved: no error, but a plan may store it."""
        return Value(dtype, self.keep(dtype, np.asarray(x, np.float64)) if is_real(dtype) else x)

    def within(self, dtype, x, error):
        """A result with an absolute error: of a sum or a product. Infinite: some order of it overflows on the way, and
        what comes of that is NaN, or an infinity of either sign where fma keeps the first."""
        x, error = np.asarray(x, np.float64), np.asarray(error, np.float64)
        if not self.noisy:
            return Value(dtype, self.keep(dtype, x))
        if dtype != compute_type(dtype) and self.rounds == "none":
            error = error + 0.5 * ulp(dtype, x)
        amount = self.amount(x.shape)
        known = np.isfinite(x) & np.isfinite(error)
        with np.errstate(invalid="ignore"):
            moved = np.where(known, x + amount * np.where(known, error, 0.0), x)
        cancels = known & (np.abs(x) <= error) & (self.random.integers(0, 2, x.shape) == 0)
        moved = np.where(cancels, 0.0, moved)
        overflowed = self.random.choice([np.nan, np.nan, np.inf, -np.inf], x.shape)
        moved = np.where(np.isinf(error) & (amount > 0), overflowed, moved)
        return Value(dtype, self.keep(dtype, moved))


def unit(dtype):
    """Half the distance between 1 and the next number."""
    return np.ldexp(0.5, -REALS[dtype][0])


def sum_error(dtype, terms, magnitudes, whole):
    """Of a sum of `terms` terms in any order, with high probability: Higham & Mary, 2019, with sqrt(n) for log(n).
    Whole numbers that the accumulator holds are summed exactly."""
    wide = compute_type(dtype)
    exact = whole & (magnitudes * unit(wide) <= 1)
    error = unit(wide) * (1 + np.sqrt(max(terms, 1))) * magnitudes
    return np.where(exact, 0.0, np.where(magnitudes > REALS[wide][2], np.inf, error))


def decided(value):
    """What decides something is rounded to its dtype first (rule 3)."""
    return round_to(value.dtype, value.data) if is_real(value.dtype) else value.data
