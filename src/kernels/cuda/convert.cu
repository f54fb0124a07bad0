/* Conversions of dense, aligned rows: a kernel for every pair of types. */
#include "kernels/cuda/convert.cuh"

enum { THREADS = DMI_CUDA_THREADS, DEPTH = 4 };

template <typename From, typename To>
static __global__ void __launch_bounds__(THREADS)
    convert_groups(const __grid_constant__ dmi_cuda_box box, const From *__restrict__ src, To *__restrict__ dst)
{
    const int N = 16 / (sizeof(From) > sizeof(To) ? sizeof(From) : sizeof(To));
    uint32_t step = gridDim.x * (THREADS * DEPTH);
    for (uint32_t first = blockIdx.x * (THREADS * DEPTH) + threadIdx.x; first < box.items; first += step) {
        group<From, N> v[DEPTH];
        int64_t to[DEPTH];
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            uint32_t i = first + k * THREADS;
            if (i < box.items) {
                int64_t at[2];
                locate<2>(box, i, at);
                v[k] = *(const group<From, N> *)(src + at[0]);
                to[k] = at[1];
            }
        }
#pragma unroll
        for (int k = 0; k < DEPTH; k++) {
            if (first + k * THREADS < box.items) {
                group<To, N> w;
#pragma unroll
                for (int e = 0; e < N; e++) {
                    w.v[e] = converted<To>(v[k].v[e]);
                }
                *(group<To, N> *)(dst + to[k]) = w;
            }
        }
    }
}

template <typename From, typename To>
static void launch(dmi_queue *q, const dmi_cuda_box *box, const void *src, void *dst)
{
    unsigned blocks = blocks_for(q, box->items, THREADS * DEPTH);
    convert_groups<From, To><<<blocks, THREADS, 0, stream_of(q)>>>(*box, (const From *)src, (To *)dst);
}

typedef void launch_fn(dmi_queue *q, const dmi_cuda_box *box, const void *src, void *dst);

/* Pairs of one type are there for the table's regularity and never called. */
template <typename From> static launch_fn *launcher_from(dm_dtype to)
{
    static launch_fn *const table[8] = {0,
                                        launch<From, double>,
                                        launch<From, float>,
                                        launch<From, f16>,
                                        launch<From, bf16>,
                                        launch<From, int64_t>,
                                        launch<From, int32_t>,
                                        launch<From, uint8_t>};
    return table[to];
}

void dmi_cuda_launch_convert_groups(dmi_queue *q, dm_dtype from, dm_dtype to, const dmi_cuda_box *box,
                                    const void *src, void *dst)
{
    launch_fn *fn = NULL;
#define CALL(type) fn = launcher_from<type>(to)
    DMI_CUDA_BY_TYPE(from, CALL)
#undef CALL
    fn(q, box, src, dst);
    dmi_cuda_launched(q, "conversion");
}
