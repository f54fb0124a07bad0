/* Fillers: the first values of parameters, and those of DummyData. Random numbers are those of an element's
 * place in its array. */
#include "net/net.h"

#include <math.h>
#include <string.h>

static const char F[] = "FillerParameter";

uint64_t nn_hash(uint64_t a, uint64_t b)
{
    uint64_t x = a * UINT64_C(0x9e3779b97f4a7c15) + b + UINT64_C(0x632be59bd9b4e019);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9); /* the finaliser of splitmix64 */
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* By what xavier and msra divide the variance. */
static double fan(const nn_message *filler, int ndim, const int64_t *shape)
{
    int64_t count = 1;
    for (int d = 0; d < ndim; d++) {
        count *= shape[d];
    }
    double in = (double)(count / shape[0]), out = (double)(ndim > 1 ? count / shape[1] : count);
    int64_t norm = nn_int(filler, F, "variance_norm");
    return norm == 0 ? in : norm == 1 ? out : (in + out) / 2;
}

static dm_status gaussian(const nn_layer *l, const nn_message *filler, const int64_t *shape, uint64_t seed,
                          dm_array x)
{
    dm_session *s = l->net->session;
    const double std = nn_real(filler, F, "std");
    if (!(std >= 0)) {
        return nn_fail_at(filler, nn_line(filler, "std"), DM_ERR_FORMAT,
                          "layer '%s' has a gaussian filler with std %g; it must be at least 0", l->name, std);
    }
    int64_t sparse = nn_int(filler, F, "sparse");
    dm_status status = dm_fill_normal(s, x, nn_real(filler, F, "mean"), std, seed);
    if (status == DM_OK && sparse >= 0) { /* so many of the inputs of an output stay, on average */
        dm_map_arg args[] = {DM_ARG("x", x), DM_NUMBER("part", (double)sparse / (double)shape[0]),
                             DM_INTEGER("seed", (int64_t)(nn_hash(seed, 1) >> 1))};
        status = dm_map(s, "where(uniform(seed) < part, x, 0)", 3, args, x);
    }
    return status;
}

/* Each row sums to 1. Made on all workers: the bits of the sums do not depend on where x lies. */
static dm_status unit_rows(nn_net *net, uint64_t seed, dm_array x)
{
    dm_session *s = net->session;
    dm_array all = DM_NO_ARRAY, sums = DM_NO_ARRAY;
    dm_layout everywhere = dm_layout_replicated(s);
    int dims[DM_MAX_DIMS];
    dm_array_info info = {.size = sizeof info};
    dm_status status = dm_array_query(s, x, &info);
    if (status == DM_OK) {
        status = dm_array_create(s, DM_F32, info.ndim, info.shape, &everywhere, &all);
    }
    for (int d = 1; d < info.ndim; d++) {
        dims[d - 1] = d;
        info.shape[d] = 1;
    }
    if (status == DM_OK) {
        status = dm_array_create(s, DM_F32, info.ndim, info.shape, &everywhere, &sums);
    }
    status = status == DM_OK ? dm_fill_uniform(s, all, 0, 1, seed) : status;
    if (status == DM_OK) {
        status = info.ndim > 1 ? dm_sum(s, all, dims, info.ndim - 1, 1, 0, sums) : dm_copy(s, all, sums);
    }
    status = status == DM_OK ? dm_divide(s, all, sums, all) : status;
    status = status == DM_OK ? dm_copy(s, all, x) : status;
    dm_status end = dm_array_destroy(s, sums), end2 = dm_array_destroy(s, all);
    return status != DM_OK ? status : end != DM_OK ? end : end2;
}

/* Weights of an interpolation between pixels, the same in all planes: with w the side of a plane and f = ceil(w
 * / 2), row y and column x have (1 - |y / f - c|) (1 - |x / f - c|), c = (w - 1) / (2 f). */
static dm_status bilinear(nn_net *net, const nn_message *filler, int ndim, const int64_t *shape,
                          bool channels_last, dm_array x)
{
    if (ndim != 4 || shape[2] != shape[3]) {
        return nn_fail_at(filler, nn_line(filler, "type"), DM_ERR_SHAPE,
                          "bilinear fillers need 4 dims, of which the last two are equal");
    }
    const double side = (double)shape[2], f = ceil(side / 2);
    dm_map_arg args[] = {DM_NUMBER("f", f), DM_NUMBER("c", (side - 1) / (2 * f))};
    return dm_map(net->session,
                  channels_last ? "(1 - abs(index(1) / f - c)) * (1 - abs(index(2) / f - c))"
                                : "(1 - abs(index(2) / f - c)) * (1 - abs(index(3) / f - c))",
                  NN_COUNT(args), args, x);
}

/* Published nets have fields of other fillers, GoogLeNet for one: said once, and then without effect, as in
 * Caffe. */
static void say_unused(const nn_net *net, const nn_message *filler, const char *type)
{
    for (int i = 0; filler && i < filler->count; i++) {
        nn_entry *e = &filler->entries[i];
        if (!e->used) {
            nn_log(net, "%s:%d: %s has no effect with the filler '%s'", filler->file, e->line, e->field->name,
                   type);
            e->used = true;
        }
    }
}

static dm_status fill(const nn_layer *l, const nn_message *filler, int ndim, const int64_t *shape,
                      bool channels_last, uint64_t seed, dm_array x)
{
    const char *type = nn_string(filler, F, "type");
    nn_net *net = l->net;
    dm_session *s = net->session;
    if (strcmp(type, "gaussian") == 0) {
        return gaussian(l, filler, shape, seed, x);
    }
    if (nn_int(filler, F, "sparse") != -1) {
        return nn_fail_at(filler, nn_line(filler, "sparse"), DM_ERR_FORMAT,
                          "only gaussian fillers may be sparse");
    }
    if (strcmp(type, "constant") == 0) {
        return dm_fill(s, x, nn_real(filler, F, "value"));
    }
    if (strcmp(type, "uniform") == 0) {
        double lo = nn_real(filler, F, "min"), hi = nn_real(filler, F, "max");
        return lo <= hi ? dm_fill_uniform(s, x, lo, hi, seed)
                        : nn_fail_at(filler, nn_line(filler, "min"), DM_ERR_FORMAT,
                                     "min of a uniform filler is above max");
    }
    if (strcmp(type, "xavier") == 0) {
        double most = sqrt(3 / fan(filler, ndim, shape));
        return dm_fill_uniform(s, x, -most, most, seed);
    }
    if (strcmp(type, "msra") == 0) {
        return dm_fill_normal(s, x, 0, sqrt(2 / fan(filler, ndim, shape)), seed);
    }
    if (strcmp(type, "positive_unitball") == 0) {
        return unit_rows(net, seed, x);
    }
    if (strcmp(type, "bilinear") == 0) {
        return bilinear(net, filler, ndim, shape, channels_last, x);
    }
    return nn_fail_at(filler, nn_line(filler, "type"), DM_ERR_UNSUPPORTED, "there is no filler '%s'", type);
}

dm_status nn_fill(const nn_layer *l, const nn_message *filler, int ndim, const int64_t *shape,
                  bool channels_last, uint64_t seed, dm_array x)
{
    dm_status status = fill(l, filler, ndim, shape, channels_last, seed, x);
    say_unused(l->net, filler, nn_string(filler, F, "type"));
    return status;
}
