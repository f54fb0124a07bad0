/* Conversions of dense, aligned rows: a kernel for every pair of types. */
#include "kernels/cuda/dtypes.cuh"

enum { THREADS = DMI_CUDA_THREADS, DEPTH = 2 };

template <typename From, typename To>
static __global__ void __launch_bounds__(THREADS)
    convert_groups(const __grid_constant__ dmi_cuda_box box, const From *__restrict__ src, To *__restrict__ dst)
{
    const int N = 16 / (sizeof(From) > sizeof(To) ? sizeof(From) : sizeof(To));
    int64_t at[DEPTH][2];
    bool valid[DEPTH];
    group<From, N> v[DEPTH];
    locate_all<2, DEPTH>(box, at, valid);
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        if (valid[k]) {
            v[k] = *(const group<From, N> *)(src + at[k][0]);
        }
    }
#pragma unroll
    for (int k = 0; k < DEPTH; k++) {
        if (valid[k]) {
            group<To, N> w;
#pragma unroll
            for (int e = 0; e < N; e++) {
                w.v[e] = converted<To>(v[k].v[e]);
            }
            *(group<To, N> *)(dst + at[k][1]) = w;
        }
    }
}

template <typename From, typename To>
static void launch(dmi_queue *q, const dmi_cuda_box *box, const void *src, void *dst)
{
    dmi_cuda_box b = *box;
    unsigned blocks = blocks_for(&b, DEPTH);
    convert_groups<From, To><<<blocks, THREADS, 0, stream_of(q)>>>(b, (const From *)src, (To *)dst);
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
