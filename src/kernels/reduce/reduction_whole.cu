/* Reductions other than the sum: the kernels of groups of integers, and of groups of any type for rows of logic. */
#include "kernels/reduce/reduction_items.cuh"

template <typename R, typename T> static void launch_groups(dmi_queue *q, const rows_of_memory *p, unsigned blocks, void *out)
{
    launch_items<R, several<R, T, 16 / (int)sizeof(T)>>(q, p, blocks, out);
}

void dmi_cuda_launch_rows_whole(dmi_queue *q, const rows_of_memory *p, unsigned blocks, void *out)
{
    with_row(p->acc, [&](auto tag) {
        typedef typename decltype(tag)::row R;
        const bool logic = same_type<typename R::number, unsigned char>::value;
        if constexpr (logic || same_type<typename R::number, int64_t>::value) {
            switch (p->base.dtype) {
            case DM_I64:
                launch_groups<R, int64_t>(q, p, blocks, out);
                return;
            case DM_I32:
                launch_groups<R, int32_t>(q, p, blocks, out);
                return;
            case DM_U8:
            case DM_BOOL:
                launch_groups<R, uint8_t>(q, p, blocks, out);
                return;
            default:;
            }
        }
        if constexpr (logic) {
            switch (p->base.dtype) {
            case DM_F64:
                launch_groups<R, double>(q, p, blocks, out);
                return;
            case DM_F32:
                launch_groups<R, float>(q, p, blocks, out);
                return;
            case DM_F16:
                launch_groups<R, f16>(q, p, blocks, out);
                return;
            case DM_BF16:
                launch_groups<R, bf16>(q, p, blocks, out);
                return;
            default:;
            }
        }
        assert(!"no groups of this type");
    });
}
