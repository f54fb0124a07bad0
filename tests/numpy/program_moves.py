"""More operations of random programs: those that move, choose, order and count elements."""

import ctypes

import numpy as np

from check_expressions import Unknown, carrier
from dmath import Refused
from program_ops import (a, called, choice, elementwise, expression, inexact, linear, product, reduction, signed_zeros, some, total,
                         whole)
from programs import D, INTEGERS, L, REAL, Step, convert, ints, longs

WRAP, CLIP, RAISE = 1, 2, 0


# --- parts
def copied(p):
    i = p.operand(REAL + ["c16"])
    x = p.twins[i]
    types = ["c16"] if x.dtype.kind == "c" else REAL
    shape = x.shape if p.chance(0.6) or x.ndim > 2 else (p.integer(1, 5), *x.shape)
    out = p.new(p.types(types), shape, False) if p.chance(0.4) else p.out(shape, types + ["c16"], [i])
    return called(p, None, "copy", [i], out, np.broadcast_to(x.astype(carrier(x.dtype)), shape))


def filled(p):
    out = p.operand(REAL + ["c16"])
    t = p.twins[out]
    kind = p.pick(["fill", "fill_identity", "fill_arange"])
    number = 1 if t.dtype.kind == "b" else p.integer(0, 9)
    if kind == "fill":
        return called(p, f"a{out}, {number}", kind, [], out, np.full(t.shape, number), [p.handles[out], D(number)])
    if kind == "fill_identity" and t.ndim == 2:
        return called(p, f"a{out}, {number}", kind, [], out, number * np.eye(*t.shape), [p.handles[out], D(number)])
    if t.dtype.kind == "b" or t.dtype.kind in "iu" and number + t.size >= np.iinfo(t.dtype).max:
        raise Unknown
    value = (number + np.arange(t.size)).reshape(t.shape)
    return called(p, f"a{out}, {number}, 1", "fill_arange", [], out, value, [p.handles[out], D(number), D(1)])


def rearranged(p):
    """permute, roll, flip, tile, repeat"""
    i = p.operand(REAL + ["c16"], [1, 2, 3])
    x, own = p.twins[i], [p.twins[i].dtype.str[1:].replace("b1", "?")]
    wide, d = x.astype(carrier(x.dtype)), p.integer(0, x.ndim)
    kind = p.pick(["permute", "roll", "flip", "tile", "repeat"])
    if kind == "permute":
        perm = [int(n) for n in p.random.permutation(x.ndim)]
        value, between = wide.transpose(perm), [ints(perm)]
    elif kind == "roll":
        shift = p.integer(-5, 6)
        value, between = np.roll(wide, shift, d), [L(shift), d]
    elif kind == "flip":
        value, between = np.flip(wide, d), [d]
    elif kind == "tile":
        times = [p.integer(0, 3) for _ in x.shape]
        value, between = np.tile(wide, times), [longs(times)]
    else:
        times = p.integer(0, 4)
        value, between = np.repeat(wide, times, d), [L(times), d]
    types = own if kind == "flip" else ["c16"] if x.dtype.kind == "c" else REAL
    out = p.out(value.shape, types, [i])
    return called(p, f"a{i}, {[getattr(b, 'value', b) if not hasattr(b, '__len__') else list(b) for b in between]}, a{out}", kind,
                  [i], out, value, [p.handles[i], *between, p.handles[out]])


def joined(p):
    i = p.operand(REAL, [1, 2])
    x = p.twins[i]
    together = p.chance(0.5)
    d = p.integer(0, x.ndim)
    parts = [i]
    for _ in range(p.integer(1, 3)):
        shape = list(x.shape)
        if not together:
            shape[d] = p.integer(0, 6)
        same = [n for n, t in enumerate(p.twins) if t.shape == tuple(shape) and t.dtype.kind != "c"]
        parts.append(p.pick(same) if same and p.chance(0.7) else p.new(p.types(REAL), tuple(shape), True))
    out_type = p.types(REAL)
    pieces = [convert(p.twins[n].astype(carrier(p.twins[n].dtype)), out_type) for n in parts]
    value = np.stack(pieces, d) if together else np.concatenate(pieces, d)
    out = p.out(value.shape, [out_type], parts)
    handles = (type(p.handles[0]) * len(parts))(*[p.handles[n] for n in parts])
    name = "stack" if together else "concatenate"
    return called(p, f"{a(p, *parts)}, dim {d}, a{out}", name, parts, out, value, [len(parts), handles, d, p.handles[out]])


