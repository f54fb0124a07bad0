/* Chooses the algorithm of a product. */
#include "ops/product/gemm.h"
#include "ops/product/moving.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

enum { MOST_SLICES = 1024 };

/* Bytes that a contraction moves, in the better of its two ways. */
static int64_t contract_bytes(dmi_product *p, dmi_choice *out)
{
    int senders = p->op[p->stays]->layout->group;
    dmi_load load = {.addends = senders, .bytes = p->elem, .senders = senders, .replicas = 1};
    bool copies = p->c == p->user_c && dmi_segments_serve(p->c);
    p->scatter = copies && dmi_scatter_pays(p->b, p->c, &load);
    out->direct = copies && !p->scatter;
    int64_t shared = p->scatter ? (p->c->layout->replicas - 1) * p->m * p->n * dmi_dtype_bytes(p->c->dtype) : 0;
    return p->brought + dmi_contract_traffic(p) * p->elem + shared;
}

typedef struct offers {
    bool cyclic, contract; /* these can serve */
    bool direct;           /* contract: everything to every holder of c */
    int64_t gather;        /* bytes of both operands that come from others */
    int64_t partial;       /* bytes of a contraction */
} offers;

/* Does the workspace for payloads in flight fit the limit? */
static bool within(const dmi_product *p, const offers *o, int algorithm, int moving)
{
    int64_t limit = p->workspace, largest = 0;
    switch (limit > 0 ? algorithm : DMI_GEMM_STATIONARY) {
    case DMI_GEMM_STATIONARY: /* its slices are made to fit */
        return true;
    case DMI_GEMM_CONTRACT:
        limit -= dmi_contract_room(p);
        if (o->direct) { /* every holder has its own partial product and those of all others */
            return p->b->profile->workers * p->m * p->n * p->elem <= limit;
        }
        for (int w = 0; w < p->b->profile->workers; w++) { /* two partial products to send, two received */
            dmi_region c;
            dmi_product_c(p, w, &c);
            largest = DMI_MAX(largest, c.count);
        }
        return 4 * largest * p->elem <= limit;
    case DMI_GEMM_FUSED:
        return dmi_fused_bytes(p) <= limit;
    case DMI_GEMM_PANELS:
        return dmi_panels_fit(p, moving);
    case DMI_GEMM_CYCLIC:
    case DMI_GEMM_TWO_BLOCK:
    case DMI_GEMM_RING:
        return 2 * dmi_moving_buffer_bytes(p, moving, NULL) <= limit;
    default:
        assert(!"not an algorithm");
        return false;
    }
}

static bool serves(const dmi_product *p, const offers *o, int algorithm, int moving)
{
    switch (algorithm) {
    case DMI_GEMM_STATIONARY:
        return true;
    case DMI_GEMM_CONTRACT:
        return o->contract;
    case DMI_GEMM_FUSED:
        return dmi_fused_serves(p);
    case DMI_GEMM_PANELS:
        return dmi_panels_serve(p, moving);
    case DMI_GEMM_RING:
        return o->cyclic && dmi_ring_serves(p, moving);
    case DMI_GEMM_CYCLIC:
    case DMI_GEMM_TWO_BLOCK:
        return o->cyclic;
    default:
        assert(!"not an algorithm");
        return false;
    }
}

/* Chooses by bytes, without rates. Algorithms that move the same bytes are ordered by measurements on H200. */
static int by_bytes(dmi_product *p, const offers *o, int moving)
{
    if (o->partial < o->gather && within(p, o, DMI_GEMM_CONTRACT, moving)) {
        return DMI_GEMM_CONTRACT;
    }
    p->scatter = false; /* no other algorithm makes segments */
    if (o->gather > 0 && dmi_fused_serves(p) && (!o->cyclic || dmi_fused_pays(p)) &&
        within(p, o, DMI_GEMM_FUSED, moving)) {
        return DMI_GEMM_FUSED;
    }
    if (o->cyclic && o->gather > 0 && dmi_panels_serve(p, moving) && dmi_panels_pay(p, moving) &&
        within(p, o, DMI_GEMM_PANELS, moving)) {
        return DMI_GEMM_PANELS;
    }
    return o->cyclic && o->gather > 0 && within(p, o, DMI_GEMM_CYCLIC, moving) ? DMI_GEMM_CYCLIC
                                                                               : DMI_GEMM_STATIONARY;
}

static int by_time(dmi_product *p, const offers *o, int moving)
{
    static const int algorithms[] = {DMI_GEMM_CYCLIC, DMI_GEMM_FUSED, DMI_GEMM_PANELS, DMI_GEMM_CONTRACT,
                                     DMI_GEMM_STATIONARY};
    bool scatter = p->scatter;
    double least = INFINITY;
    int best = DMI_GEMM_STATIONARY;
    for (int i = 0; i < DMI_COUNT(algorithms) && o->gather > 0; i++) {
        bool contract = algorithms[i] == DMI_GEMM_CONTRACT;
        p->scatter = scatter && contract; /* no other algorithm makes segments */
        if (!serves(p, o, algorithms[i], moving) || !within(p, o, algorithms[i], moving)) {
            continue;
        }
        double time = dmi_estimate(p, algorithms[i], moving, contract ? o->partial : o->gather);
        if (time < least) {
            least = time;
            best = algorithms[i];
        }
    }
    p->scatter = scatter && best == DMI_GEMM_CONTRACT;
    return best;
}

