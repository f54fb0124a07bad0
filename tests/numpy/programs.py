"""A random program in the making: arrays and views that share memory, on the workers and, as their twins, in NumPy.

An operation (program_ops.py) draws its operands, says what its twin would be and how it is called: a Step. A program runs its
steps one by one; or, recorded, as programs of dmath; or, explained, with the bytes that explain predicts beside the counters.
"""

import ctypes

import numpy as np

import dmath
from check_expressions import Unknown, Value, carrier, draw_values, same, within  # noqa: F401

REAL = ["f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u1", "?"]
FLOATS = ["f8", "f4", "f2"]
INTEGERS = ["i8", "i4", "i2", "i1", "u8", "u4", "u1"]
MOST = 6000  # elements of an array
KEPT = 22    # arrays and views at a time


def L(x):
    return ctypes.c_int64(int(x))


def D(x):
    return ctypes.c_double(x)


def longs(values):
    return (ctypes.c_int64 * max(len(values), 1))(*[int(v) for v in values])


def ints(values):
    return (ctypes.c_int * max(len(values), 1))(*[int(v) for v in values])


class Different(Exception):
    pass


class Step:
    """call(): the calls of dmath. values: what they leave in each array of outs, in its type; bound: None, or the greatest error
    of the only one. blocks: not for programs nor explain; waits: not for programs."""

    def __init__(self, text, call, outs, values, bound=None, blocks=False, waits=False):
        self.text, self.call, self.outs, self.values, self.bound = text, call, outs, values, bound
        self.blocks, self.waits = blocks, blocks or waits


def convert(values, dtype):
    """As dm_copy converts. Floats may be in their carrier."""
    dtype = np.dtype(dtype)
    values = np.asarray(values)
    if values.dtype.kind == "c" and dtype.kind != "c":
        values = values.real
    if dtype.kind == "b":
        return values != 0
    if dtype.kind in "iu" and values.dtype.kind == "f":
        info = np.iinfo(dtype)
        wide = np.trunc(np.nan_to_num(values.astype("g"), nan=0, posinf=np.inf, neginf=-np.inf))
        return np.clip(wide, np.longdouble(info.min), np.longdouble(info.max)).astype(dtype)
    return values.astype(dtype)


def equal(got, want):
    """Bit for bit, but any NaN for a NaN."""
    if got.dtype.kind == "c":
        return equal(got.real, want.real) and equal(got.imag, want.imag)
    return same(got, want) and (got.dtype.kind != "f" or bool(np.all(np.isnan(got) | (np.signbit(got) == np.signbit(want)))))


