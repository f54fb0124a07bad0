/* Fills of parts: every element of any region, of any layout or view, has the bits it has in the whole array.
 */
#include "kernel_oracle.h"
#include "kernels/direct.h"

static bool in_set(const dmi_dimset *s, int64_t index)
{
    int64_t own = index + s->origin;
    return own >= s->lo && own < s->hi && (s->g <= 1 || own / s->block % s->g == s->c);
}
static int64_t place(const dmi_dimset *s, int64_t index)
{
    int64_t own = index + s->origin;
    return s->g <= 1 ? own - s->lbase : own / s->block / s->g * s->block + own % s->block - s->lbase;
}

/* Every element of the region has the bits it has in the whole; all else is left alone. */
static void check_region(const dmi_fill *d, const dmi_fill_values *v, const char *whole, int64_t shard)
{
    int64_t bytes = width_of(d->dtype), total = 1, found = 0, index[DM_MAX_DIMS] = {0};
    char *out = malloc((size_t)(shard * bytes) + 1), *expected = malloc((size_t)(shard * bytes) + 1);
    assert_true(out != NULL && expected != NULL);
    memset(out, 0x5a, (size_t)(shard * bytes));
    memset(expected, 0x5a, (size_t)(shard * bytes));
    for (int k = 0; k < d->region.ndim; k++) {
        total *= d->shape[k];
    }
    for (int64_t i = 0; i < total; i++) {
        int64_t rest = i, at = d->region.offset;
        bool inside = true;
        for (int k = d->region.ndim - 1; k >= 0; k--) {
            index[k] = rest % d->shape[k];
            rest /= d->shape[k];
            inside = inside && in_set(&d->region.dim[k], index[k]);
            at += place(&d->region.dim[k], index[k]) * d->region.stride[k];
        }
        if (inside) {
            assert_true(at >= 0 && at < shard);
            memcpy(expected + at * bytes, whole + i * bytes, (size_t)bytes);
            found++;
        }
    }
    assert_true(found == d->region.count);
    dmi_run_fill(dmi_backend_cpu(), NULL, d, v, out);
    assert_memory_equal(out, expected, (size_t)(shard * bytes));
    free(out);
    free(expected);
}

static void check_layout(rng *r, const dmi_layout_spec *spec, int kind, dm_dtype t)
{
    dmi_layout *layout = NULL;
    dmi_fill d;
    dmi_fill_values v = {.p0 = -1.5, .p1 = 2.25, .i0 = -7, .i1 = 900, .seed = rng_next(r)};
    assert_int_equal(dmi_layout_create(spec, &layout), DM_OK);
    whole_fill(kind, t, spec->ndim, spec->shape, &d);
    char *whole = malloc((size_t)(layout->count * width_of(t)) + 1);
    assert_non_null(whole);
    dmi_run_fill(dmi_backend_cpu(), NULL, &d, &v, whole);
    for (int w = 0; w < spec->session_workers; w++) {
        for (int64_t q = 0; q < dmi_layout_region_count(layout, w); q++) {
            dmi_layout_region(layout, w, q, &d.region);
            check_region(&d, &v, whole, dmi_layout_shard_count(layout, w));
            int64_t lo[DM_MAX_DIMS], extent[DM_MAX_DIMS], count = 1;
            for (int k = 0; k < spec->ndim; k++) { /* a window: a view, filled in its own coordinates */
                lo[k] = rng_in(r, 0, spec->shape[k]);
                extent[k] = rng_in(r, 0, spec->shape[k] - lo[k]);
                count *= extent[k];
            }
            dmi_fill window = d, all;
            if (!dmi_region_clip(&d.region, lo, extent, &window.region)) {
                continue;
            }
            whole_fill(kind, t, spec->ndim, extent, &all);
            memcpy(window.shape, all.shape, sizeof window.shape);
            char *view = malloc((size_t)(count * width_of(t)) + 1);
            assert_non_null(view);
            dmi_run_fill(dmi_backend_cpu(), NULL, &all, &v, view);
            check_region(&window, &v, view, dmi_layout_shard_count(layout, w));
            free(view);
        }
    }
    free(whole);
    dmi_layout_destroy(layout);
}

