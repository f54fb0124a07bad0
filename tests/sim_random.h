/* Random programs of calls on random layouts. */
#ifndef DMT_SIM_RANDOM_H
#define DMT_SIM_RANDOM_H

#include "kernels/random/fill.h"
#include "ops/by.h"
#include "ops/reduce.h"
#include "sim_programs.h"

/* A layout of any kind for this shape. */
static inline void sim_spec_random(dmt_random *r, int workers, int ndim, const int64_t *shape,
                                   dmi_layout_spec *spec, int *order, int *map)
{
    *spec = (dmi_layout_spec){.ndim = ndim};
    int64_t blocks = 1;
    for (int d = 0; d < ndim; d++) {
        spec->shape[d] = shape[d];
        spec->grid[d] = 1;
    }
    if (dmt_chance(r, 25)) { /* explicit */
        spec->kind = DMI_LAYOUT_EXPLICIT;
        for (int d = 0; d < ndim; d++) {
            spec->block[d] = dmt_int(r, 1, shape[d] > 1 ? shape[d] : 1);
            blocks *= (shape[d] + spec->block[d] - 1) / spec->block[d];
        }
        if (blocks <= SIM_MAP) {
            for (int64_t i = 0; i < blocks; i++) {
                map[i] = (int)dmt_int(r, 0, workers - 1);
            }
            spec->map = map;
            spec->map_count = blocks;
            return;
        }
        spec->kind = DMI_LAYOUT_GRID;
        memset(spec->block, 0, sizeof spec->block);
    }
    int left = workers;
    spec->replicas = dmt_chance(r, 25) ? (int)dmt_int(r, 1, workers) : 1;
    left /= spec->replicas;
    int group = 1;
    for (int k = 0; k < ndim; k++) {
        int d = (int)dmt_int(r, 0, ndim - 1);
        if (spec->grid[d] == 1) {
            spec->grid[d] = dmt_chance(r, 40) ? left : (int)dmt_int(r, 1, left);
            left /= spec->grid[d];
            group *= spec->grid[d];
            if (dmt_chance(r, 50)) {
                spec->order[d] = DMI_ORDER_CYCLIC;
                spec->block[d] = dmt_int(r, 0, 4);
            }
        }
    }
    dmt_shuffle(r, workers, order);
    spec->nworkers = group * spec->replicas;
    spec->workers = dmt_chance(r, 50) ? order : NULL;
}

/* On these workers. */
static inline int sim_array_among(sim_program *p, dmt_random *r, dm_dtype dtype, int ndim, const int64_t *shape,
                                  const int *members, int count)
{
    dmi_layout_spec spec;
    int order[64], map[SIM_MAP];
    sim_spec_random(r, count, ndim, shape, &spec, order, map);
    for (int i = 0; i < spec.nworkers; i++) {
        order[i] = members[spec.workers ? order[i] : i];
        spec.workers = i == spec.nworkers - 1 ? order : spec.workers;
    }
    for (int64_t i = 0; i < spec.map_count; i++) {
        map[i] = members[map[i]];
    }
    return sim_array(p, dtype, &spec);
}

static inline int sim_array_random(sim_program *p, dmt_random *r, dm_dtype dtype, int ndim,
                                   const int64_t *shape)
{
    int all[64];
    for (int w = 0; w < p->profile.workers; w++) {
        all[w] = w;
    }
    return sim_array_among(p, r, dtype, ndim, shape, all, p->profile.workers);
}

static inline dm_dtype dtype_random(dmt_random *r, bool floats)
{
    static const dm_dtype all[] = {DM_F64, DM_F32, DM_F16, DM_BF16, DM_I64, DM_I32, DM_U8};
    return all[dmt_int(r, 0, floats ? 3 : 6)];
}

static inline void shape_random(dmt_random *r, int ndim, int64_t *shape)
{
    for (int d = 0; d < ndim; d++) {
        shape[d] = dmt_chance(r, 5) ? 0 : dmt_chance(r, 10) ? 1 : dmt_int(r, 1, ndim > 2 ? 9 : 40);
    }
}

static inline double factor(dmt_random *r)
{
    return (double)dmt_int(r, -1, 2);
}

