/* Kernels that follow indices: the GPU's against the CPU's. */
#include "cuda/cuda_case.h"
#include "kernels/kernel.h"

enum { MOST = 40 };

static void random_indices(rng *r, dmi_index *d, int64_t **out, int64_t *count)
{
    bool along = rng_in(r, 0, 1) == 0;
    *count = d->extent[d->dim];
    if (along) {
        *count = random_strides(r, d->ndim, d->extent, d->index_stride);
    } else {
        d->index_stride[d->dim] = 1;
    }
    int64_t *x = malloc((size_t)(*count + 1) * sizeof *x), few = rng_in(r, 0, 2) == 0 ? 3 : 2 * d->n;
    assert_non_null(x);
    for (int64_t i = 0; i < *count; i++) {
        x[i] = rng_in(r, d->mode == DMI_INDEX_RAISE ? -d->n : -few,
                      DMI_MIN(few, d->mode == DMI_INDEX_RAISE ? d->n - 1 : few));
    }
    d->index_dtype = DM_I64;
    *out = x;
}

static void check_case(fixture *f, rng *r, dm_dtype dtype, int kernel)
{
    dmi_index d = {.dtype = dtype, .mode = (int)rng_in(r, 0, 2), .ndim = (int)rng_in(r, 1, 4)};
    int64_t *indices, index_count, elem = width_of(dtype), lines_extent[DM_MAX_DIMS], positions = 1;
    d.dim = (int)rng_in(r, 0, d.ndim - 1);
    d.adds = kernel == DMI_KERNEL_put && rng_in(r, 0, 1) == 0;
    d.n = rng_in(r, 1, MOST);
    for (int k = 0; k < d.ndim; k++) {
        d.extent[k] = rng_in(r, 0, 9) == 0 ? 16 : rng_in(r, 1, d.ndim > 2 ? 7 : MOST);
        positions *= d.extent[k];
        lines_extent[k] = k == d.dim ? d.n : d.extent[k];
    }
    random_indices(r, &d, &indices, &index_count);
    d.set = dmi_dimset_interval(0, d.n);
    if (rng_in(r, 0, 1) == 0) { /* a part of the dim, perhaps cyclic */
        d.set = (dmi_dimset){.lo = 0, .hi = d.n, .block = rng_in(r, 1, 4), .g = (int)rng_in(r, 1, 3)};
        dmi_dimset_clip(&d.set, 0, d.n, &d.set);
    }
    int64_t box_count = random_strides(r, d.ndim, d.extent, d.box_stride);
    int64_t line_count = random_strides(r, d.ndim, lines_extent, d.line_stride);
    char *box = random_array(r, dtype, box_count), *lines = random_array(r, dtype, line_count);
    void *gpu_indices = upload(indices, index_count * 8), *gpu_box = upload(box, box_count * elem),
         *gpu_lines = upload(lines, line_count * elem);
    bool takes = kernel == DMI_KERNEL_take;
    dmi_kernel_call call = {.desc = &d, .at = {indices, takes ? lines : box, takes ? box : lines}};
    assert_int_equal(dmi_kernels[kernel].cpu(&call), DM_OK);
    call = (dmi_kernel_call){.queue = f->q,
                             .desc = &d,
                             .at = {gpu_indices, takes ? gpu_lines : gpu_box, takes ? gpu_box : gpu_lines}};
    assert_int_equal(dmi_backend_cuda()->run(kernel, &call), DM_OK);
    finish(f);
    int64_t n = takes ? box_count : line_count;
    char *got = download(takes ? gpu_box : gpu_lines, n * elem), *want = takes ? box : lines;
    dm_dtype part = part_of(dtype);
    for (int64_t i = 0; i < n * parts_in(dtype); i++) {
        if (!same_element(part, got + i * width_of(part), want + i * width_of(part))) {
            fail_msg("%s%s of %s, %d dims, dim %d, mode %d, %lld positions: element %lld differs",
                     dmi_kernels[kernel].name, d.adds ? " (adds)" : "", dmi_dtype_name(dtype), d.ndim, d.dim,
                     d.mode, (long long)positions, (long long)i);
        }
    }
    CUDA(cudaFree(gpu_indices));
    CUDA(cudaFree(gpu_box));
    CUDA(cudaFree(gpu_lines));
    free(got);
    free(indices);
    free(box);
    free(lines);
}

