/* Estimates the time of a product by each algorithm, from the rates of the machine. Transfers run beside
 * products, so the longer of the two counts, plus what neither hides. Rough, but good enough to rank algorithms
 * that differ much. */
#include "ops/product/gemm.h"

#include <assert.h>
#include <math.h>

/* Seconds, and ratios of times, measured on H200. */
static const double LAUNCH = 5e-6, /* launch of a step */
    HOP = 8e-6,                    /* from the arrival of a payload to the start of the waiting kernel */
    FUSED_START = 20e-6,           /* start of the fused kernel */
    FUSED_SLOWER = 1.04,           /* slowdown by its free multiprocessors */
    FUSED_SLOW = 1.09,             /* the same for long k */
    PANELS_START = 30e-6,          /* wait for the first panel */
    PANELS_SLOWER = 1.03,          /* slowdown of 16-bit panels */
    TF32_SUM = 8.4e-12;            /* per element of c and further product into c, beyond memory traffic */

enum { FUSED_LONG = 16384 };

static double product_rate(const dmi_product *p)
{
    const dmi_rates *r = &p->b->profile->rates;
    switch (p->kernel_type) {
    case DM_F64:
    case DM_C128:
        return r->f64;
    case DM_F32:
    case DM_C64:
        return p->tf32 ? r->tf32 : r->f32;
    default: /* 16 and 8 bits */
        return r->half;
    }
}

bool dmi_estimate_ready(const dmi_product *p)
{
    const dmi_rates *r = &p->b->profile->rates;
    return product_rate(p) > 0 && r->link > 0 && r->memory > 0;
}

static double longer(double a, double b)
{
    return a > b ? a : b;
}

/* A sum of several products goes to memory and back for each, in TF32 slower than that, and is rounded from a
 * temporary where c is narrower. */
static double sums(const dmi_product *p, int64_t count, int products)
{
    double wide = (double)(count * p->elem), narrow = (double)(count * dmi_dtype_bytes(p->user_c->dtype));
    bool rounds = p->user_c->dtype != p->type;
    double more = p->tf32 ? TF32_SUM * (double)count * (products - 1) : 0;
    return (2 * wide * (products - 1) + (rounds ? wide + narrow : 0)) / p->b->profile->rates.memory + more;
}

static double moved_bytes(const dmi_product *p, int which)
{
    return (double)(dmi_product_traffic(p, which) * dmi_dtype_bytes(p->op[which]->dtype));
}

double dmi_estimate(const dmi_product *p, int algorithm, int moving, int64_t bytes)
{
    const dmi_rates *r = &p->b->profile->rates;
    int64_t most = 0, active = 0;
    for (int w = 0; w < p->b->profile->workers; w++) {
        dmi_region c;
        dmi_product_c(p, w, &c);
        most = DMI_MAX(most, c.count);
        active += c.count > 0;
    }
    double one = (double)dmi_multiply_add_flops(p->kernel_type) / product_rate(p);
    double product = one * (double)most * (double)p->k;
    double link = (double)bytes / (double)DMI_MAX(active, 1) / r->link, first, other;
    int stages = algorithm == DMI_GEMM_STATIONARY ? p->b->profile->workers
                 : algorithm == DMI_GEMM_CONTRACT ? p->op[p->stays]->layout->group
                                                  : p->op[moving]->layout->group;
    bool single = algorithm == DMI_GEMM_STATIONARY ? bytes == 0 : dmi_cyclic_single(p, moving);
    double steps = stages * LAUNCH + HOP, piece;
    switch (algorithm) {
    case DMI_GEMM_FUSED:
        product *= p->k > FUSED_LONG ? FUSED_SLOW : FUSED_SLOWER;
        return longer(product, link + product / (2 * stages)) + FUSED_START;
    case DMI_GEMM_PANELS: /* it waits for the first panel, and before that for the other operand */
        piece = 1.0 / (double)dmi_panels_count(p, moving);
        other = link * moved_bytes(p, 1 - moving) / (double)bytes;
        product *= other > 0 && !p->tf32 ? PANELS_SLOWER : 1;
        first = other + (link - other) * piece;
        return first + longer(product, link - first + product * piece) + (LAUNCH + HOP) / piece + PANELS_START;
    /* so is the first partial product; arrivals are added; replicas of c are made once; what is brought comes
     * first */
    case DMI_GEMM_CONTRACT:
        product = one * (double)p->m * (double)p->n * (double)p->k / stages;
        first = (double)p->brought / stages / r->link;
        return first + product / stages +
               longer(product * (stages - 1) / stages,
                      link - (double)p->brought / (double)DMI_MAX(active, 1) / r->link) +
               1.5 * sums(p, most, stages) + steps;
    case DMI_GEMM_STATIONARY:
    case DMI_GEMM_CYCLIC:
    case DMI_GEMM_TWO_BLOCK:
    case DMI_GEMM_RING:
        product += single ? 0 : sums(p, most, stages);
        return bytes == 0 ? product + LAUNCH : longer(product, link + product / stages) + steps;
    default:
        assert(!"not an algorithm");
        return INFINITY;
    }
}