def padded(p):
    i = p.operand(REAL, [1, 2])
    x = p.twins[i]
    mode = p.integer(0, 5)
    before, after = [p.integer(0, 4) for _ in x.shape], [p.integer(0, 4) for _ in x.shape]
    if mode and (0 in x.shape or mode == 2 and 1 in x.shape):
        raise Unknown
    name = ["constant", "edge", "reflect", "symmetric", "wrap"][mode]
    if mode == 4:  # numpy.pad before 1.25 repeats wrongly where it pads by more than there is
        value = x[np.ix_(*(np.arange(-b, n + c) % n for b, n, c in zip(before, x.shape, after)))]
    else:
        value = np.pad(x, list(zip(before, after)), name, **({} if mode else {"constant_values": 1}))
    out = p.out(value.shape, [x.dtype.str[1:].replace("b1", "?")], [i])
    return called(p, f"a{i}, {before}, {after}, {name}, a{out}", "pad", [i], out, value,
                  [p.handles[i], longs(before), longs(after), mode, D(1), p.handles[out]], blocks=mode > 1)


# --- by index
def index_array(p, shape, n, mode):
    """A new array of indices, as an operand of that mode."""
    i = p.new(p.types(["i8", "i4", "i2"]), shape, False)
    values = p.random.integers(-n, n, shape) if mode == RAISE else p.random.integers(-2 * n, 2 * n, shape)
    p.twins[i][...] = values
    p.write(i)
    at = p.twins[i].astype("i8")
    return i, np.where(at < 0, at + n, at) if mode == RAISE else at % n if mode == WRAP else np.clip(at, 0, n - 1)


def along(index, dim):
    places = list(np.indices(index.shape))
    places[dim] = index
    return tuple(places)


def indexed(p):
    i = p.operand(REAL + ["c16"], [1, 2, 3], some)
    x, d, mode = p.twins[i], p.integer(0, p.twins[i].ndim), p.integer(0, 3)
    own = [x.dtype.str[1:].replace("b1", "?")]
    rows, m = p.chance(0.6), p.integer(1, 9)
    shape = tuple(m if k == d else n for k, n in enumerate(x.shape))
    j, index = index_array(p, (m,) if rows else shape, x.shape[d], mode)
    kind = p.pick(["take", "put", "scatter_add"])
    name = kind if rows else kind + "_along_dim"
    if kind == "take":
        value = np.take(x, index, d) if rows else np.take_along_axis(x, index, d)
        out = p.out(value.shape, own, [i, j])
        return called(p, f"a{i}, a{j}, {d}, {mode}, a{out}", name, [i, j], out, value,
                      [p.handles[i], p.handles[j], d, mode, p.handles[out]], waits=mode == RAISE)
    fits = [n for n, t in enumerate(p.twins) if t.shape == shape and t.dtype == x.dtype and p.apart(n, i)]
    v = p.pick(fits) if fits else p.new(own[0], shape, True)
    value = x.copy()
    where = (slice(None),) * d + (index,) if rows else along(index, d)
    if kind == "put":
        value[where] = p.twins[v]
    elif x.dtype.kind == "b":
        np.logical_or.at(value, where, p.twins[v])
    else:
        np.add.at(value, where, p.twins[v])
    return called(p, f"a{i}, a{j}, a{v}, {d}, {mode}", name, [], i, value, [p.handles[i], p.handles[j], p.handles[v], d, mode],
                  waits=mode == RAISE)


