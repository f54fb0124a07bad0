"""Operations beyond those of random programs, each with an oracle in NumPy: normalisation, losses, statistics, distances, quantiles,
weighted counts, scans that round, distinct elements with their counts and places, membership. As in program_ops.py, each draws its
operands and gives a Step, or raises Unknown. Oracles compute in long double; bounds follow from what the headers promise."""

import ctypes

import numpy as np

from check_expressions import Unknown
from program_moves import order_of
from program_ops import a, called
from programs import D, FLOATS, INTEGERS, REAL, Different, Step, convert, equal, ints

COMPLEX = ["c16", "c8"]
DOUBLE = np.finfo("f8").eps


def code(dtype):
    return np.dtype(dtype).str[1:].replace("b1", "?")


def unit(*dtypes):
    """Of the type that such operands are computed in: f32, or f64 if one is f64 or an integer of 4 or 8 bytes."""
    wide = any(np.dtype(t).kind in "iu" and np.dtype(t).itemsize >= 4 or code(t) in ("f8", "c16") for t in dtypes)
    return np.finfo("f8" if wide else "f4").eps


def smallest(eps):
    """The smallest normal number of that type."""
    return np.finfo("f8" if eps == DOUBLE else "f4").tiny


def finite(x):
    return np.where(np.isfinite(x), x, 0)


def some_dims(p, ndim):
    """One or more, in any order."""
    return [int(d) for d in p.random.permutation(ndim)[:p.integer(1, ndim + 1)]]


def bounded(p, text, name, arguments, out, value, bound):
    bound = finite(np.broadcast_to(bound, np.shape(value)))
    return Step(f"{name}({text})", lambda: getattr(p.c, "dm_" + name)(p.at, *arguments), [out], [value], bound)


# --- normalisation and losses
def exponentials(x, dims):
    """x - max, e to that and its sum, over dims."""
    if 0 in [x.shape[d] for d in dims]:
        raise Unknown
    away = x - np.max(x, axis=tuple(dims), keepdims=True)
    e = np.exp(away)
    return away, e, np.sum(e, axis=tuple(dims), keepdims=True)


def soft(p):
    """softmax, log_softmax"""
    name = p.pick(["softmax", "log_softmax"])
    i = p.operand(FLOATS + ["i4", "i1", "u1"], [1, 2, 3])
    x, dims = p.twins[i], some_dims(p, p.twins[i].ndim)
    away, e, total = exponentials(x.astype("g"), dims)
    eps = unit(x.dtype)
    if name == "softmax":
        value, bound = e / total, eps * (8 + np.abs(finite(away))) * finite(e / total) + smallest(eps)
    else:
        value, bound = away - np.log(total), eps * 4 * (1 + np.abs(finite(away)) + np.log(finite(total) + 1))
    out = p.out(x.shape, FLOATS, [i], [i])
    return bounded(p, f"a{i}, {dims}, a{out}", name, [p.handles[i], ints(dims), len(dims), p.handles[out]], out, value, bound)


def entropy(p):
    """cross_entropy and its gradient"""
    i = p.operand(FLOATS, 2)
    x = p.twins[i].astype("g")
    rows, classes = x.shape
    j = p.new(p.types(["i8", "i4", "i1", "u1"]), (rows,), False)
    p.twins[j][...] = p.random.integers(0 if p.twins[j].dtype.kind == "u" else -1, classes + 1, rows)  # some are no class
    p.write(j)
    labels = p.twins[j].astype("i8")[:, None]
    away, e, total = exponentials(x, [1])
    counts, hit = (labels >= 0) & (labels < classes), labels == np.arange(classes)
    eps = unit(p.twins[i].dtype)
    if p.chance(0.5):
        terms = np.log(total) - away
        value = np.where(hit, terms, 0).sum(1)
        bound = eps * 4 * np.where(hit, 1 + np.abs(finite(terms)) + np.abs(finite(away)), 0).sum(1)
        shape = p.pick([(rows,), (rows, 1)])
        out = p.out(shape, FLOATS, [i, j])
        return bounded(p, f"a{i}, a{j}, a{out}", "cross_entropy", [p.handles[i], p.handles[j], p.handles[out]], out,
                       value.reshape(shape), bound.reshape(shape))
    scale = p.pick([1, 0.5, -3])
    value = np.where(counts, scale * (e / total - hit), 0)
    bound = eps * abs(scale) * ((8 + np.abs(finite(away))) * finite(e / total) + 4)
    out = p.out(x.shape, FLOATS, [i, j], [i])
    return bounded(p, f"a{i}, a{j}, {scale}, a{out}", "cross_entropy_gradient",
                   [p.handles[i], p.handles[j], D(scale), p.handles[out]], out, value, bound)


