/* Fills on the GPU against those of the CPU: bit for bit, on any region of any layout or view. */
#include "cuda/cuda_case.h"
#include "kernels/direct.h"

static void check_fill(fixture *f, rng *r, const dmi_fill *d, int64_t span)
{
    static const double p0[] = {0, 1, -1.5, 1e30, -3e-310}, p1[] = {1, 2.25, 1e308, 7, 1e-5};
    dmi_fill_values v = {.p0 = p0[rng_in(r, 0, 4)], .p1 = p1[rng_in(r, 0, 4)], .seed = rng_next(r)};
    int64_t bytes = span * width_of(d->dtype);
    v.i0 = rng_in(r, 0, 1) ? (int64_t)rng_next(r) : rng_in(r, -9, 9);
    v.i1 = rng_in(r, 0, 1) ? (int64_t)rng_next(r) : rng_in(r, -9, 900);
    char *out = malloc((size_t)bytes + 1);
    assert_non_null(out);
    memset(out, 0x5a, (size_t)bytes);
    void *gpu = upload(out, bytes);
    dmi_run_fill(dmi_backend_cuda(), f->q, d, &v, gpu);
    dmi_run_fill(dmi_backend_cpu(), NULL, d, &v, out);
    finish(f);
    char *got = download(gpu, bytes);
    check_same("fill", part_of(d->dtype), got, out, span * parts_in(d->dtype));
    CUDA(cudaFree(gpu));
    free(out);
    free(got);
}

static void check_layout(fixture *f, rng *r, const dmi_layout_spec *spec, dmi_fill *d)
{
    dmi_layout *layout = NULL;
    assert_int_equal(dmi_layout_create(spec, &layout), DM_OK);
    for (int w = 0; w < spec->session_workers; w++) {
        for (int64_t q = 0; q < dmi_layout_region_count(layout, w); q++) {
            int64_t lo[DM_MAX_DIMS], span = dmi_layout_shard_count(layout, w);
            dmi_fill window = *d;
            dmi_layout_region(layout, w, q, &d->region);
            memcpy(d->shape, spec->shape, sizeof d->shape);
            check_fill(f, r, d, span);
            for (int k = 0; k < spec->ndim; k++) { /* a view, filled in its own coordinates */
                lo[k] = rng_in(r, 0, spec->shape[k]);
                window.shape[k] = rng_in(r, 0, spec->shape[k] - lo[k]);
            }
            if (dmi_region_clip(&d->region, lo, window.shape, &window.region)) {
                check_fill(f, r, &window, span);
            }
        }
    }
    dmi_layout_destroy(layout);
}

/* A type that the kind of fill takes. */
static dm_dtype dtype_for(rng *r, int kind)
{
    dm_dtype t = any_dtype(r);
    bool refused = (kind == DMI_FILL_NORMAL && !floating(t)) || (kind == DMI_FILL_UNIFORM && is_complex(t));
    return refused ? all_dtypes[rng_in(r, 0, 3)] : t;
}

static void test_regions(void **state)
{
    fixture *f = begin_test(state);
    rng r = {31};
    for (int64_t round = 0; round < rounds(f, 700); round++) {
        dmi_layout_spec spec = {.kind = DMI_LAYOUT_GRID, .ndim = (int)rng_in(&r, 0, round % 10 == 0 ? 4 : 2)};
        dmi_fill d = {.kind = (int)rng_in(&r, 0, DMI_FILL_KINDS - 1)};
        int workers = 1;
        d.dtype = dtype_for(&r, d.kind);
        spec.ndim = d.kind == DMI_FILL_IDENTITY ? 2 : spec.ndim;
        int64_t longest = spec.ndim == 1 ? 5000 : spec.ndim == 2 ? 60 : 8;
        for (int k = 0; k < spec.ndim; k++) {
            spec.shape[k] = rng_in(&r, 0, 20) == 0 ? 0 : rng_in(&r, 1, longest);
            spec.grid[k] = (int)rng_in(&r, 1, 3);
            spec.order[k] = (int)rng_in(&r, 0, 1);
            spec.block[k] = rng_in(&r, 0, 3) == 0 ? 0 : rng_in(&r, 1, 12);
            workers *= spec.grid[k];
        }
        spec.session_workers = workers;
        check_layout(f, &r, &spec, &d);
    }
}

/* Whole arrays, dense or by columns, every kind and type. */
static void test_whole(void **state)
{
    fixture *f = begin_test(state);
    rng r = {32};
    for (int64_t round = 0; round < rounds(f, 3); round++) {
        for (int kind = 0; kind < DMI_FILL_KINDS; kind++) {
            for (int t = 0; t < (kind == DMI_FILL_NORMAL ? 4 : 7); t++) {
                dmi_fill d;
                int64_t shape[2] = {rng_in(&r, 1, 1200), rng_in(&r, 1, 1200)};
                whole_fill(kind, rng_in(&r, 0, 1) ? all_dtypes[t] : dtype_for(&r, kind), 2, shape, &d);
                if (round % 3 == 1) {
                    d.region.stride[0] = 1;
                    d.region.stride[1] = shape[0];
                }
                d.region.offset = round % 3 == 2 ? 3 : 0;
                check_fill(f, &r, &d, d.region.offset + shape[0] * shape[1]);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_regions),
        cmocka_unit_test(test_whole),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
