"""Functions to more digits than f64 has: NumPy's long double (64 bits) where it has the function, else decimal arithmetic."""

import decimal
import functools

import numpy as np

decimal.getcontext().prec = 60
D = decimal.Decimal
PI = D("3.14159265358979323846264338327950288419716939937510582097494459")


@functools.lru_cache(None)
def bernoulli():
    """B_2, B_4, ... B_40"""
    from fractions import Fraction
    from math import comb
    numbers = [Fraction(1)]
    for m in range(1, 41):
        numbers.append(-sum(comb(m + 1, k) * numbers[k] for k in range(m)) / (m + 1))
    return [D(b.numerator) / D(b.denominator) for b in numbers[2::2]]


def erf_series(x):
    """2 / sqrt(pi) e^(-x^2) (x + 2 x^3 / 3 + 4 x^5 / 15 + ...): all terms of one sign"""
    term = total = x
    k = 0
    while abs(term) > abs(total) * D("1e-58"):
        k += 1
        term *= 2 * x * x / (2 * k + 1)
        total += term
    return 2 / PI.sqrt() * (-x * x).exp() * total


def erfc_fraction(x):
    """Laplace's continued fraction, x >= 3"""
    f = x
    for k in range(300, 0, -1):
        f = x + D(k) / 2 / f
    return (-x * x).exp() / (f * PI.sqrt())


def erf(x):
    if x == 0:
        return x
    return erf_series(x) if abs(x) < 3 else (1 - erfc_fraction(abs(x))).copy_sign(x)


def erfc(x):
    return erfc_fraction(x) if x >= 3 else 1 - erf(x)


def sin_pi(x):
    x = x % 2
    x = x - 2 if x > 1 else x
    term = total = x * PI
    k = 1
    while term != 0 and abs(term) > D("1e-70"):
        term *= -(x * PI) ** 2 / ((2 * k) * (2 * k + 1))
        total += term
        k += 1
    return total


def lgamma_positive(x):
    product, z = D(1), x
    while z < 40:
        product *= z
        z += 1
    tail = sum(b / (D(2 * k) * (2 * k - 1) * z ** (2 * k - 1)) for k, b in enumerate(bernoulli(), 1))
    return (z - D("0.5")) * z.ln() - z + (2 * PI).ln() / 2 + tail - product.ln()


def gamma(x):
    return lgamma_positive(x).exp() if x > 0 else PI / (sin_pi(x) * lgamma_positive(1 - x).exp())


def lgamma(x):
    return lgamma_positive(x) if x > 0 else (PI / abs(sin_pi(x))).ln() - lgamma_positive(1 - x)


def gelu(x):
    return x * erfc(-x / D(2).sqrt()) / 2


def in_decimals(function):
    """Two f64 that add up to the function of each f64 of x, as a long double."""
    def of(x):
        out = np.zeros(x.shape, "g")
        for i, v in enumerate(x.astype("f8").tolist()):
            exact = function(D(v))
            high = float(exact)
            out[i] = np.longdouble(high) + np.longdouble(float(exact - D(high))) if np.isfinite(high) else high
        return out
    return of


def softplus(x):
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def logaddexp(a, b):
    return np.maximum(a, b) + np.log1p(np.exp(-np.abs(a - b)))