/* A vector, or leading dims. */
static inline void stack_random(sim_program *p, dmt_random *r)
{
    int na = (int)dmt_int(r, 1, 4), nb = (int)dmt_int(r, 1, na < 3 ? 2 : na);
    int ta = dmt_chance(r, 50), tb = dmt_chance(r, 50), rest = na > 2 ? na - 2 : 0;
    int64_t m = dmt_int(r, 0, 12), n = dmt_int(r, 1, 12), k = dmt_int(r, 0, 12), a[4], b[4], c[4];
    for (int d = 0; d < rest; d++) {
        c[d] = a[d] = dmt_int(r, 0, 5);
        if (d >= na - nb) {
            b[d - (na - nb)] = dmt_chance(r, 25) ? 1 : c[d];
        }
    }
    int nc = rest;
    if (na > 1) {
        a[na - 2] = ta ? k : m;
        a[na - 1] = ta ? m : k;
        c[nc++] = m;
    } else {
        a[0] = k;
    }
    if (nb > 1) {
        b[nb - 2] = tb ? n : k;
        b[nb - 1] = tb ? k : n;
        c[nc++] = n;
    } else {
        b[0] = k;
    }
    int id[3] = {sim_array_random(p, r, dtype_random(r, true), na, a),
                 sim_array_random(p, r, dtype_random(r, true), nb, b),
                 sim_array_random(p, r, dtype_random(r, true), nc, c)};
    (void)sim_gemm(p, ta, tb, factor(r), id[0], id[1], id[2]);
}

static inline void product_random(sim_program *p, dmt_random *r)
{
    if (dmt_chance(r, 30)) {
        stack_random(p, r);
        return;
    }
    int ta = dmt_chance(r, 50), tb = dmt_chance(r, 50);
    int64_t m = dmt_int(r, 0, 40), n = dmt_int(r, 1, 40), k = dmt_int(r, 0, 40);
    int64_t a[2] = {ta ? k : m, ta ? m : k}, b[2] = {tb ? n : k, tb ? k : n}, c[2] = {m, n};
    int id[3] = {sim_array_random(p, r, dtype_random(r, true), 2, a),
                 sim_array_random(p, r, dtype_random(r, true), 2, b),
                 sim_array_random(p, r, dtype_random(r, true), 2, c)};
    (void)sim_gemm(p, ta, tb, factor(r), id[0], id[1], id[2]);
}

static inline int broadcast_random(sim_program *p, dmt_random *r, int ndim, const int64_t *shape)
{
    int64_t narrow[DM_MAX_DIMS];
    int n = (int)dmt_int(r, 0, ndim);
    for (int d = 0; d < n; d++) {
        narrow[d] = dmt_chance(r, 30) ? 1 : shape[ndim - n + d];
    }
    return sim_array_random(p, r, dtype_random(r, false), n, narrow);
}

static inline void ewise_random(sim_program *p, dmt_random *r)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(r, 0, 3);
    shape_random(r, ndim, shape);
    int out = sim_array_random(p, r, dtype_random(r, false), ndim, shape);
    int a = dmt_chance(r, 20) ? out : broadcast_random(p, r, ndim, shape);
    int b = dmt_chance(r, 20) ? out : broadcast_random(p, r, ndim, shape);
    double alpha = factor(r), beta = factor(r);
    sim_args args = {.s = {alpha, beta}, .i = {alpha == 0, beta == 0}};
    sim_args row = {.i = {DMI_EW_where}};
    int c = broadcast_random(p, r, ndim, shape);
    switch (dmt_int(r, 0, 5)) {
    case 4:
        (void)sim_call(p, DMI_OP_ewise, &row, 4, (int[]){a, b, c, out});
        break;
    case 5:
        row.i[0] = DMI_EW_maximum;
        (void)sim_call(p, DMI_OP_ewise, &row, 3, (int[]){a, b, out});
        break;
    case 0:
        (void)sim_call(p, DMI_OP_add, &args, 3, (int[]){a, b, out});
        break;
    case 1:
        (void)sim_call(p, DMI_OP_multiply, &args, 3, (int[]){a, b, out});
        break;
    case 2:
        (void)sim_call(p, DMI_OP_axpby, &args, 2, (int[]){a, out});
        break;
    default:
        (void)sim_call(p, DMI_OP_scale, &args, 2, (int[]){a, out});
    }
}