def placed(p):
    """diagonal, set_diagonal, tril, triu, one_hot"""
    kind = p.pick(["diagonal", "tril", "triu", "one_hot"])
    if kind == "one_hot":
        i = p.operand(INTEGERS, [0, 1, 2])
        n = p.integer(1, 8)
        value = p.twins[i][..., None] == np.arange(n, dtype="i8").astype("f8" if p.twins[i].dtype == np.uint64 else "i8")
        out = p.out(value.shape, REAL, [i])
        return called(p, None, kind, [i], out, value)
    i = p.operand(REAL, 2)
    x = p.twins[i].astype(carrier(p.twins[i].dtype))
    if kind == "diagonal":
        offset = p.integer(-x.shape[0] + 1, x.shape[1]) if x.size else 0
        value = np.diagonal(x, offset)
        out = p.out(value.shape, REAL, [i])
        return called(p, f"a{i}, {offset}, a{out}", kind, [i], out, value, [p.handles[i], L(offset), p.handles[out]])
    value = getattr(np, kind)(x)
    out = p.out(value.shape, REAL, [i], [i])
    return called(p, None, kind, [i], out, value)


# --- order
def order_of(x, d, descending):
    """The indices that sort, NaN as the largest, equal ones in their order."""
    if not descending:
        return np.argsort(x, axis=d, kind="stable")
    return x.shape[d] - 1 - np.flip(np.argsort(np.flip(x, d), axis=d, kind="stable"), d)


def sorted_(p):
    i = p.operand(REAL, [1, 2, 3])
    x, d, descending = p.twins[i], p.integer(0, p.twins[i].ndim), p.integer(0, 2)
    order, kind = order_of(x, d, descending), p.pick(["sort", "argsort", "topk"])
    values = np.take_along_axis(x.astype(carrier(x.dtype)), order, d)
    if kind == "topk":
        k = p.integer(min(1, x.shape[d]), x.shape[d] + 1)
        first = (slice(None),) * d + (slice(k),)
        best, places = p.out(values[first].shape, REAL, [i]), p.new("i8", values[first].shape, False)
        return Step(f"topk(a{i}, {d}, {descending}, a{best}, a{places})",
                    lambda: p.c.dm_topk(p.at, p.handles[i], d, descending, p.handles[best], p.handles[places]), [best, places],
                    [convert(values[first], p.twins[best].dtype), order[first]])
    out = p.out(x.shape, REAL if kind == "sort" else ["i8", "i4"], [i], [i] if kind == "sort" else [])
    return called(p, f"a{i}, {d}, {descending}, a{out}", kind, [i], out, values if kind == "sort" else order,
                  [p.handles[i], d, descending, p.handles[out]])


def scanned(p):
    i = p.operand(REAL, [1, 2, 3])
    x, d = p.twins[i], p.integer(0, p.twins[i].ndim)
    kind = p.pick(["sum", "max", "min"])
    wide = x.astype(carrier(x.dtype))
    if kind == "sum":
        if x.dtype.kind == "f" and not whole(x):
            raise Unknown
        value = 0 + np.cumsum(x.astype({"u": "u8", "f": "f8"}.get(x.dtype.kind, "i8")), d)  # never -0
    else:
        signed_zeros(x)
        value = getattr(np, kind + "imum").accumulate(wide, d)
    out = p.out(x.shape, REAL, [i], [i])
    return called(p, f"a{i}, {d}, a{out}", "cumulative_" + kind, [i], out, value, [p.handles[i], d, p.handles[out]])


def counted(p):
    """histogram, bincount, searchsorted, isin"""
    kind, i = p.pick(["histogram", "bincount", "searchsorted", "isin"]), p.operand()
    x, n = p.twins[i], p.integer(1, 9)
    if kind == "isin":
        j = p.operand()
        common, invert = carrier(np.promote_types(x.dtype, p.twins[j].dtype)), p.integer(0, 2)
        value = np.isin(x.astype(common), p.twins[j].astype(common), invert=bool(invert))
        out = p.out(x.shape, REAL, [i, j])
        return called(p, f"a{i}, a{j}, {invert}, a{out}", kind, [i, j], out, value,
                      [p.handles[i], p.handles[j], invert, p.handles[out]])
    if kind == "histogram":
        lo = float(p.integer(-9, 3))
        hi = lo + p.integer(1, 12)
        value = np.histogram(x[np.isfinite(x)].astype("f8"), n, (lo, hi))[0]
        out = p.out((n,), REAL, [i])
        return called(p, f"a{i}, {lo}, {hi}, a{out}", kind, [i], out, value,
                      [p.handles[i], D(lo), D(hi), p.twins and type(p.handles[0])(0), p.handles[out]])
    if kind == "bincount":
        if x.dtype.kind == "f":
            raise Unknown
        flat = x.ravel()
        value = np.bincount(flat[(flat >= 0) & (flat < n)].astype("i8"), minlength=n)
        out = p.out((n,), REAL, [i])
        return called(p, f"a{i}, a{out}", kind, [i], out, value, [p.handles[i], type(p.handles[0])(0), p.handles[out]])
    row = p.new(x.dtype.str[1:].replace("b1", "?"), (p.integer(1, 30),), True)
    p.twins[row][...] = np.sort(p.twins[row])
    p.write(row)
    right = p.integer(0, 2)
    value = np.searchsorted(p.twins[row], x, "right" if right else "left")
    out = p.out(x.shape, ["i8", "i4"], [i, row])
    return called(p, f"a{row}, a{i}, {right}, a{out}", kind, [row, i], out, value, [p.handles[row], p.handles[i], right, p.handles[out]])


