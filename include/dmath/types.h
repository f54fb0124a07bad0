/* dmath: types shared by the public headers.  BSD-3-Clause, see LICENSE. */
#ifndef DMATH_TYPES_H
#define DMATH_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define DM_MAX_DIMS 8

#if defined(__GNUC__)
#define DM_API __attribute__((visibility("default")))
#define DM_CHECKED __attribute__((warn_unused_result))
#else
#define DM_API
#define DM_CHECKED
#endif

/* Every status a call can return: code, name, meaning. */
#define DM_STATUS_MAP(X)                                                                          \
    X(0, OK, "success")                                                                           \
    X(1, ERR_ARG, "an argument is out of its range")                                              \
    X(2, ERR_HANDLE, "a handle is null, already destroyed, or belongs to another session")        \
    X(3, ERR_SHAPE, "the shapes of the operands do not fit together")                             \
    X(4, ERR_DTYPE, "the element type is not supported here")                                     \
    X(5, ERR_LAYOUT, "a layout is malformed or cannot be used here")                              \
    X(6, ERR_OVERLAP, "an output overlaps another operand in a way that cannot be computed")      \
    X(7, ERR_NOMEM, "memory could not be had from the system")                                    \
    X(8, ERR_LIMIT, "the call needs more memory than the limit that was set")                     \
    X(9, ERR_IO, "reading or writing a file failed")                                              \
    X(10, ERR_FORMAT, "a file is malformed or of an unsupported kind")                            \
    X(11, ERR_UNSUPPORTED, "this combination is not supported")                                   \
    X(12, ERR_STATE, "the call is not allowed in this state (use after finalize, worker alone)")  \
    X(13, ERR_VERSION, "the ranks of this job run different builds of the library or have different functions")               \
    X(14, ERR_TRANSPORT, "no transport of the kind asked for works between workers, or MPI failed")          \
    X(15, ERR_POISONED, "an operand holds the result of a command that failed earlier")           \
    X(16, ERR_CONFIG, "an environment variable or option has a value that is not understood")     \
    X(17, ERR_TIMEOUT, "a worker made no progress, or a rank did not come, for longer than allowed") \
    X(18, ERR_INTERNAL, "a bug in dmath")                                                         \
    X(19, ERR_TASK, "a user function (dm_register) reported a failure")                           \
    X(20, ERR_DIED, "the process of a worker has died") \
    X(21, ERR_VALUE, "an operand has a value that the operation does not take") \
    X(22, ERR_CANCELLED, "the command was cancelled (dm_cancel)") \
    X(23, ERR_PENDING, "the time limit of the call is over; what it waited for goes on")

typedef enum dm_status {
#define X(code, name, text) DM_##name = code,
    DM_STATUS_MAP(X)
#undef X
} dm_status;

/* Complex numbers, as C's and NumPy's lie in memory. */
typedef struct dm_c64 {
    float re, im;
} dm_c64;
typedef struct dm_c128 {
    double re, im;
} dm_c128;

/* Element types: code, name, C type of one element in host memory, bytes.
 * bool is 0 or 1. f16 is IEEE binary16 and bf16 bfloat16, both stored in a uint16_t; f8e4m3 (no infinity, NaN 0x7f and
 * 0xff, largest 448) and f8e5m2 are the 8-bit floats of the Open Compute Project, stored in a uint8_t. All four are
 * computed in f32. */
#define DM_DTYPE_MAP(X)                                                                           \
    X(1, F64, "f64", double, 8)                                                                   \
    X(2, F32, "f32", float, 4)                                                                    \
    X(3, F16, "f16", uint16_t, 2)                                                                 \
    X(4, BF16, "bf16", uint16_t, 2)                                                               \
    X(5, I64, "i64", int64_t, 8)                                                                  \
    X(6, I32, "i32", int32_t, 4)                                                                  \
    X(7, U8, "u8", uint8_t, 1)                                                                    \
    X(8, BOOL, "bool", uint8_t, 1)                                                                \
    X(9, I8, "i8", int8_t, 1)                                                                     \
    X(10, I16, "i16", int16_t, 2)                                                                 \
    X(11, U16, "u16", uint16_t, 2)                                                                \
    X(12, U32, "u32", uint32_t, 4)                                                                \
    X(13, U64, "u64", uint64_t, 8)                                                                \
    X(14, C64, "c64", dm_c64, 8)                                                                  \
    X(15, C128, "c128", dm_c128, 16)                                                              \
    X(16, F8E4M3, "f8e4m3", uint8_t, 1)                                                           \
    X(17, F8E5M2, "f8e5m2", uint8_t, 1)

typedef enum dm_dtype {
#define X(code, name, text, ctype, bytes) DM_##name = code,
    DM_DTYPE_MAP(X)
#undef X
} dm_dtype;

#ifdef __cplusplus
}
#endif
#endif