static void test_regions(void **state)
{
    (void)state;
    rng r = {51};
    for (int round = 0; round < 700; round++) {
        dmi_layout_spec spec = {.kind = DMI_LAYOUT_GRID, .ndim = (int)rng_in(&r, 0, round % 20 == 0 ? 4 : 3)};
        int workers = 1, map[400], kind = (int)rng_in(&r, 0, DMI_FILL_KINDS - 1);
        dm_dtype t = all_dtypes[rng_in(&r, 0, kind == DMI_FILL_NORMAL ? 3 : ALL_DTYPES - 1)];
        spec.ndim = kind == DMI_FILL_IDENTITY ? 2 : spec.ndim;
        int64_t blocks = 1, longest = spec.ndim == 1 ? 3000 : spec.ndim == 2 ? 40 : 8;
        for (int k = 0; k < spec.ndim; k++) {
            spec.shape[k] = rng_in(&r, 0, 20) == 0 ? 0 : rng_in(&r, 1, longest);
            spec.grid[k] = (int)rng_in(&r, 1, 3);
            spec.order[k] = (int)rng_in(&r, 0, 1);
            spec.block[k] = rng_in(&r, 0, 3) == 0 ? 0 : rng_in(&r, 1, 5);
            workers *= spec.grid[k];
        }
        spec.session_workers = workers;
        if (round % 4 == 0) {
            spec.kind = DMI_LAYOUT_EXPLICIT;
            for (int k = 0; k < spec.ndim; k++) {
                spec.block[k] = DMI_MAX(1, (spec.shape[k] + 3) / 4);
                blocks *= (spec.shape[k] + spec.block[k] - 1) / spec.block[k];
            }
            assert_true(blocks <= 400);
            for (int64_t i = 0; i < blocks; i++) {
                map[i] = (int)rng_in(&r, 0, workers - 1);
            }
            spec.map = map;
            spec.map_count = blocks;
        }
        check_layout(&r, &spec, kind, t);
    }
}

/* CONST, IDENTITY, ARANGE in every type, by their definitions. */
static void test_plain_kinds(void **state)
{
    (void)state;
    const int64_t shape[2] = {23, 61}, square[2] = {61, 61};
    char *out = malloc(61 * 61 * 8), expected[8];
    assert_non_null(out);
    for (int t = 0; t < ALL_DTYPES; t++) {
        dm_dtype type = all_dtypes[t];
        dmi_fill_values v = {
            .p0 = 0.1, .p1 = -0.3, .i0 = INT64_C(0x123456789abcdef), .i1 = INT64_C(0x7123456789abcdef)};
        for (int kind = DMI_FILL_CONST; kind <= DMI_FILL_ARANGE; kind++) {
            dmi_fill d;
            const int64_t *s = kind == DMI_FILL_IDENTITY ? square : shape;
            whole_fill(kind, type, 2, s, &d);
            dmi_run_fill(dmi_backend_cpu(), NULL, &d, &v, out);
            for (int64_t i = 0; i < s[0] * s[1]; i++) {
                bool on = kind != DMI_FILL_IDENTITY || i / s[1] == i % s[1];
                int64_t k = kind == DMI_FILL_ARANGE ? i : 0;
                if (floating(type)) {
                    encode_float(type, on ? v.p0 + v.p1 * (double)k : 0, expected);
                } else {
                    encode_int(type, on ? (int64_t)((uint64_t)v.i0 + (uint64_t)v.i1 * (uint64_t)k) : 0,
                               expected);
                }
                assert_memory_equal(out + i * width_of(type), expected, (size_t)width_of(type));
            }
        }
    }
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_regions),
        cmocka_unit_test(test_plain_kinds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