static inline void copy_random(sim_program *p, dmt_random *r)
{
    int64_t shape[DM_MAX_DIMS], turned[DM_MAX_DIMS];
    int ndim = (int)dmt_int(r, 0, 4), perm[DM_MAX_DIMS];
    sim_args args = {.i = {dmt_chance(r, 50) ? ndim : 0}};
    shape_random(r, ndim, shape);
    dmt_shuffle(r, ndim, perm);
    for (int d = 0; d < ndim; d++) {
        perm[d] = args.i[0] ? perm[d] : d;
        args.i[1 + d] = perm[d];
        turned[d] = shape[perm[d]];
    }
    int src = sim_array_random(p, r, dtype_random(r, false), ndim, shape);
    int dst = sim_array_random(p, r, dtype_random(r, false), ndim, turned);
    (void)sim_call(p, DMI_OP_copy, &args, 2, (int[]){src, dst});
}

static inline void sum_random(sim_program *p, dmt_random *r)
{
    int64_t shape[DM_MAX_DIMS], kept[DM_MAX_DIMS];
    int ndim = (int)dmt_int(r, 1, 3), n = 0;
    int reduced = (int)dmt_int(r, 0, (1 << ndim) - 1);
    bool keeps = dmt_chance(r, 30);
    double beta = factor(r);
    shape_random(r, ndim, shape);
    for (int d = 0; d < ndim; d++) {
        if (!(reduced >> d & 1)) {
            kept[n++] = shape[d];
        } else if (keeps) {
            kept[n++] = 1;
        }
    }
    sim_args args = {.s = {1, beta}, .i = {reduced, beta == 0}};
    int x = sim_array_random(p, r, dtype_random(r, false), ndim, shape);
    int out = sim_array_random(p, r, dtype_random(r, false), n, kept);
    (void)sim_call(p, DMI_OP_sum, &args, 2, (int[]){x, out});
    args.i[1] = (int)dmt_int(r, 1, DMI_REDUCTIONS - 1);
    (void)sim_call(p, DMI_OP_reduce, &args, 2, (int[]){x, out});
}

/* An op of several phases. */
static inline void softmax_random(sim_program *p, dmt_random *r)
{
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(r, 1, 3);
    sim_args args = {.i = {(int)dmt_int(r, 0, (1 << ndim) - 1)}};
    shape_random(r, ndim, shape);
    int x = sim_array_random(p, r, dtype_random(r, false), ndim, shape);
    int out = dmt_chance(r, 20) ? x : sim_array_random(p, r, dtype_random(r, false), ndim, shape);
    (void)sim_call(p, DMI_OP_softmax, &args, 2, (int[]){x, out});
}

/* A solve with one triangular block. */
static inline void trsm_random(sim_program *p, dmt_random *r)
{
    sim_args args = {.i = {dmt_chance(r, 50), dmt_chance(r, 50), (int)dmt_int(r, 0, 2), dmt_chance(r, 50)}};
    int64_t n = dmt_int(r, 0, 12), other = dmt_int(r, 0, 20);
    int a = sim_array_random(p, r, DM_F64, 2, (int64_t[]){n, n});
    int b = sim_array_random(p, r, DM_F64, 2, args.i[0] ? (int64_t[]){other, n} : (int64_t[]){n, other});
    (void)sim_call(p, DMI_OP_trsm, &args, 2, (int[]){a, b});
}

