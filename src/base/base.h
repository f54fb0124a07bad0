/* Status, error text, log, dtype facts, arena: what every part stands on. */
#ifndef DMI_BASE_H
#define DMI_BASE_H

#include <dmath/types.h>
#include <stdarg.h>
#include <stdatomic.h>
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
/* The text kept by the last dmi_fail of this thread ("" if none). */
const char *dmi_error_text(void);
const char *dmi_status_name(dm_status status); /* "ERR_SHAPE"; "?" for an unknown code */

/* --- dtype.c ------------------------------------------------------------ */
int64_t dmi_dtype_bytes(dm_dtype dtype);      /* 0 for an unknown code */
const char *dmi_dtype_name(dm_dtype dtype);   /* "f64"; "?" for an unknown code */
bool dmi_dtype_is_float(dm_dtype dtype);
bool dmi_dtype_parse(const char *name, dm_dtype *out);
/* The type in which values of a and b are combined: the same type -> itself; integers -> the wider (u8, i32 -> i32);
 * floats -> the wider, f32 at least (f16, bf16 -> f32); an integer with a float -> f64. */
dm_dtype dmi_dtype_promote(dm_dtype a, dm_dtype b);

/* --- log.c -------------------------------------------------------------- */
enum { DMI_LOG_ERROR = 0, DMI_LOG_WARN = 1, DMI_LOG_INFO = 2, DMI_LOG_DEBUG = 3, DMI_LOG_TRACE = 4 };
/* Level from DMATH_LOG (error, warn, info, debug, trace; default warn). Lines go to stderr, each in one
 * write, as "dmath[<who>] level: text", or "dmath level: text" where nobody is set. */
void dmi_log(int level, const char *format, ...) DMI_PRINTF(2, 3);
bool dmi_log_on(int level);
void dmi_log_set_level(int level);
void dmi_log_set_who(const char *who); /* of this thread: "master", "worker 3" */

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
