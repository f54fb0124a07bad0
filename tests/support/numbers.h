/* What one number is in each element type: an oracle for conversions that shares nothing with the library.
 * A number is a long double, which holds every value of every element type exactly. */
#ifndef DMT_NUMBERS_H
#define DMT_NUMBERS_H

#include <dmath/dmath.h>
#include <float.h>
#include <stdbool.h>

_Static_assert(LDBL_MANT_DIG >= 64, "the oracles need a long double that holds any int64");

enum { DMT_DTYPES = 15, DMT_EWISE = 7 };
extern const dm_dtype dmt_dtypes[DMT_DTYPES]; /* real; the first DMT_EWISE: of elementwise ops */
extern const dm_dtype dmt_floats[4];          /* f64 f32 f16 bf16 */

bool dmt_is_float(dm_dtype dtype);
const char *dmt_name(dm_dtype dtype);
int64_t dmt_bytes(dm_dtype dtype);
/* Range of an integer type, or of bool. */
long double dmt_int_min(dm_dtype dtype);
long double dmt_int_max(dm_dtype dtype);
/* Distance from 1 to the next number of a floating type: 2^-52, 2^-23, 2^-10, 2^-7. */
long double dmt_eps(dm_dtype dtype);
/* Smallest positive number of a floating type; 0 for integers. */
long double dmt_tiny(dm_dtype dtype);
/* The type in which an elementwise op computes a and b: for floats f64 if one is f64, else f32; for a float
 * beside an integer f32 if it is bf16, or if the integer has 8 bits and the float is not f64, else f64; for
 * integers i64, or f64 if the result is floating. */
dm_dtype dmt_computing(dm_dtype a, dm_dtype b, dm_dtype out);

/* A real number as an element: floats round to nearest even (overflow gives Inf), integers truncate and
 * saturate, NaN gives 0; bool: is it not 0. */
long double dmt_from_real(dm_dtype to, long double v);
/* The 64 bits of a whole number from -2^63 to 2^64 - 1. */
uint64_t dmt_wrapped(long double v);
/* An int64 as an element: integers wrap, floats round. */
long double dmt_from_whole(dm_dtype to, int64_t v);
/* What dm_copy makes of element v of type `from`. */
long double dmt_convert(dm_dtype from, dm_dtype to, long double v);

/* To and from memory. v must be an element of that type already. */
void dmt_encode(dm_dtype dtype, long double v, void *to);
long double dmt_decode(dm_dtype dtype, const void *from);

#endif