/* Chains: with reductions, indices, a vector as a column and a transposed matrix. */
static inline void chain_random(sim_program *p, dmt_random *r)
{
    static const dmi_chain_name names[] = {{"x"},
                                           {"t", .kind = DMI_CHAIN_TRANSPOSED},
                                           {"v", .kind = DMI_CHAIN_COLUMN},
                                           {"i", .kind = DMI_CHAIN_INDEX, .dim = 0},
                                           {"j", .kind = DMI_CHAIN_INDEX, .dim = 1}};
    static const dmi_chain_text texts[2][3] = {
        {{"m", "max(x)"}, {"s", "sum(exp(x - m))"}, {NULL, "where(j == v, x - m - s, t * i)"}},
        {{"m", "mean(t + j)"}, {"s", "x - m * i"}, {NULL, "sum(s * v)"}}};
    static const dm_dtype dtypes[] = {DM_F32, DM_F64, DM_I32, 0, 0};
    bool last = dmt_chance(r, 50), in_place = !last && dmt_chance(r, 20);
    int64_t n = dmt_int(r, 0, 12);
    const dmi_chain_call chain = {5, 3, names, texts[last], (int[]){1}, 1, 0};
    dmi_chain_made *made = &p->made[p->chains];
    if (p->chains == SIM_CHAINS || dmi_chain_make(&chain, dtypes, DM_F32, made) != DM_OK) {
        return;
    }
    int x = sim_array_random(p, r, DM_F32, 2, (int64_t[]){n, n}), t = sim_array_random(p, r, DM_F64, 2, (int64_t[]){n, n});
    int v = sim_array_random(p, r, DM_I32, 1, &n), out = in_place ? x : sim_array_random(p, r, DM_F32, last ? 1 : 2, (int64_t[]){n, n});
    const int arrays[] = {x, t, v, out};
    for (int i = 0; i < 4; i++) {
        made->call.operand[i] = p->array[arrays[i]];
    }
    p->call[p->calls] = made->call;
    if (dmi_chain_check(&p->call[p->calls]) == DM_OK) {
        strcat(p->text, last ? "chain to vector " : "chain ");
        p->calls++;
        p->chains++;
    }
}

/* A scan: in a frame, with accumulators along lines of workers. */
static inline void scan_random(sim_program *p, dmt_random *r)
{
    static const int rows[] = {DMI_REDUCTION_sum, DMI_REDUCTION_prod, DMI_REDUCTION_max};
    int64_t shape[DM_MAX_DIMS];
    int ndim = (int)dmt_int(r, 1, 3);
    sim_args args = {.i = {(int)dmt_int(r, 0, ndim - 1), rows[dmt_int(r, 0, 2)]}};
    shape_random(r, ndim, shape);
    int x = sim_array_random(p, r, dtype_random(r, false), ndim, shape);
    int out = dmt_chance(r, 20) ? x : sim_array_random(p, r, dtype_random(r, false), ndim, shape);
    (void)sim_call(p, DMI_OP_scan, &args, 2, (int[]){x, out});
}

/* Rows sorted in a frame, or parts of rows; the first of each; searches; counts. */
static inline void order_random(sim_program *p, dmt_random *r)
{
    int64_t shape[DM_MAX_DIMS], most[DM_MAX_DIMS], n = dmt_int(r, 0, 60), bins = dmt_int(r, 1, 9), edges = bins + 1;
    int ndim = (int)dmt_int(r, 1, 3), dim = (int)dmt_int(r, 0, ndim - 1);
    bool values = dmt_chance(r, 50), first = dmt_chance(r, 50);
    sim_args sort = {.i = {dim, (int)dmt_int(r, 0, 1), values, true, first, 0}};
    sim_args search = {.i = {(int)dmt_int(r, 0, 1)}}, count = {.i = {DMI_BINS_EDGES, (int)dmt_int(r, 0, 1)}};
    shape_random(r, ndim, shape);
    memcpy(most, shape, sizeof most);
    most[dim] = first ? dmt_int(r, 0, shape[dim]) : shape[dim];
    int x = sim_array_random(p, r, dtype_random(r, false), ndim, shape);
    switch (dmt_int(r, 0, 2)) {
    case 0: {
        int indices = sim_array_random(p, r, DM_I64, ndim, most), out[3] = {x, indices, indices};
        if (values) {
            out[1] = sim_array_random(p, r, dtype_random(r, false), ndim, most);
        }
        (void)sim_call(p, DMI_OP_sort, &sort, values ? 3 : 2, out);
        break;
    }
    case 1:
        (void)sim_call(p, DMI_OP_searchsorted, &search, 3,
                       (int[]){sim_array_random(p, r, dtype_random(r, false), 1, &n), x,
                               sim_array_random(p, r, DM_I32, ndim, shape)});
        break;
    default: {
        int a[4] = {x, sim_array_random(p, r, dtype_random(r, false), 1, &edges)}, k = 2;
        if (count.i[1]) {
            a[k++] = sim_array_random(p, r, dtype_random(r, false), ndim, shape);
        }
        a[k++] = sim_array_random(p, r, DM_F64, 1, &bins);
        (void)sim_call(p, DMI_OP_histogram, &count, k, a);
    }
    }
}

/* Expressions: of arrays and random numbers, which are filled in a phase of their own; elementwise or reduced,
 * and where no array has the full shape written to a temporary first. */
