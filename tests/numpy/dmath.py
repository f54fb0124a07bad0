"""libdmath in this process, for tests: sessions, arrays from NumPy, expressions."""

import ctypes

import numpy as np

from narrow import FORMATS, OF_CODE, Narrow

TYPES = {1: "f8", 2: "f4", 3: "f2", 5: "i8", 6: "i4", 7: "u1", 8: "?", 9: "i1", 10: "i2", 11: "u2", 12: "u4", 13: "u8",
         14: "c8", 15: "c16"}
CODES = {np.dtype(name): code for code, name in TYPES.items()}
OK, ERR_ARG, ERR_SHAPE, ERR_DTYPE = 0, 1, 3, 4
ARRAY, NUMBER, INTEGER = 0, 1, 2


class Config(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("workers", ctypes.c_int), ("options", ctypes.c_char_p)]


class Layout(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("kind", ctypes.c_int), ("single", ctypes.c_int), ("block", ctypes.c_int64 * 8),
                ("grid", ctypes.c_int * 8), ("order", ctypes.c_int * 8), ("replicas", ctypes.c_int),
                ("workers", ctypes.c_void_p), ("nworkers", ctypes.c_int), ("map", ctypes.c_void_p),
                ("map_count", ctypes.c_int64)]


class Counters(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("commands", ctypes.c_int64), ("steps", ctypes.c_int64), ("sent", ctypes.c_int64),
                ("received", ctypes.c_int64), ("messages_sent", ctypes.c_int64), ("messages_received", ctypes.c_int64),
                ("flops", ctypes.c_int64), ("workspace", ctypes.c_int64), ("made", ctypes.c_int64), ("reused", ctypes.c_int64)]


class Handle(ctypes.Structure):
    _fields_ = [("id", ctypes.c_uint64)]


class Info(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("dtype", ctypes.c_int), ("ndim", ctypes.c_int), ("shape", ctypes.c_int64 * 8),
                ("block", ctypes.c_int64 * 8), ("grid", ctypes.c_int * 8), ("replicas", ctypes.c_int),
                ("is_view", ctypes.c_int)]


class Argument(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("array", Handle), ("kind", ctypes.c_int), ("number", ctypes.c_double),
                ("integer", ctypes.c_int64)]


class Refused(Exception):
    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        self.c.dm_error_message.restype = ctypes.c_char_p
        for name in ("split", "cyclic", "replicated", "single", "grid", "explicit"):
            getattr(self.c, f"dm_layout_{name}").restype = Layout
        self.c.dm_layout_cyclic.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_int64]
        self.c.dm_layout_grid.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
        self.c.dm_layout_split.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self.c.dm_layout_replicated.argtypes = [ctypes.c_void_p]

    def check(self, status):
        if status != OK:
            raise Refused(status, self.c.dm_error_message().decode(errors="replace"))


class Session:
    """workers 0: those of the launch. On its other ranks this does not return."""

    def __init__(self, library, workers, options="device=cpu"):
        self.library, self.c = library, library.c
        config = Config(ctypes.sizeof(Config), workers, options.encode())
        self.at = ctypes.c_void_p()
        library.check(self.c.dm_init(ctypes.byref(config), ctypes.byref(self.at)))
        self.workers = self.c.dm_workers(self.at)

    def close(self):
        alive = ctypes.c_int64()
        self.library.check(self.c.dm_finalize(self.at, ctypes.byref(alive)))
        if alive.value:
            raise AssertionError(f"{alive.value} arrays are left")

    def put(self, values, layout=None):
        code = values.format.code if isinstance(values, Narrow) else None
        values = np.array(values.raw if code else values, order="C") # which leaves scalars scalars
        shape = (ctypes.c_int64 * 8)(*values.shape)
        handle = Handle()
        self.library.check(self.c.dm_array_create(self.at, code or CODES[values.dtype], values.ndim, shape,
                                                  ctypes.byref(layout) if layout else None, ctypes.byref(handle)))
        if values.size:
            status = self.c.dm_array_write(self.at, handle, None, None, values.ctypes.data_as(ctypes.c_void_p), ctypes.c_int64(0))
            if status != OK:
                self.drop(handle)
            self.library.check(status)
        return handle

    def drop(self, handle):
        self.library.check(self.c.dm_array_destroy(self.at, handle))

    def get(self, handle):
        info = Info(ctypes.sizeof(Info))
        self.library.check(self.c.dm_array_query(self.at, handle, ctypes.byref(info)))
        name = OF_CODE.get(info.dtype)
        values = np.zeros(tuple(info.shape[:info.ndim]), FORMATS[name].bits if name else TYPES[info.dtype])
        if values.size:
            self.library.check(self.c.dm_array_read(self.at, handle, None, None, values.ctypes.data_as(ctypes.c_void_p),
                                                    ctypes.c_int64(0)))
        return Narrow(name, values) if name else values

    def counters(self):
        """Of each worker: bytes sent, received, messages sent, received, flops."""
        rows, one = [], Counters(ctypes.sizeof(Counters))
        for worker in range(self.workers):
            self.library.check(self.c.dm_counters_get(self.at, worker, ctypes.byref(one)))
            rows.append([one.sent, one.received, one.messages_sent, one.messages_received, one.flops])
        return np.array(rows)

    def filled(self, kind, seed, shape):
        """The numbers of dm_fill_uniform in [0, 1), or of dm_fill_normal."""
        handle = self.put(np.zeros(shape))
        self.library.check(getattr(self.c, f"dm_fill_{kind}")(self.at, handle, ctypes.c_double(0), ctypes.c_double(1), ctypes.c_uint64(seed)))
        values = self.get(handle)
        self.drop(handle)
        return values

    def map(self, text, layout=None, **names):
        """The expression's value, made in that layout; names: handles, floats, ints. Raises Refused."""
        arguments = (Argument * max(len(names), 1))()
        for at, (name, value) in zip(arguments, names.items()):
            at.name = name.encode()
            if isinstance(value, Handle):
                at.array = value
            elif isinstance(value, int):
                at.kind, at.integer = INTEGER, value
            else:
                at.kind, at.number = NUMBER, value
        out = Handle()
        text = text if isinstance(text, bytes) else text.encode()
        self.library.check(self.c.dm_map_new(self.at, text, len(names), arguments,
                                              ctypes.byref(layout) if layout else None, ctypes.byref(out)))
        values = self.get(out)
        self.drop(out)
        return values