# name: (function, arguments of f64: lo, hi, of f32: lo, hi; 16-bit floats have all of theirs), slow ones in decimals
SLOW = {name: in_decimals(f) for name, f in (("erf", erf), ("erfc", erfc), ("gamma", gamma), ("lgamma", lgamma), ("gelu", gelu))}
BIG = (-1e30, 1e30)
ROWS = {
    "reciprocal": (lambda x: 1 / x, BIG, BIG), "sqrt": (np.sqrt, (0, 1e30), (0, 1e30)),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (1e-30, 1e30), (1e-30, 1e30)), "cbrt": (np.cbrt, BIG, BIG),
    "exp": (np.exp, (-745, 709), (-103, 88)), "exp2": (np.exp2, (-1074, 1023), (-149, 127)), "expm1": (np.expm1, (-50, 709), (-30, 88)),
    "log": (np.log, (1e-300, 1e300), (1e-37, 1e38)), "log2": (np.log2, (1e-300, 1e300), (1e-37, 1e38)),
    "log10": (np.log10, (1e-300, 1e300), (1e-37, 1e38)), "log1p": (np.log1p, (-1 + 1e-9, 1e300), (-0.9999, 1e38)),
    "sin": (np.sin, (-1e6, 1e6), (-1e6, 1e6)), "cos": (np.cos, (-1e6, 1e6), (-1e6, 1e6)), "tan": (np.tan, (-1e6, 1e6), (-1e6, 1e6)),
    "asin": (np.arcsin, (-1, 1), (-1, 1)), "acos": (np.arccos, (-1, 1), (-1, 1)), "atan": (np.arctan, BIG, BIG),
    "sinh": (np.sinh, (-709, 709), (-88, 88)), "cosh": (np.cosh, (-709, 709), (-88, 88)), "tanh": (np.tanh, (-30, 30), (-15, 15)),
    "asinh": (np.arcsinh, BIG, BIG), "acosh": (np.arccosh, (1, 1e30), (1, 1e30)),
    "atanh": (np.arctanh, (-1 + 1e-12, 1 - 1e-12), (-0.99999, 0.99999)),
    "erf": (SLOW["erf"], (-6, 6), (-4, 4)), "erfc": (SLOW["erfc"], (-6, 26), (-4, 9.2)),
    "gamma": (SLOW["gamma"], (1e-9, 171), (1e-9, 34)), "lgamma": (SLOW["lgamma"], (1e-9, 1e6), (1e-9, 1e6)),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), (-700, 700), (-87, 87)), "softplus": (softplus, (-700, 700), (-87, 87)),
    "gelu": (SLOW["gelu"], (-30, 30), (-10, 10)),
    "divide": (np.divide, BIG, BIG), "pow": (np.power, (1e-5, 1e5), (1e-2, 1e2)), "atan2": (np.arctan2, BIG, BIG),
    "hypot": (np.hypot, BIG, BIG), "logaddexp": (logaddexp, (0, 700), (0, 87)),
}


# --- complex numbers, in NumPy's complex long double, which calls the C library's functions
def pair(re, im):
    """Without a product, which makes NaN of infinities."""
    out = np.empty(np.shape(re), "G")
    out.real, out.imag = re, im
    return out


def log_to(base):
    def of(z):
        l = np.log(z)
        return pair(l.real / np.log(np.longdouble(base)), l.imag / np.log(np.longdouble(base)))
    return of


def complex_log1p(z):
    x, y = z.real, z.imag
    near = np.where(np.abs(z) < 0.5, x * (x + 2) + y * y, 0)
    return pair(np.where(np.abs(z) < 0.5, np.log1p(near) / 2, np.log(np.hypot(1 + x, y))), np.arctan2(y, 1 + x))


def complex_expm1(z):
    x, y = z.real, z.imag
    e = np.exp(z)
    re = np.expm1(x) * np.cos(y) - 2 * np.sin(y / 2) ** 2
    return pair(np.where((y == 0) | ~np.isfinite(re), np.where(y == 0, np.expm1(x), e.real - 1), re), e.imag)


def complex_sign(z):
    """As NumPy 2."""
    x, y = z.real, z.imag
    h = np.hypot(x, y)
    re = np.where(np.isinf(x), np.copysign(1, x), np.where(np.isinf(y), 0, x / np.where(h == 0, 1, h)))
    im = np.where(np.isinf(y), np.copysign(1, y), np.where(np.isinf(x), 0, y / np.where(h == 0, 1, h)))
    none = np.isnan(x) | np.isnan(y) | (np.isinf(x) & np.isinf(y))
    return pair(np.where(none, np.nan, np.where(h == 0, 0, re)), np.where(none, np.nan, np.where(h == 0, 0, im)))


# name: (function, the largest part); exponents of arguments go down to 2^-40
COMPLEX = {
    "exp": (np.exp, 80), "expm1": (complex_expm1, 80), "log": (np.log, 1e30), "log2": (log_to(2), 1e30), "log10": (log_to(10), 1e30),
    "log1p": (complex_log1p, 1e30), "sqrt": (np.sqrt, 1e30), "sin": (np.sin, 80), "cos": (np.cos, 80), "tan": (np.tan, 80),
    "sinh": (np.sinh, 80), "cosh": (np.cosh, 80), "tanh": (np.tanh, 80), "asin": (np.arcsin, 1e15), "acos": (np.arccos, 1e15),
    "atan": (np.arctan, 1e15), "asinh": (np.arcsinh, 1e15), "acosh": (np.arccosh, 1e15), "atanh": (np.arctanh, 1e15),
    "sign": (complex_sign, 1e30),
}
TWO = ("divide", "pow", "atan2", "hypot", "logaddexp")