static inline void expression_random(sim_program *p, dmt_random *r)
{
    static const char *const texts[2][2] = {{"x", "x * y"}, {"x + y", "x * y + z"}};
    int64_t shape[DM_MAX_DIMS], kept[DM_MAX_DIMS];
    int ndim = (int)dmt_int(r, 0, 3), inputs = (int)dmt_int(r, 1, 2), n = 0, id[3];
    bool drawn = dmt_chance(r, 50), reduces = dmt_chance(r, 60);
    dm_dtype type[3], made = DM_F64;
    dmi_map_program program;
    dmi_call randoms = {.op = DMI_OP_map};
    sim_args args = {.s = {1, 2}};
    shape_random(r, ndim, shape);
    for (int i = 0; i < inputs; i++) {
        id[i] = broadcast_random(p, r, ndim, shape);
        type[i] = p->array[id[i]].desc.dtype;
    }
    if (drawn) {
        dmi_call_filled(&randoms, dmt_chance(r, 50) ? DMI_FILL_NORMAL : DMI_FILL_UNIFORM, 2, DM_F64);
        memcpy(args.i, randoms.args.i, sizeof args.i);
        type[inputs] = DM_F64;
    }
    if (reduces) { /* over what the inputs broadcast to */
        const dmi_desc *x[2] = {&p->array[id[0]].desc, &p->array[id[inputs - 1]].desc};
        (void)dmi_desc_broadcast(2, x, &ndim, shape);
        args.i[0] = (int)dmt_int(r, 0, (1 << ndim) - 1);
        args.i[DMI_REDUCE_ROW] = (int)dmt_int(r, 0, DMI_REDUCTIONS - 1);
        args.i[DMI_REDUCE_MADE] = made;
    }
    for (int d = 0; d < ndim; d++) {
        if (!reduces || !(args.i[0] >> d & 1)) {
            kept[n++] = shape[d];
        }
    }
    id[inputs] = sim_array_random(p, r, dtype_random(r, false), n, kept);
    const char *text = texts[drawn][inputs - 1];
    char wide[32];
    snprintf(wide, sizeof wide, "f64(%s)", text);
    dm_dtype stored = reduces ? made : p->array[id[inputs]].desc.dtype;
    assert_int_equal(dmi_program_of(wide, inputs + drawn, type, stored, &program), DM_OK);
    (void)sim_call_with(p, reduces ? DMI_OP_reduce : DMI_OP_map, &args, inputs + 1, id, &program);
}

/* Sums and products with factors that are elements of arrays: two phases. */
static inline void factors_random(sim_program *p, dmt_random *r)
{
    int64_t m = dmt_int(r, 1, 20), n = dmt_int(r, 1, 20), k = dmt_int(r, 1, 20);
    bool reads = dmt_chance(r, 50), product = dmt_chance(r, 50);
    dm_dtype to = dtype_random(r, true), type[3] = {DM_F64, to, DM_F32};
    dmi_map_program program;
    int element = sim_array_random(p, r, DM_F32, 2, (int64_t[]){1, 1});
    int64_t extent[2] = {product ? m : n, n}, room[2], lo[2];
    for (int d = 0; d < 2; d++) {
        lo[d] = dmt_chance(r, 50) ? 0 : dmt_int(r, 0, 3);
        room[d] = lo[d] + extent[d] + (dmt_chance(r, 50) ? 0 : dmt_int(r, 0, 5));
    }
    int out = sim_view(p, sim_array_random(p, r, to, product ? 2 : 1, room), lo, extent);
    int a = sim_array_random(p, r, DM_F64, 2, (int64_t[]){m, product ? k : n});
    type[1] = reads ? to : DM_F32;
    assert_int_equal(dmi_program_of(reads ? "x * z + y" : "x * y", reads ? 3 : 2, type, to, &program), DM_OK);
    if (!product) {
        sim_args args = {.i = {1, !reads}};
        (void)sim_call_with(p, DMI_OP_sum_by, &args, 3, (int[]){a, out, element}, &program);
        return;
    }
    int b = sim_array_random(p, r, dtype_random(r, true), 2, (int64_t[]){k, n});
    sim_args args = {.i = {0, 0, !reads, 0}};
    (void)sim_call_with(p, DMI_OP_gemm_by, &args, 4, (int[]){a, b, out, element}, &program);
}