def moments(x, dims, correction):
    """The mean, the variance, and how far off f64 may have them."""
    n = int(np.prod([x.shape[d] for d in dims]))
    if n == 0:
        raise Unknown
    mean = np.mean(x, axis=tuple(dims), keepdims=True)
    constant = np.max(x, axis=tuple(dims), keepdims=True) == np.min(x, axis=tuple(dims), keepdims=True)
    mean = np.where(constant, np.take(np.moveaxis(x, dims, range(len(dims))).reshape(n, -1), 0, 0).reshape(mean.shape), mean)
    squares = np.sum(np.square(x - mean), axis=tuple(dims), keepdims=True)
    largest = np.max(np.abs(finite(x)), axis=tuple(dims), keepdims=True)
    off = 4 * (n + 2) * DOUBLE * largest
    return mean, squares / np.longdouble(max(n - correction, 0)), off, off * largest * n / max(n - correction, 0.5)


def normal(p):
    """standardise, layer_norm"""
    i = p.operand(FLOATS + ["i4", "i8", "i1", "u1"], [1, 2, 3])
    x, dims, eps = p.twins[i].astype("g"), some_dims(p, p.twins[i].ndim), unit(p.twins[i].dtype)
    if p.twins[i].dtype.kind in "iu":
        eps = DOUBLE
    if np.max(np.abs(finite(x)), initial=0) > 1e15:
        raise Unknown  # a variance leaves f32
    layer = p.chance(0.5)
    correction = 0 if layer else p.pick([0, 1, 0.5])
    mean, variance, off, off_square = moments(x, dims, correction)
    added = p.pick([1e-5, 0.1, 1]) if layer else 0
    deviation = np.sqrt(variance + added)
    if not layer and np.any((finite(variance) > 0) & (variance < 64 * off_square)):
        raise Unknown  # a deviation that is rounding alone
    value = (x - mean) / deviation
    relative = np.minimum(off_square / np.where(deviation > 0, deviation**2, 1), 1e9) + 8 * eps
    away = off + 2 * eps * (np.abs(mean) + np.abs(x))
    bound = finite(away / np.where(deviation > 0, deviation, 1)) + relative * np.abs(finite(value))
    if not layer:
        value = np.where(deviation == 0, 0, value)
        out = p.out(x.shape, FLOATS, [i], [i])
        return bounded(p, f"a{i}, {dims}, {correction}, a{out}", "standardise",
                       [p.handles[i], ints(dims), len(dims), D(correction), p.handles[out]], out, value, bound)
    handles, texts = [type(p.handles[0])(0)] * 2, ["-", "-"]
    inputs = [i]
    for which in range(2):
        if p.chance(0.7):
            narrow = tuple(1 if p.chance(0.4) else n for n in x.shape[p.integer(0, x.ndim + 1):])
            j = p.new(p.types(FLOATS), narrow, True)
            handles[which], texts[which] = p.handles[j], f"a{j}"
            inputs.append(j)
            factor = p.twins[j].astype("g")
            size = np.abs(finite(factor))
            bound = bound * size + 4 * eps * np.abs(finite(value * factor)) if which == 0 else bound + 4 * eps * (size + np.abs(finite(value)))
            value = value * factor if which == 0 else value + factor
    out = p.out(x.shape, FLOATS, inputs, inputs)
    return bounded(p, f"a{i}, {dims}, {', '.join(texts)}, {added}, a{out}", "layer_norm",
                   [p.handles[i], ints(dims), len(dims), *handles, D(added), p.handles[out]], out, value, bound)


