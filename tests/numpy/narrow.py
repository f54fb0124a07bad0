"""The floats that NumPy has not: bfloat16 and the 8-bit floats of the Open Compute Project, by tables of their values."""

import numpy as np


class Format:
    """sign, exponent and fraction bits; with infinity: as IEEE 754; else all ones are NaN, and the rest are numbers."""

    def __init__(self, code, exponent, fraction, infinity):
        self.code, self.infinity = code, infinity
        self.bits = np.dtype("u2" if exponent + fraction == 15 else "u1")
        self.top = 1 << exponent + fraction  # the sign
        at = np.arange(self.top)
        e, f = at >> fraction, at & ((1 << fraction) - 1)
        bias, last = (1 << exponent - 1) - 1, (1 << exponent) - 1
        size = np.where(e == 0, np.ldexp(f.astype("f8"), 1 - bias - fraction), np.ldexp(1 + f / 2.0**fraction, e - bias))
        nan = (e == last) & (f != 0) if infinity else at == self.top - 1
        size = np.where(nan, np.nan, np.where((e == last) & infinity, np.inf, size))
        self.values = np.concatenate([size, -size])
        self.finite = size[np.isfinite(size)]  # ascending: the index is the bits
        self.most = self.finite[-1]

    def decode(self, bits):
        return self.values[bits]

    def round(self, x):
        """x to the nearest number, of two equally near ones the one with even bits; beyond the range Inf, or NaN where there is none."""
        size, n = np.abs(np.asarray(x, "f8")), len(self.finite)
        grid = np.append(self.finite, 2 * self.most - self.finite[-2])  # what would come next
        low = np.clip(np.searchsorted(grid, size, "right") - 1, 0, n - 1)
        down, up = size - grid[low], grid[low + 1] - size
        at = low + ((up < down) | ((up == down) & (low % 2 == 1)))
        result = np.where(at < n, grid[at], np.inf if self.infinity else np.nan)
        result = np.where(np.isinf(size), np.inf if self.infinity else np.nan, result)
        return np.copysign(np.where(np.isnan(size), np.nan, result), x)

    def encode(self, x):
        """Bits of numbers of the format."""
        size = np.abs(x)
        bits = np.searchsorted(self.finite, np.where(np.isfinite(size), size, 0))
        bits = np.where(np.isinf(size), len(self.finite), np.where(np.isnan(size), self.top - 1, bits))
        return (bits + np.where(np.signbit(x), self.top, 0)).astype(self.bits)

    def next(self, a, b):
        """The number next to a on the way to b."""
        order = np.unique(np.append(self.values[~np.isnan(self.values)], 0.0))
        at = np.searchsorted(order, np.where(np.isnan(a), 0, a)) + np.where(b > a, 1, np.where(b < a, -1, 0))
        there = order[np.clip(at, 0, len(order) - 1)]
        there = np.where((there == 0) & (a < 0), -0.0, there)
        return np.where(np.isnan(a) | np.isnan(b), np.nan, np.where(a == b, b, there))


FORMATS = {"bf16": Format(4, 8, 7, True), "f8e4m3": Format(16, 4, 3, False), "f8e5m2": Format(17, 5, 2, True)}
OF_CODE = {f.code: name for name, f in FORMATS.items()}


class Narrow:
    """An array of such a type, by its bits."""

    def __init__(self, name, bits):
        self.name, self.format = name, FORMATS[name]
        self.raw = np.asarray(bits, self.format.bits)

    shape = property(lambda self: self.raw.shape)
    size = property(lambda self: self.raw.size)
    values = property(lambda self: self.format.decode(self.raw))

    def __getitem__(self, at):
        return Narrow(self.name, self.raw[at])


def promoted(a, b):
    """The type that two have together, by name, where one of them is of FORMATS (include/dmath/ewise.h)."""
    size = {"f64": 8, "f32": 4, "f16": 2, "bf16": 2, "f8e4m3": 1, "f8e5m2": 1}
    if a == b or "bool" in (a, b):
        return a if b == "bool" else b
    if a in size and b in size:
        if size[a] != size[b]:
            return a if size[a] > size[b] else b
        return "f16" if size[a] == 1 else "f32"
    return "c64" if "c64" in (a, b) else "c128" if "c128" in (a, b) else "f64" if "f64" in (a, b) else "f32"