/* Every worker's own addends, summed into copies: the gradients of workers. */
static inline void gradients_random(sim_program *p, dmt_random *r)
{
    int workers = p->profile.workers, replicas = (int)dmt_int(r, 1, workers);
    int64_t rows = dmt_chance(r, 80) ? workers : dmt_int(r, 0, workers), n = dmt_int(r, 0, 300);
    double beta = factor(r);
    dmi_layout_spec spec = {.ndim = 2, .shape = {rows, n}, .grid = {workers, 1}};
    dmi_layout_spec copies = {.ndim = 1, .shape = {n}, .grid = {workers / replicas}, .replicas = replicas};
    copies.nworkers = copies.grid[0] * replicas;
    sim_args args = {.s = {1, beta}, .i = {1, beta == 0}};
    int x = sim_array(p, dtype_random(r, false), &spec), out = sim_array(p, dtype_random(r, false), &copies);
    (void)sim_call(p, DMI_OP_sum, &args, 2, (int[]){x, out});
}

/* Fills, reads, writes, saves, loads of arrays that are there already, or of parts of them. */
static inline void touch_random(sim_program *p, dmt_random *r)
{
    static const int ops[] = {DMI_OP_fill, DMI_OP_read, DMI_OP_write, DMI_OP_load, DMI_OP_save};
    int op = ops[dmt_int(r, 0, 4)], which = (int)dmt_int(r, 0, p->arrays - 1);
    sim_args args = {.i = {0}};
    const dmi_desc *desc = &p->array[which].desc;
    int64_t lo[DM_MAX_DIMS], extent[DM_MAX_DIMS];
    bool part = dmt_chance(r, 50) && p->arrays < SIM_ARRAYS && op != DMI_OP_load;
    for (int d = 0; part && d < desc->ndim; d++) {
        lo[d] = dmt_int(r, 0, desc->extent[d]);
        extent[d] = dmt_int(r, 0, desc->extent[d] - lo[d]);
    }
    which = part ? sim_view(p, which, lo, extent) : which;
    args.i[0] = op == DMI_OP_load || op == DMI_OP_save ? 128 : 0;
    (void)sim_call(p, op, &args, 1, &which);
}

static inline void again_random(sim_program *p, dmt_random *r)
{
    if (p->calls > 0 && p->calls < SIM_CALLS) {
        p->call[p->calls] = p->call[dmt_int(r, 0, p->calls - 1)];
        strcat(p->text, "again ");
        p->calls++;
    }
}

static inline void program_random(sim_program *p, dmt_random *r)
{
    sim_begin(p, (int)dmt_int(r, 1, 12));
    p->profile.one_space = dmt_chance(r, 50);
    p->profile.chunk = dmt_chance(r, 50) ? 8 : 2 << 20;
    p->profile.gemm_workspace = dmt_chance(r, 50) ? dmt_int(r, 1, 4096) : 0;
    p->profile.reduce_algorithm = (int)dmt_int(r, DMI_REDUCE_AUTO, DMI_REDUCE_SCATTER);
    p->profile.reduce_chunk = dmt_chance(r, 50) ? dmt_int(r, 1, 64) : 0;
    p->profile.pace_bytes = dmt_chance(r, 50) ? dmt_int(r, 1, 64) : 0;
    int calls = (int)dmt_int(r, 1, 4);
    for (int i = 0; i < calls; i++) {
        switch (p->arrays > SIM_ARRAYS - 5 ? 5 : dmt_int(r, 0, 19)) {
        case 0:
        case 1:
            product_random(p, r);
            break;
        case 8:
        case 9:
            softmax_random(p, r);
            break;
        case 10:
        case 11:
            scan_random(p, r);
            break;
        case 12:
        case 13:
            order_random(p, r);
            break;
        case 2:
            ewise_random(p, r);
            break;
        case 14:
        case 15:
            expression_random(p, r);
            break;
        case 16:
            factors_random(p, r);
            break;
        case 18:
            trsm_random(p, r);
            break;
        case 19:
            chain_random(p, r);
            break;
        case 3:
            copy_random(p, r);
            break;
        case 4:
            sum_random(p, r);
            break;
        case 7:
            gradients_random(p, r);
            break;
        case 5:
            if (p->arrays > 0) {
                touch_random(p, r);
            }
            break;
        default:
            again_random(p, r);
        }
    }
}

#endif