# --- statistics and distances
def covariance(p):
    i = p.operand(COMPLEX if p.chance(0.3) else FLOATS + ["i4", "i1", "u1", "?"], 2)
    x, columns, correction = p.twins[i], p.integer(0, 2), p.pick([0, 1, 0.5])
    kind = "G" if x.dtype.kind == "c" else "g"
    rows = (x.T if columns else x).astype(kind)
    m, n = rows.shape
    if n <= correction or np.max(np.abs(finite(rows)), initial=0) > 1e15:
        raise Unknown
    centred = rows - rows.mean(axis=1, keepdims=True)
    value = centred @ centred.conj().T / np.longdouble(n - correction)
    eps = unit(x.dtype) if x.dtype.kind in "fc" else DOUBLE
    largest = np.max(np.abs(finite(rows)), axis=1)
    bound = 8 * eps * (n + 4) * n / (n - correction) * largest[:, None] * largest[None, :]
    out = p.out((m, m), COMPLEX if kind == "G" else FLOATS[:2], [i])
    if unit(p.twins[out].dtype) > eps:
        bound = bound * (unit(p.twins[out].dtype) / eps)
    return bounded(p, f"a{i}, {columns}, {correction}, a{out}", "covariance",
                   [p.handles[i], columns, D(correction), p.handles[out]], out, value, bound)


def far(p):
    """distances, cosine_distances"""
    i = p.operand(REAL, 2)
    k = p.twins[i].shape[1]
    fits = [n for n, t in enumerate(p.twins) if t.ndim == 2 and t.shape[1] == k and t.dtype.kind != "c"]
    j = p.pick(fits) if p.chance(0.3) else p.new(p.types(REAL), (p.shape(1)[0], k), True)
    x, y = (p.twins[n].astype("g") for n in (i, j))
    if any(np.isinf(v).any() or np.max(np.abs(finite(v)), initial=0) > 1e15 for v in (x, y)):
        raise Unknown
    out = p.out((x.shape[0], y.shape[0]), FLOATS, [i, j])
    arguments, text = [p.handles[i], p.handles[j], p.handles[out]], f"a{i}, a{j}, a{out}"
    if p.chance(0.5):
        lengths = [np.sqrt(np.square(v).sum(1)) for v in (x, y)]
        value = 1 - (x @ y.T) / (lengths[0][:, None] * lengths[1][None, :])
        return bounded(p, text, "cosine_distances", arguments, out, value, 8 * DOUBLE * (k + 4))
    value = np.sqrt(np.square(x[:, None, :] - y[None, :, :]).sum(2))
    counts = np.maximum(np.isfinite(x).sum(0), 1)
    centre = finite(x).sum(0) / counts
    sizes = [np.square(finite(v - centre)).sum(1) for v in (x, y)]
    off = 8 * DOUBLE * (k + 4) * (sizes[0][:, None] + sizes[1][None, :])
    off = off + 8 * DOUBLE * np.abs(centre).max(initial=0) * finite(value) * (k + 1)
    bound = np.minimum(np.sqrt(off), off / np.where(finite(value) > 0, finite(value), 1e-300))
    return bounded(p, text, "distances", arguments, out, value, bound)