static void test_take_and_put(void **state)
{
    fixture *f = begin_test(state);
    rng r = {5};
    for (int64_t round = 0; round < rounds(f, 1500); round++) {
        check_case(f, &r, any_dtype(&r), round % 3 == 0 ? DMI_KERNEL_take : DMI_KERNEL_put);
    }
}

/* Counts, and the order by holders. */
static void test_holders(void **state)
{
    fixture *f = begin_test(state);
    rng r = {6};
    for (int64_t round = 0; round < rounds(f, 300); round++) {
        enum { G = 5, LONGEST = 5000 };
        static int64_t x[LONGEST], sorted[LONGEST], place[LONGEST], start[G], row[1 + G];
        int64_t n = rng_in(&r, 0, round % 10 == 0 ? LONGEST : 100), length = rng_in(&r, 1, 60);
        dmi_index_owner owner = {.n = length, .origin = rng_in(&r, 0, 3), .block = rng_in(&r, 1, 20), .g = G};
        dmi_index_sort sort = {.dtype = DM_I64, .owner = owner, .count = n, .stride = 1};
        dmi_index_count count = {.dtype = DM_I64, .first = true, .owner = owner, .shape = {n}};
        count.region = (dmi_region){.ndim = 1, .dim = {dmi_dimset_interval(0, n)}, .stride = {1}, .count = n};
        for (int64_t i = 0; i < n; i++) {
            x[i] = rng_in(&r, -length, length - 1);
        }
        void *gpu_x = upload(x, n * 8), *gpu_sorted = upload(sorted, n * 8), *gpu_place = upload(place, n * 8),
             *gpu_start = upload(start, sizeof start), *gpu_row = upload(row, sizeof row);
        dmi_kernel_call by_cpu = {.desc = &sort, .at = {x, sorted, place, start}};
        dmi_kernel_call by_gpu = {
            .queue = f->q, .desc = &sort, .at = {gpu_x, gpu_sorted, gpu_place, gpu_start}};
        assert_int_equal(dmi_index_sort_cpu(&by_cpu), DM_OK);
        assert_int_equal(dmi_backend_cuda()->run(DMI_KERNEL_index_sort, &by_gpu), DM_OK);
        finish(f);
        int64_t *got = download(gpu_sorted, n * 8), *got_place = download(gpu_place, n * 8);
        assert_memory_equal(got, sorted, (size_t)n * 8);
        assert_memory_equal(got_place, place, (size_t)n * 8);
        if (n > 0) { /* some outside */
            x[rng_in(&r, 0, n - 1)] = length;
            x[rng_in(&r, 0, n - 1)] = -length - 1;
        }
        void *gpu_bad = upload(x, n * 8);
        by_cpu = (dmi_kernel_call){.desc = &count, .at = {row, x}};
        by_gpu = (dmi_kernel_call){.queue = f->q, .desc = &count, .at = {gpu_row, gpu_bad}};
        assert_int_equal(dmi_index_count_cpu(&by_cpu), DM_OK);
        assert_int_equal(dmi_backend_cuda()->run(DMI_KERNEL_index_count, &by_gpu), DM_OK);
        finish(f);
        int64_t *got_row = download(gpu_row, sizeof row);
        assert_memory_equal(got_row, row, sizeof row);
        void *all[] = {gpu_x, gpu_sorted, gpu_place, gpu_start, gpu_row, gpu_bad};
        for (int i = 0; i < DMI_COUNT(all); i++) {
            CUDA(cudaFree(all[i]));
        }
        free(got);
        free(got_place);
        free(got_row);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_take_and_put),
        cmocka_unit_test(test_holders),
    };
    return cmocka_run_group_tests_name("index on CUDA", tests, set_up, tear_down);
}
