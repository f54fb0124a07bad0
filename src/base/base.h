/* Status, error text, log, dtype facts, arena: used by all other folders. */
#ifndef DMI_BASE_H
#define DMI_BASE_H

#include <dmath/types.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define DMI_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define DMI_PRINTF(f, a)
#endif

#define DMI_MIN(a, b) ((a) < (b) ? (a) : (b))
#define DMI_MAX(a, b) ((a) > (b) ? (a) : (b))
#define DMI_COUNT(a) ((int)(sizeof(a) / sizeof((a)[0])))

/* --- status.c ----------------------------------------------------------- */
/* Keeps the text for dm_error_message() of this thread and returns `status`:
 *     return dmi_fail(DM_ERR_SHAPE, "gemm: a is %" PRId64 " wide but b ...", ...);  */
dm_status dmi_fail(dm_status status, const char *format, ...) DMI_PRINTF(2, 3);
dm_status dmi_fail_list(dm_status status, const char *format, va_list args) DMI_PRINTF(2, 0);
/* The text kept by the last dmi_fail of this thread ("" if none). */
const char *dmi_error_text(void);
const char *dmi_status_name(dm_status status); /* "ERR_SHAPE"; "?" for an unknown code */

/* --- called.c ----------------------------------------------------------- */
/* The public call that this thread is in, without "dm_", for messages; NULL outside of any. Calls from inside the library
 * do not count: cmake/api_calls.cmake. */
const char *dmi_api_called(void);
uint16_t dmi_api_number(void); /* the same as a number, alike in all processes of a build; 0: outside of any */
const char *dmi_api_name(int number); /* of the call with that number; NULL: there is none */
void dmi_api_begin(uint16_t number); /* 0: the call ends */
uint64_t dmi_api_serial(void);       /* of this thread's call: it differs from that of its calls before */

/* --- dtype.c ------------------------------------------------------------ */
enum {
    DMI_DTYPE_END = 0 /* one past the last code */
#define X(code, name, text, ctype, bytes) +1
                    DM_DTYPE_MAP(X)
#undef X
                    + 1
};
enum dmi_kind { DMI_KIND_NONE, DMI_KIND_BOOL, DMI_KIND_INT, DMI_KIND_UINT, DMI_KIND_FLOAT, DMI_KIND_COMPLEX };
int64_t dmi_dtype_bytes(dm_dtype dtype);      /* 0 for an unknown code */
const char *dmi_dtype_name(dm_dtype dtype);   /* "f64"; "?" for an unknown code */
enum dmi_kind dmi_dtype_kind(dm_dtype dtype); /* NONE for an unknown code */
/* The type in which values of it are computed: f32 for the shorter floats, i32 for the shorter integers, i64
 * for u32; the others are their own. */
dm_dtype dmi_dtype_carrier(dm_dtype dtype);
bool dmi_dtype_is_float(dm_dtype dtype); /* real */
bool dmi_dtype_is_complex(dm_dtype dtype);
dm_dtype dmi_dtype_part(dm_dtype dtype); /* of a complex type: that of its two parts; else the type itself */
bool dmi_dtype_is_integer(dm_dtype dtype); /* bool is none */
bool dmi_dtype_parse(const char *name, dm_dtype *out);
/* The type that values of a and b have together: NumPy's promote_types. Beside it, bf16 and the 8-bit floats
 * with an integer are f32, an 8-bit float with another float is that float, f8e4m3 with f8e5m2 is f16, bf16
 * with f16 is f32, and each of the three with c64 is c64. */
dm_dtype dmi_dtype_promote(dm_dtype a, dm_dtype b);

/* --- log.c -------------------------------------------------------------- */
enum { DMI_LOG_ERROR = 0, DMI_LOG_WARN = 1, DMI_LOG_INFO = 2, DMI_LOG_DEBUG = 3, DMI_LOG_TRACE = 4 };
/* Level from DMATH_LOG (error, warn, info, debug, trace; default warn). Lines go to stderr, each in one
 * write, as "dmath[<who>] level: text", or "dmath level: text" where nobody is set. */
void dmi_log(int level, const char *format, ...) DMI_PRINTF(2, 3);
bool dmi_log_on(int level);
void dmi_log_set_level(int level);
void dmi_log_set_who(const char *who); /* of this thread: "master", "worker 3" */
void dmi_thread_name(const char *who); /* the same for a thread of dmath's own; debuggers, top and perf show it too */

/* --- arena.c ------------------------------------------------------------ */
/* Bump allocator: everything in it lives as long as the arena. */
typedef struct dmi_arena_chunk dmi_arena_chunk;
typedef struct dmi_arena {
    dmi_arena_chunk *head;
    size_t first; /* bytes of its first chunk; 0: chosen */
    size_t bytes; /* handed out in all */
} dmi_arena;
void *dmi_arena_alloc(dmi_arena *arena, size_t bytes); /* 16-byte aligned, zeroed; NULL when out of memory */
void dmi_arena_free(dmi_arena *arena);                 /* frees all, leaves the arena empty and usable */
/* For types with members that begin a cache line, where calloc is not enough: zeroed, for free(). NULL: no memory. */
void *dmi_alloc_lines(size_t count, size_t bytes);

/* --- host.c ------------------------------------------------------------- */
void dmi_host_name(char *out, size_t room); /* of this host; "unknown" where it does not fit */

/* --- clock.c ------------------------------------------------------------ */
int64_t dmi_now_ns(void); /* monotonic */

/* Sizes: a*b, and whether it fits in int64 (both >= 0). */
static inline bool dmi_mul_fits(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

#endif