# --- order and counts
def quantiles(p):
    """quantile, median"""
    i = p.operand(REAL[:-1], [1, 2, 3])
    x, d = p.twins[i], p.integer(0, p.twins[i].ndim)
    n, half = x.shape[d], p.chance(0.3)
    q = [0.5] if half else [float(p.pick([0, 1, 0.25, 0.5, round(float(p.random.random()), 3)])) for _ in range(p.integer(1, 4))]
    if n == 0:
        raise Unknown
    rows = np.moveaxis(np.sort(x.astype("g"), d), d, 0)
    values, bounds = [], []
    eps = unit(x.dtype) if x.dtype.kind == "f" else DOUBLE
    for one in q:
        place = one * (n - 1)
        low = int(place)
        v, w = rows[low], rows[min(low + 1, n - 1)]
        if np.any(np.isinf(v) | np.isinf(w)) and place != low:
            raise Unknown  # NumPy's line through an infinity may be NaN
        values.append(np.where(np.isnan(rows[-1]), np.nan, np.where(v == w, v, v + (finite(w) - finite(v)) * (place - low))))
        bounds.append(4 * eps * (np.abs(finite(v)) + np.abs(finite(w))))
    value, bound = (np.moveaxis(np.array(z).reshape(len(q), *rows.shape[1:]), 0, d) for z in (values, bounds))
    out = p.out(value.shape, FLOATS, [i])
    if half:
        return bounded(p, f"a{i}, {d}, a{out}", "median", [p.handles[i], d, p.handles[out]], out, value, bound)
    return bounded(p, f"a{i}, {q}, {d}, a{out}", "quantile",
                   [p.handles[i], (ctypes.c_double * len(q))(*q), len(q), d, p.handles[out]], out, value, bound)


def weighed(p):
    """histogram, histogram_edges, bincount with weights"""
    name = p.pick(["histogram", "histogram_edges", "bincount"])
    i, n = p.operand(INTEGERS + ["?"] if name == "bincount" else REAL), p.integer(1, 9)
    x = p.twins[i]
    j = p.new(p.types(FLOATS + ["i8", "i4", "u1"]), x.shape, True)
    weights = p.twins[j].ravel()
    weights = weights.astype("g") if weights.dtype.kind == "f" else weights.astype("u8")
    flat, extra, text = x.ravel(), [], ""
    if name == "bincount":
        inside = (flat >= 0) & (flat < n)
        place = np.where(inside, flat, 0).astype("i8")
    elif name == "histogram":
        lo = float(p.integer(-9, 3))
        hi = lo + p.integer(1, 12)
        inside = (flat >= lo) & (flat <= hi)
        edges = lo + np.arange(n + 1) * ((hi - lo) / n)
        extra, text = [D(lo), D(hi)], f", {lo}, {hi}"
    else:
        k = p.new(p.types(["f8", "f4", "i4"]), (n + 1,), False)
        p.twins[k][...] = np.sort(p.random.integers(-9, 10, n + 1))
        p.write(k)
        edges = p.twins[k].astype("g")
        inside = (flat >= edges[0]) & (flat <= edges[-1])
        extra, text = [p.handles[k]], f", a{k}"
    if name != "bincount":
        place = np.minimum(np.searchsorted(edges, np.where(inside, flat, edges[0]).astype("g"), "right") - 1, n - 1)
    value, sizes = np.zeros(n, weights.dtype), np.zeros(n, "g")
    np.add.at(value, place[inside], weights[inside])
    if weights.dtype.kind != "f":
        out = p.out((n,), ["i8"], [i, j])
        return called(p, f"a{i}{text}, a{j}, a{out}", name, [i, j], out, value.astype("i8"),
                      [p.handles[i], *extra, p.handles[j], p.handles[out]])
    np.add.at(sizes, place[inside], np.abs(finite(weights[inside])))
    out = p.out((n,), FLOATS[:1], [i, j])
    return bounded(p, f"a{i}{text}, a{j}, a{out}", name, [p.handles[i], *extra, p.handles[j], p.handles[out]], out, value,
                   2 * DOUBLE * x.size * sizes)