# --- what blocks
def written(p):
    i = p.operand(REAL + ["c16"])
    p.flush()
    p.twins[i][...] = p.values(p.twins[i].dtype, p.twins[i].shape)

    def call():
        p.write(i)
    return Step(f"write(a{i})", call, [], [], blocks=True)


def chosen(p):
    """unique, compress, nonzero: new arrays whose extents follow from the values"""
    i = p.operand(REAL, [1, 2])
    x = p.twins[i]
    at = type(p.handles[0])()
    p.flush()
    if p.chance(0.3):
        places = (type(at) * x.ndim)()
        p.ok(p.c.dm_nonzero(p.at, p.handles[i], x.ndim, places))
        made = [p.add(type(at)(place.id), value) for place, value in zip(places, np.nonzero(x))]
        return Step(f"{a(p, *made)} = nonzero(a{i})", lambda: 0, [], [], blocks=True)
    if p.chance(0.5):
        p.ok(p.c.dm_unique(p.at, p.handles[i], ctypes.byref(at), None, None))
        flat = np.sort(x, None, "stable")  # the first of equal ones stays: of 0 and -0, too
        new = np.ones(flat.size, bool)
        new[1:] = (flat[1:] != flat[:-1]) & ~(np.isnan(flat[1:]) & np.isnan(flat[:-1]))
        value, text = flat[new], f"unique(a{i})"
    else:
        d = p.integer(0, x.ndim)
        mask = p.new(p.types(["?", "i4", "f4"]), (x.shape[d],), True)
        p.ok(p.c.dm_compress(p.at, p.handles[i], p.handles[mask], d, None, ctypes.byref(at)))
        value, text = np.compress(p.twins[mask] != 0, x, d), f"compress(a{i}, a{mask}, {d})"
    made = p.add(at, value.astype(x.dtype))
    return Step(f"a{made} = {text}", lambda: 0, [], [], blocks=True)


def viewed(p):
    i = p.operand(REAL + ["c16"], [1, 2, 3], some)
    low, shape, steps = [], [], []
    for n in p.twins[i].shape:
        t = p.integer(1, 4) if p.chance(0.3) else 1
        l = p.integer(0, n)
        low.append(l)
        shape.append(p.integer(1, (n - l - 1) // t + 2))
        steps.append(t)
    p.view(i, low, shape, steps)
    return Step(p.log.pop(), lambda: 0, [], [], blocks=False)


OPS = {elementwise: 6, choice: 1, linear: 3, expression: 4, inexact: 1, reduction: 4, total: 1, product: 3, copied: 4, filled: 1,
       rearranged: 3, joined: 1, padded: 1, indexed: 4, placed: 2, sorted_: 3, scanned: 2, counted: 2, written: 1, chosen: 1, viewed: 3}
WEIGHTS = np.array(list(OPS.values())) / sum(OPS.values())


def draw(p):
    """The next step."""
    for _ in range(100):
        try:
            with np.errstate(all="ignore"):
                return list(OPS)[int(p.random.choice(len(WEIGHTS), p=WEIGHTS))](p)
        except (Unknown, Refused):
            pass
    raise AssertionError("no operation fits")