static const char *const names[] = {"auto",      "cyclic", "stationary", "contract",
                                    "two_block", "panels", "fused",      "ring"};
static const char *const needs[] = {
    "nothing",
    "c and one operand split alike along one dimension, and split in no other",
    "nothing",
    "a or b split along the dimension that is summed and in no other, without replicas",
    "what cyclic does",
    "c split along one dimension only, the moving operand split along k, and 16-bit types or TF32",
    "Hopper GPUs of one host that workers do not share, and operands of 16 bits, aligned",
    "what cyclic needs, no replicas, and a region of c on every owner of the moving operand"};

const char *dmi_gemm_name(int algorithm)
{
    return names[algorithm];
}

/* Where a memory limit leaves hardly anything, slices would be so many that planning them takes seconds. */
static dm_status not_too_many(dmi_product *p)
{
    int64_t slices = p->workspace_limit > 0 ? dmi_stationary_slices(p) : 0;
    return slices <= MOST_SLICES
               ? DM_OK
               : dmi_fail(DM_ERR_LIMIT,
                          "gemm: the memory limit leaves %" PRId64 " bytes of workspace. The product would "
                          "need %" PRId64 " slices of k; at most %d are allowed",
                          p->workspace_limit, slices, MOST_SLICES);
}

dm_status dmi_gemm_choose(dmi_product *p, dmi_choice *out)
{
    *out = (dmi_choice){0};
    int forced = p->b->profile->gemm_algorithm;
    int64_t blocks[2], bytes[2];
    bool cyclic[2];
    offers o = {.contract = dmi_contract_serves(p)};
    for (int i = 0; i < 2; i++) {
        cyclic[i] = dmi_cyclic_serves(p, i, &blocks[i]);
        bytes[i] = dmi_product_traffic(p, i) * dmi_dtype_bytes(p->op[i]->dtype);
    }
    o.cyclic = cyclic[0] || cyclic[1];
    bool a_moves = o.cyclic ? cyclic[0] && (!cyclic[1] || bytes[0] < bytes[1])
                            : dmi_product_takes_whole(p, 0) && !dmi_product_takes_whole(p, 1);
    out->moving = a_moves ? 0 : 1;
    o.gather = bytes[0] + bytes[1];
    if (forced == DMI_GEMM_AUTO) {
        o.partial = o.contract ? contract_bytes(p, out) : INT64_MAX;
        o.contract = o.contract && (p->brought == 0 || o.partial < o.gather / DMI_GEMM_MUCH_LESS);
        o.partial = o.contract ? o.partial : INT64_MAX;
        o.direct = out->direct;
        out->algorithm = dmi_estimate_ready(p) ? by_time(p, &o, out->moving) : by_bytes(p, &o, out->moving);
        if (o.cyclic && o.gather > 0 && out->algorithm != DMI_GEMM_CONTRACT && dmi_ring_pays(p, out->moving)) {
            out->algorithm = DMI_GEMM_RING;
        }
        if (out->algorithm == DMI_GEMM_CYCLIC && dmi_stationary_whole(p)) {
            out->algorithm = DMI_GEMM_STATIONARY;
        }
        return out->algorithm == DMI_GEMM_STATIONARY ? not_too_many(p) : DM_OK;
    }
    out->algorithm = forced;
    bool can = serves(p, &o, forced, out->moving);
    if (!can && o.gather == 0) { /* nothing moves, as where a cached replica serves: no algorithm has a say */
        out->algorithm = DMI_GEMM_STATIONARY;
        return DM_OK;
    }
    if (!can) {
        char operand[3][160];
        for (int i = 0; i < 3; i++) {
            dmi_desc_describe(i < 2 ? p->op[i] : p->user_c, operand[i], sizeof operand[i]);
        }
        return dmi_fail(DM_ERR_UNSUPPORTED,
                        "gemm: the forced algorithm (option gemm_algorithm=%s, which needs %s) cannot serve "
                        "these layouts%s: a: %s; b: %s; c: %s",
                        names[forced], needs[forced],
                        forced == DMI_GEMM_FUSED || forced == DMI_GEMM_PANELS ? " and types" : "", operand[0],
                        operand[1], operand[2]);
    }
    if (forced == DMI_GEMM_CONTRACT) {
        (void)contract_bytes(p, out);
    }
    return forced == DMI_GEMM_STATIONARY ? not_too_many(p) : DM_OK;
}