def rounded_scan(p):
    """cumulative sums, products and log(sum(e^x)), with a bound for floats"""
    name = p.pick(["sum", "prod", "logsumexp"])
    i = p.operand((FLOATS if name == "logsumexp" else REAL), [1, 2, 3])
    x, d = p.twins[i], p.integer(0, p.twins[i].ndim)
    own = "g" if x.dtype.kind == "f" else "i8" if x.dtype.kind == "i" else "u8"
    wide, n = x.astype(own), x.shape[d]
    out = p.out(x.shape, FLOATS if own == "g" else ["i8", "u8"], [i])
    text, arguments = f"a{i}, {d}, a{out}", [p.handles[i], d, p.handles[out]]
    if own != "g":
        value = getattr(np, "cum" + name)(wide, d).astype(p.twins[out].dtype)
        return called(p, text, "cumulative_" + name, [i], out, value, arguments)
    if name == "logsumexp":
        value = np.logaddexp.accumulate(wide, d)
        bound = 4 * DOUBLE * (n + 1) * (1 + np.abs(finite(value)))
    else:
        value = getattr(np, "cum" + name)(wide, d)
        if name == "prod" and np.any(np.abs(finite(np.where(wide == 0, 1, np.log10(np.abs(wide) + (wide == 0))))).cumsum(d) > 250):
            raise Unknown  # overflows on the way
        bound = 4 * DOUBLE * n * (np.abs(finite(value)) if name == "prod" else np.cumsum(np.abs(finite(wide)), d))
    return bounded(p, text, "cumulative_" + name, arguments, out, value, bound)


def made(p, text, call, wants):
    """A call that makes arrays, which are compared at once."""
    at = (type(p.handles[0]) * len(wants))()

    def run():
        status = call(at)
        for number, want in enumerate(wants if status == 0 else []):
            handle = type(p.handles[0])(at[number].id)
            got = p.session.get(handle)
            p.ok(p.c.dm_array_destroy(p.at, handle))
            if got.dtype != want.dtype or not equal(got, want):
                raise Different(f"result {number} is {got.dtype}\n{got}\nNumPy {want}")
        return status
    return Step(text, run, [], [], blocks=True)


def distinct(p):
    """unique with counts and inverse"""
    i = p.operand(REAL, [0, 1, 2, 3])
    flat = p.twins[i].ravel()
    order = order_of(flat, 0, False)
    values = flat[order]
    new = np.ones(flat.size, bool)
    new[1:] = (values[1:] != values[:-1]) & ~(np.isnan(values[1:]) & np.isnan(values[:-1]))
    group = np.cumsum(new) - 1
    inverse = np.zeros(flat.size, "i8")
    inverse[order] = group

    def call(at):
        return p.c.dm_unique(p.at, p.handles[i], ctypes.byref(at, 0), ctypes.byref(at, 8), ctypes.byref(at, 16))
    return made(p, f"unique(a{i}) with counts and inverse", call, [values[new], np.bincount(group, minlength=new.sum()).astype("i8"), inverse])


def places(p):
    """nonzero, of any type"""
    i = p.operand(REAL + COMPLEX, [1, 2, 3])
    return made(p, f"nonzero(a{i})", lambda at: p.c.dm_nonzero(p.at, p.handles[i], p.twins[i].ndim, at), list(np.nonzero(p.twins[i])))


def members(p):
    """isin, of any types, against a comparison of each with each"""
    i = p.operand(REAL + COMPLEX)
    types = [code(p.twins[i].dtype)] if p.chance(0.6) else REAL + COMPLEX
    j = p.operand(types) if p.chance(0.2) else p.new(p.types(types), p.shape(), True)
    x, test = p.twins[i], p.twins[j]
    if x.size * test.size > 300_000:
        raise Unknown
    common, invert = np.promote_types(x.dtype, test.dtype), p.integer(0, 2)
    there = (x.ravel().astype(common)[:, None] == test.ravel().astype(common)[None, :]).any(1).reshape(x.shape)
    out = p.out(x.shape, ["?", "f4", "u1"], [i, j])
    return called(p, f"{a(p, i, j)}, {invert}, a{out}", "isin", [i, j], out, convert(there != bool(invert), p.twins[out].dtype),
                  [p.handles[i], p.handles[j], invert, p.handles[out]])


OPS = [soft, entropy, normal, covariance, far, quantiles, weighed, rounded_scan, distinct, places, members]
