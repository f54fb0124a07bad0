/* Reductions other than the sum: the kernels of single elements, and of groups of floats. */
#include "kernels/reduce/reduction_items.cuh"

template <typename R>
static __global__ void __launch_bounds__(THREADS)
    join(const __grid_constant__ dmi_cuda_rows p, int64_t parts, uint32_t team, const typename R::state *__restrict__ in,
         void *out)
{
    const int DEPTH = 8;
    const uint32_t teams = THREADS / team, lane = threadIdx.x % team;
    const int64_t results = p.base.results;
    for (int64_t base = (int64_t)blockIdx.x * teams; base < results; base += (int64_t)gridDim.x * teams) {
        int64_t result = base + threadIdx.x / team;
        typename R::state s = R::start();
        for (int64_t part = lane; result < results && part < parts; part += DEPTH * team) {
            typename R::state v[DEPTH];
#pragma unroll
            for (int k = 0; k < DEPTH; k++) { /* all on their way at once */
                v[k] = part + k * team < parts ? in[(part + k * team) * results + result] : R::start();
            }
#pragma unroll
            for (int k = 0; k < DEPTH; k++) {
                if (part + k * team < parts) {
                    R::combine(s, v[k]);
                }
            }
        }
        s = team_state<R>(s, (int)team);
        if (result < results && lane == 0) {
            put_state<R>(p, p.last, out, 0, result, s);
        }
    }
}

/* What no elements give: of narrow types the largest or smallest there is, to which a double saturates; of bool 1 or 0. */
template <typename R>
static __global__ void __launch_bounds__(THREADS) start(dm_dtype number, int64_t results, void *out)
{
    for (int64_t i = (int64_t)blockIdx.x * THREADS + threadIdx.x; i < results; i += (int64_t)gridDim.x * THREADS) {
        if constexpr (R::kind == KIND_VALUE) {
            double v = (double)R::start().v;
            put(number, out, i, number == DM_BOOL ? (double)(v > 0) : v);
        } else {
            write_acc<R>(number, out, i, R::start());
        }
    }
}

/* --- launchers ------------------------------------------------------------------------- */
void dmi_cuda_launch_rows(dmi_queue *q, const dmi_cuda_rows *p, const void *in, void *out)
{
    unsigned blocks = dmi_cuda_reduce_blocks(&p->base);
    rows_of_memory with;
    memcpy(static_cast<dmi_cuda_rows *>(&with), p, sizeof *p);
    with.in = in;
    with_row(p->acc, [&](auto tag) {
        typedef typename decltype(tag)::row R;
        if (p->base.group == 1) {
            launch_items<R, single<R>>(q, &with, blocks, out);
        } else if constexpr (same_type<typename R::number, double>::value) {
            typedef typename narrow_row<R>::row F;
            switch (p->base.dtype) {
            case DM_F64:
                launch_items<R, several<R, double, 2>>(q, &with, blocks, out);
                break;
            case DM_F32:
                launch_items<F, several<F, float, 4>>(q, &with, blocks, out);
                break;
            case DM_F16:
                launch_items<F, several<F, f16, 8>>(q, &with, blocks, out);
                break;
            case DM_BF16:
                launch_items<F, several<F, bf16, 8>>(q, &with, blocks, out);
                break;
            default:
                assert(!"no groups of this type");
            }
        } else {
            dmi_cuda_launch_rows_whole(q, &with, blocks, out);
        }
    });
    dmi_cuda_launched(q, "reduction");
}

void dmi_cuda_launch_rows_join(dmi_queue *q, const dmi_cuda_rows *p, int64_t parts, const void *in, void *out)
{
    int64_t results = p->base.results;
    uint32_t team = results >= 4096 || parts < WARP ? 1 : results == 1 ? THREADS : WARP;
    unsigned blocks = blocks_for(results, THREADS / team);
    with_row(p->acc, [&](auto tag) {
        typedef typename decltype(tag)::row R;
        if constexpr (narrow_row<R>::narrows) {
            typedef typename narrow_row<R>::row F;
            if (p->narrow) {
                join<F><<<blocks, THREADS, 0, stream_of(q)>>>(*p, parts, team, (const typename F::state *)in, out);
                return;
            }
        }
        join<R><<<blocks, THREADS, 0, stream_of(q)>>>(*p, parts, team, (const typename R::state *)in, out);
    });
    dmi_cuda_launched(q, "reduction of parts");
}

void dmi_cuda_launch_rows_start(dmi_queue *q, int acc, int64_t results, void *out)
{
    with_row(acc, [&](auto tag) {
        typedef typename decltype(tag)::row R;
        unsigned blocks = DMI_MIN(blocks_for(results, THREADS), MOST_BLOCKS);
        start<R><<<blocks, THREADS, 0, stream_of(q)>>>(dmi_acc_number(acc), results, out);
    });
    dmi_cuda_launched(q, "start of a reduction");
}