class Program:
    """exact: every result is known to the last bit, so nothing is read before the end. whole: floats are small integers, so
    that sums and products are exact as well. how: "calls", "recorded" or "explained". trail: a list that is given what dmath
    computes, or follows: the trail of the same program, run in another way, which must be equal to the bit."""

    def __init__(self, session, seed, number, how, trail=None, follows=None):
        self.session, self.c, self.at, self.how = session, session.c, session.at, how
        self.trail, self.follows = trail, None if follows is None else iter(follows)
        self.random = np.random.default_rng([seed, *np.ravel(number)])
        self.places = np.random.default_rng([seed, *np.ravel(number), session.workers])  # layouts alone differ with the workers
        kind = self.random.random()
        self.exact, self.whole = kind < 0.7, kind < 0.45
        self.twins, self.handles, self.spans, self.log, self.queue = [], [], [], [], []
        self.roots = 0
        self.counts = {"steps": 0, "explained": 0, "recorded": 0, "runs explained": 0, "bounded": 0, "to the bit": 0}
        self.chosen = [str(t) for t in self.random.choice(REAL, self.random.integers(2, 6))]

    # --- drawing
    def chance(self, p):
        return self.random.random() < p

    def pick(self, items):
        return items[int(self.random.integers(len(items)))]

    def integer(self, lo, hi):
        return int(self.random.integers(lo, hi))

    def types(self, allowed):
        own = [t for t in self.chosen if t in allowed]
        return self.pick(own if own and self.chance(0.8) else list(allowed))

    def shape(self, ndim=None):
        ndim = self.integer(0, 4) if ndim is None else ndim
        return tuple(int(n) for n in self.random.choice([1, 2, 3, 4, 5, 7, 16, 23] if ndim < 3 else [1, 2, 3, 5, 7], ndim))

    def values(self, dtype, shape):
        dtype = np.dtype(dtype)
        if dtype.kind == "c":
            return (self.random.integers(-9, 10, shape) + 1j * self.random.integers(-9, 10, shape)).astype(dtype)
        if dtype.kind == "f" and self.whole:
            return self.random.integers(-9, 10, shape).astype(dtype) + np.zeros(shape, dtype)
        return draw_values(self.random, dtype, shape)

    def layout(self, ndim, w):
        r, c, at = self.places, self.c, self.at
        kind = int(r.integers(0, 8))
        if kind < 2 or ndim == 0:
            return None
        if kind == 2:
            return c.dm_layout_split(at, int(r.integers(0, ndim)))
        if kind == 3:
            return c.dm_layout_cyclic(at, int(r.integers(0, ndim)), int(r.integers(1, 4)))
        if kind == 4:
            return c.dm_layout_replicated(at)
        if kind == 5:
            return c.dm_layout_single(int(r.integers(0, w)))
        if kind == 6 and ndim > 1:
            rows = int(r.integers(1, w + 1))
            return c.dm_layout_grid(rows, w // rows, int(r.integers(1, 5)), int(r.integers(1, 5)))
        return "explicit"

    # --- arrays
    def create(self, dtype, shape):
        """A new array without contents, on all workers or on a group; the handle alone."""
        if self.places.random() > 0.15:
            return self.create_on(self.session.workers, dtype, shape)
        group, count = dmath.Handle(), int(self.places.integers(1, self.session.workers + 1))
        members = ints(self.places.permutation(self.session.workers)[:count])
        self.ok(self.c.dm_group_create(self.at, members, count, ctypes.byref(group)))
        self.ok(self.c.dm_group_begin(self.at, group))
        handle = self.create_on(count, dtype, shape)
        self.ok(self.c.dm_group_end(self.at))
        self.ok(self.c.dm_group_destroy(self.at, group))
        return handle

    def create_on(self, workers, dtype, shape):
        layout, handle = self.layout(len(shape), workers), dmath.Handle()
        if layout == "explicit":
            block = [int(self.places.integers(1, 5)) for _ in shape]
            count = int(np.prod([-(-n // b) for n, b in zip(shape, block)]))
            self.kept = longs(block), ints(self.places.integers(0, workers, count))
            layout = self.c.dm_layout_explicit(len(shape), self.kept[0], self.kept[1], L(count))
        self.ok(self.c.dm_array_create(self.at, dmath.CODES[np.dtype(dtype)], len(shape), longs(shape),
                                       ctypes.byref(layout) if layout else None, ctypes.byref(handle)))
        return handle

    def add(self, handle, twin, span=None):
        """span: the array that it is part of, by number, and for each dim there its first index, extent and step."""
        if span is None:
            self.roots += 1
            span = self.roots, [(0, n, 1) for n in twin.shape]
        self.twins.append(twin)
        self.handles.append(handle)
        self.spans.append(span)
        return len(self.twins) - 1

    def apart(self, i, j):
        """Do two arrays share no memory, as far as dmath can tell?"""
        (one, dims), (other, theirs) = self.spans[i], self.spans[j]
        if one != other or 0 in self.twins[i].shape or 0 in self.twins[j].shape:
            return True
        if dims is None or theirs is None:  # reshaped
            return False
        return any(b > a + (n - 1) * t or a > b + (m - 1) * u or (t == u and (b - a) % t != 0)
                   for (a, n, t), (b, m, u) in zip(dims, theirs))

    def new(self, dtype, shape, filled):
        """An array, or now and then a view of a new larger one; filled with values, or 0."""
        grown = self.chance(0.3) and len(shape) > 0
        low = [self.integer(0, 3) if grown else 0 for _ in shape]
        steps = [self.integer(1, 3) if grown and self.chance(0.3) else 1 for _ in shape]
        full = tuple(l + max(n - 1, 0) * t + (n > 0) + (self.integer(0, 3) if grown else 0)
                     for l, n, t in zip(low, shape, steps))
        twin = np.zeros(full, dtype)
        base = self.add(self.create(dtype, full), twin)
        if filled:
            twin[...] = self.values(dtype, full)
            self.write(base)
        else:
            self.ok(self.c.dm_fill(self.at, self.handles[base], D(0)))
        self.log.append(f"a{base} = {twin.dtype} {full}" + (" filled" if filled else ""))
        return self.view(base, low, shape, steps) if grown else base

    def write(self, i):
        packed = np.array(self.twins[i], order="C")
        if packed.size:
            self.ok(self.c.dm_array_write(self.at, self.handles[i], None, None, packed.ctypes.data_as(ctypes.c_void_p), L(0)))

    def view(self, i, low, shape, steps):
        handle = dmath.Handle()
        self.ok(self.c.dm_array_slice(self.at, self.handles[i], longs(low), longs(shape), longs(steps), ctypes.byref(handle)))
        cut = tuple(slice(l, l + max(n - 1, 0) * t + (n > 0), t) for l, n, t in zip(low, shape, steps))
        root, dims = self.spans[i]
        dims = dims and [(a + l * t, n, t * u) for (a, _, t), l, n, u in zip(dims, low, shape, steps)]
        at = self.add(handle, self.twins[i][cut if cut else ...], (root, dims))
        self.log.append(f"a{at} = a{i}[{', '.join(f'{c.start}:{c.stop}:{c.step}' for c in cut)}]")
        return at

    def forget(self):
        """Destroys some of the oldest, not their bases' memory."""
        self.flush()
        order = [int(i) for i in self.random.permutation(len(self.twins))[:KEPT - 8]]
        for i in sorted(set(range(len(self.twins))) - set(order)):
            self.same_as_before(i)
            self.ok(self.c.dm_array_destroy(self.at, self.handles[i]))
        self.twins, self.handles, self.spans = ([kept[i] for i in order] for kept in (self.twins, self.handles, self.spans))
        self.log.append(f"the arrays {order} are a0, a1, ...")

    def operand(self, types=REAL, ndim=None, where=None):
        """One that there is, or a new one. where: what the twin must satisfy."""
        fits = [i for i, t in enumerate(self.twins) if t.dtype.str[1:].replace("b1", "?") in types and
                (ndim is None or t.ndim in np.atleast_1d(ndim)) and (where is None or where(t))]
        if fits and self.chance(0.85):
            return self.pick(fits)
        i = self.new(self.types(types), self.shape(None if ndim is None else int(self.pick(list(np.atleast_1d(ndim))))), True)
        if where is not None and not where(self.twins[i]):
            raise Unknown
        return i

    def out(self, shape, types, inputs, alias=()):
        """Of that shape and one of the types; shares memory with none of the inputs, but may be one of alias."""
        if int(np.prod(shape, dtype="i8")) > MOST:
            raise Unknown
        fits = [i for i, t in enumerate(self.twins) if t.shape == tuple(shape) and t.dtype.str[1:].replace("b1", "?") in types and
                all((i == j and j in alias) or self.apart(i, j) for j in inputs)]
        return self.pick(fits) if fits and self.chance(0.7) else self.new(self.types(types), tuple(shape), False)

    def value(self, i):
        twin = self.twins[i]
        return Value(twin.dtype, twin.astype(carrier(twin.dtype)))

    # --- running
    def ok(self, status):
        if status != dmath.OK:
            raise Different(f"status {status}: {self.c.dm_error_message().decode(errors='replace')}")

    def run(self, step):
        self.log.append(step.text)
        self.counts["steps"] += 1
        if self.how == "recorded" and not step.waits and (step.bound is None or self.follows):
            self.queue.append(step)
        else:
            self.flush()
            if self.how == "explained" and not step.blocks:
                self.explained(step.call)
                self.counts["explained"] += 1
            else:
                self.ok(step.call() or 0)
        for out, value in zip(step.outs, step.values):
            if step.bound is not None:
                self.adopt(out, value, step.bound)
            else:
                self.twins[out][...] = value

    def flush(self):
        if not self.queue:
            return
        program = dmath.Handle()
        self.ok(self.c.dm_program_begin(self.at))
        for step in self.queue:
            self.ok(step.call() or 0)
        self.ok(self.c.dm_program_end(self.at, ctypes.byref(program)))
        self.explained(lambda: self.c.dm_program_run(self.at, program, L(1), 0, None))
        self.counts["runs explained"] += 1
        self.ok(self.c.dm_program_destroy(self.at, program))
        self.counts["recorded"] += len(self.queue)
        self.queue = []

    def same_as_before(self, i):
        """The bits of an array are those of the other way; or they are kept for it."""
        if self.trail is not None:
            self.trail.append(self.session.get(self.handles[i]).tobytes())
        if self.follows is not None:
            got, before = self.session.get(self.handles[i]), next(self.follows)
            if got.tobytes() != before:
                raise Different(f"a{i} is {got.dtype}\n{got}\none by one {np.frombuffer(before, got.dtype).reshape(got.shape)}")
            self.counts["to the bit"] += 1

    def adopt(self, out, want, bound):
        if self.follows is not None:  # its bits are compared at the end
            twin = self.twins[out]
            twin[...] = np.frombuffer(next(self.follows), twin.dtype).reshape(twin.shape)
            return
        got = self.session.get(self.handles[out])
        if self.trail is not None:
            self.trail.append(got.tobytes())
        self.counts["bounded"] += 1
        if not within(got, np.asarray(want, "g"), np.asarray(bound, "g")):
            raise Different(f"gives {got}\nNumPy {want}\nbound {bound}")
        self.twins[out][...] = got

    def explained(self, call):
        """The bytes, messages and flops of each worker that explain predicts are those of the counters."""
        at = ctypes.c_void_p()
        self.ok(self.c.dm_explain_begin(self.at))
        status = call() or 0
        self.ok(self.c.dm_explain_end(self.at, ctypes.byref(at)))
        text = ctypes.string_at(at).decode()
        self.c.free(at)
        self.ok(status)
        predicted = np.zeros((self.session.workers, 5), "i8")
        for line in text.splitlines():
            if line.startswith("  worker "):
                words = line.split()
                numbers = dict(zip(words[2::2], words[3::2]))
                predicted[int(words[1][:-1])] += [int(numbers[n]) for n in
                                                  ("sent", "received", "messages_sent", "messages_received", "flops")]
        before = self.session.counters()
        self.ok(call() or 0)
        counted = self.session.counters() - before
        if not np.array_equal(predicted, counted):
            raise Different(f"explain predicts\n{predicted}\ncounted\n{counted}\n{text}")

    def compare(self, last=False):
        self.flush()
        for i, (handle, twin) in enumerate(zip(self.handles, self.twins)):
            got = self.session.get(handle)
            if not equal(got, twin):
                where = np.argwhere(~((got == twin) | ((got != got) & (twin != twin))))
                raise Different(f"a{i} is {got.dtype}\n{got}\nNumPy {twin}\nfirst at {where[:1]}")
            if last:
                self.same_as_before(i)

    def close(self):
        for handle in self.handles:
            self.c.dm_array_destroy(self.at, handle)
