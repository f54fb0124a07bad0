/* Tensors in the memory of the test: what an array ought to hold, and how it is compared with what it does. */
#ifndef DMT_HOST_H
#define DMT_HOST_H

#include "support/numbers.h"
#include "support/random.h"

/* Memory that is freed all at once, at the end of a case. */
typedef struct dmt_scratch {
    void *head;
} dmt_scratch;
void *dmt_alloc(dmt_scratch *scratch, int64_t bytes); /* zeroed; never NULL */
void dmt_scratch_free(dmt_scratch *scratch);

typedef struct dmt_host {
    dm_dtype dtype;
    int ndim;
    int64_t shape[DM_MAX_DIMS];
    int64_t count;
    long double *v; /* row-major */
} dmt_host;

dmt_host *dmt_host_make(dmt_scratch *scratch, dm_dtype dtype, int ndim, const int64_t *shape);
dmt_host *dmt_host_copy(dmt_scratch *scratch, const dmt_host *h);

/* SMALL: whole numbers of at most 4, whose products and sums are exact. SMOOTH: a few units. ODD: SMOOTH with
 * some NaN, Inf and zeros. WILD: any bit pattern. Integer types: SMALL, then up to 100, ODD the same, WILD any.
 */
enum { DMT_SMALL, DMT_SMOOTH, DMT_ODD, DMT_WILD };
void dmt_host_random(dmt_host *h, dmt_random *r, int kind);
void dmt_host_set(dmt_host *h, long double v);

/* Array bytes, row-major and packed. */
void *dmt_host_pack(dmt_scratch *scratch, const dmt_host *h);
void dmt_host_unpack(dmt_host *h, const void *bytes);

int64_t dmt_count(int ndim, const int64_t *shape);
int64_t dmt_linear(int ndim, const int64_t *shape, const int64_t *index);
/* Steps index to the next element in row-major order; false after the last. Begin with zeros, count > 0. */
bool dmt_next(int ndim, const int64_t *shape, int64_t *index);
void dmt_unlinear(int ndim, const int64_t *shape, int64_t linear, int64_t *index);
/* Element of h that NumPy's broadcasting puts at out's element `linear`. */
int64_t dmt_broadcast(const dmt_host *h, const dmt_host *out, int64_t linear);
/* The rectangle of h that begins at lo with part's shape. */
void dmt_host_take(const dmt_host *h, const int64_t *lo, dmt_host *part);
void dmt_host_put(dmt_host *h, const int64_t *lo, const dmt_host *part);

/* Every element of got lies between the elements that want - bound and want + bound round to; NaN only where
 * want is. want holds reals, not yet rounded to got's type; bound NULL means 0. Otherwise text says where not.
 */
bool dmt_host_within(const dmt_host *got, const dmt_host *want, const dmt_host *bound, char *text, int bytes);
/* Bit for bit, but any NaN equals any other. */
bool dmt_host_same(const dmt_host *got, const dmt_host *want, char *text, int bytes);

/* "[3, 5]" */
const char *dmt_shape_text(int ndim, const int64_t *shape, char text[160]);

#endif
