/* Gradients of convolutions by the weights on Hopper GPUs, of 16 bits and without strides: products of dy,
 * turned, and the windows of x, which the copy engine finds where they are, also of groups that lie beside one
 * another. A thread block has a tile of outputs by places and channels of the window, and a range of the pixels
 * of y. It stays in registers; another kernel adds the ranges up. */
#include "kernels/dnn/hopper.cuh"
#include "kernels/dnn/hopper_cuda.h"
#include "kernels/dnn/stored.cuh"

#include <type_traits>

enum {
    WARPGROUP = 128, /* threads */
    STEP = DMI_WEIGHTS_STEP,
    DEEP = DMI_WEIGHTS_BOX,
    BOX = STEP * DEEP * 2, /* bytes */
    STAGES = 4,
    ALIGN = 1024 /* of what is swizzled */
};

/* How much a thread block has: M warpgroups that multiply, of 64 outputs each; N units of WIDTH channels. */
template <int M, int N, int WIDTH> struct shape {
    enum {
        THREADS = (M + 1) * WARPGROUP,
        MULTIPLIERS = M * WARPGROUP,
        REGISTERS = N * WIDTH / 2, /* of sums, of a thread */
        PART = MULTIPLIERS * REGISTERS,
        STAGE = (M + N) * BOX,
        SHARED = ALIGN + STAGES * STAGE + 2 * 8 * STAGES,
        FEWER = M == 3 ? 32 : 56,
        MORE = M == 3 ? 152 : 224
    };
};

/* --- products ----------------------------------------------------------------------------------------- */
#define PRODUCT_48(type)                                                                                       \
    asm volatile("{\n"                                                                                         \
                 ".reg .pred add;\n"                                                                           \
                 "setp.ne.b32 add, %26, 0;\n"                                                                  \
                 "wgmma.mma_async.sync.aligned.m64n48k16.f32." type "." type " "                               \
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                     \
                 "%16, %17, %18, %19, %20, %21, %22, %23}, %24, %25, add, 1, 1, 1, 1;\n"                       \
                 "}"                                                                                           \
                 : SUMS_24(d, 0)                                                                               \
                 : "l"(a), "l"(b), "r"(add))
#define PRODUCT_192(type)                                                                                      \
    asm volatile("{\n"                                                                                         \
                 ".reg .pred add;\n"                                                                           \
                 "setp.ne.b32 add, %98, 0;\n"                                                                  \
                 "wgmma.mma_async.sync.aligned.m64n192k16.f32." type "." type " "                              \
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                     \
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "            \
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "            \
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "            \
                 "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "            \
                 "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95}, "           \
                 "%96, %97, add, 1, 1, 1, 1;\n"                                                                \
                 "}"                                                                                           \
                 : SUMS_24(d, 0), SUMS_24(d, 24), SUMS_24(d, 48), SUMS_24(d, 72)                               \
                 : "l"(a), "l"(b), "r"(add))

/* d = a^T b + (add ? d : 0), of 16 pixels */
template <bool f16>
static __device__ __forceinline__ void multiply(float (&d)[24], uint64_t a, uint64_t b, uint32_t add)
{
    if (f16) {
        PRODUCT_48("f16");
    } else {
        PRODUCT_48("bf16");
    }
}
template <bool f16>
static __device__ __forceinline__ void multiply(float (&d)[96], uint64_t a, uint64_t b, uint32_t add)
{
    if (f16) {
        PRODUCT_192("f16");
    } else {
        PRODUCT_192("bf16");
    }
}
template <bool f16>
static __device__ __forceinline__ void multiply(float (&d)[128], uint64_t a, uint64_t b, uint32_t add)
{
    product<f16, 1, 1>(d, a, b, add);
}

/* --- the kernel --------------------------------------------------------------------------------------- */
struct weights_places {
    uint32_t stage, full, empty;
};

/* What a thread block does: steps begin .. end of a tile. */
struct weights_work {
    int32_t tile, group, output, unit, begin, end; /* output, unit: the tile's first */
};

template <int M, int N> static __device__ __forceinline__ weights_work work_of(const dmi_weights_job &job)
{
    weights_work w;
    const int32_t range = (int32_t)blockIdx.x / job.tiles, ranges = (int32_t)gridDim.x / job.tiles;
    w.tile = (int32_t)blockIdx.x - range * job.tiles;
    w.group = w.tile / (job.across * job.down);
    const int32_t at = w.tile - w.group * job.across * job.down;
    w.output = at / job.across * M * DEEP;
    w.unit = at % job.across * N;
    w.begin = (int32_t)((int64_t)job.steps * range / ranges);
    w.end = (int32_t)((int64_t)job.steps * (range + 1) / ranges);
    return w;
}

template <int M, int N, int WIDTH>
static __device__ __forceinline__ void load_steps(const dmi_weights_job &job, const weights_work &work,
                                                  const weights_places &s)
{
    const CUtensorMap *dy = &job.dy[work.group], *x = &job.x[work.group];
    const int32_t count = min(N, job.units - work.unit);
    int32_t channel[N];
    uint16_t right[N], down[N];
    uint32_t at = 0, parity = 1; /* the first round waits for nothing */
#pragma unroll
    for (int u = 0; u < N; u++) {
        const int32_t place = (work.unit + u) / job.chunks, row = place / job.columns;
        channel[u] = (work.unit + u - place * job.chunks) * WIDTH;
        right[u] = (uint16_t)((place - row * job.columns) * job.dilation[1]);
        down[u] = (uint16_t)(row * job.dilation[0]);
    }
    for (int32_t step = work.begin; step < work.end; step++) {
        const int32_t pixel = step * STEP, row = pixel / job.out[1], n = row / job.out[0],
                      h = row - n * job.out[0] - job.pad[0], w = pixel - row * job.out[1] - job.pad[1];
        uint32_t to = s.stage + at * shape<M, N, WIDTH>::STAGE, full = s.full + 8 * at;
        barrier_wait(s.empty + 8 * at, parity);
        barrier_arrive_expecting(full, (uint32_t)(M + count) * BOX);
#pragma unroll
        for (int m = 0; m < M; m++) {
            load_box(dy, work.output + m * DEEP, pixel, to + m * BOX, full);
        }
#pragma unroll
        for (int u = 0; u < N; u++) {
            if (u < count) {
                load_window(x, channel[u], w, h, n, right[u], down[u], to + (M + u) * BOX, full);
            }
        }
        if (++at == STAGES) {
            at = 0;
            parity ^= 1;
        }
    }
}

/* All products of a stage, into the warpgroup's 64 outputs. COUNT: products side by side; units of 64 channels
 * are one. */
template <bool f16, int M, int COUNT, int SIZE>
static __device__ __forceinline__ void multiply_stage(uint32_t stage, uint32_t group, float (&d)[COUNT][SIZE],
                                                      bool add)
{
    const uint64_t a = operand(stage + group * BOX, BOX), b = operand(stage + M * BOX, BOX);
    const uint64_t next = 16 * DEEP * 2 >> 4, unit = BOX >> 4;
#pragma unroll
    for (int i = 0; i < STEP / 16; i++) {
#pragma unroll
        for (int u = 0; u < COUNT; u++) {
            multiply<f16>(d[u], a + i * next, b + u * unit + i * next, add || i > 0);
        }
    }
}

template <bool f16, int M, int N, int WIDTH>
static __global__ void __launch_bounds__(shape<M, N, WIDTH>::THREADS, 1)
    weights_products(const __grid_constant__ dmi_weights_job job)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    typedef shape<M, N, WIDTH> S;
    enum { COUNT = WIDTH == DEEP ? 1 : N, SIZE = S::REGISTERS / COUNT };
    extern __shared__ unsigned char memory[];
    weights_places s;
    s.stage = (shared_address(memory) + ALIGN - 1) / ALIGN * ALIGN;
    s.full = s.stage + STAGES * S::STAGE;
    s.empty = s.full + 8 * STAGES;
    if (threadIdx.x == 0) {
        for (uint32_t i = 0; i < STAGES; i++) {
            barrier_init(s.full + 8 * i, 1);
            barrier_init(s.empty + 8 * i, S::MULTIPLIERS / 32);
        }
        barriers_ready();
    }
    after_previous();
    __syncthreads();
    const weights_work work = work_of<M, N>(job);
    if (threadIdx.x < WARPGROUP) {
        registers_fewer<S::FEWER>();
        if (threadIdx.x == 0) {
            load_steps<M, N, WIDTH>(job, work, s);
        }
    } else {
        registers_more<S::MORE>();
        const uint32_t t = threadIdx.x - WARPGROUP;
        float d[COUNT][SIZE];
        uint32_t at = 0, last = 0, parity = 0;
        for (int32_t step = work.begin; step < work.end; step++) {
            barrier_wait(s.full + 8 * at, parity);
            products_begin();
            multiply_stage<f16, M>(s.stage + at * S::STAGE, t / WARPGROUP, d, step > work.begin);
            products_commit();
            if (step > work.begin) { /* the step before is read */
                products_wait<1>();
                if (t % 32 == 0) {
                    barrier_arrive(s.empty + 8 * last);
                }
            }
            last = at;
            if (++at == STAGES) {
                at = 0;
                parity ^= 1;
            }
        }
        products_wait<0>();
        float4 *to = (float4 *)(job.parts + (int64_t)blockIdx.x * S::PART) + t;
#pragma unroll
        for (int u = 0; u < COUNT; u++) {
#pragma unroll
            for (int i = 0; i < SIZE; i++) {
                asm volatile("" : "+f"(d[u][i])::"memory");
            }
#pragma unroll
            for (int i = 0; i < SIZE; i += 4) {
                to[(u * SIZE + i) / 4 * S::MULTIPLIERS] =
                    make_float4(d[u][i], d[u][i + 1], d[u][i + 2], d[u][i + 3]);
            }
        }
    }
#else
    __trap();
#endif
}

/* The sums of the ranges, to the weights. An item: four sums of a thread that made them. */
struct sums_params {
    const float *parts;
    void *w;
    int32_t items, ranges, tiles, across, down, units, chunks, outputs, channels, places;
};

template <typename T, int M, int N, int WIDTH>
static __global__ void __launch_bounds__(DMI_CUDA_THREADS) add_ranges(const sums_params p)
{
    enum { MULTIPLIERS = shape<M, N, WIDTH>::MULTIPLIERS, PART = shape<M, N, WIDTH>::PART / 4 };
    after_previous();
    const int32_t item = (int32_t)(blockIdx.x * DMI_CUDA_THREADS + threadIdx.x), tile = item / PART,
                  own = item - tile * PART;
    if (item >= p.items) {
        return;
    }
    float4 sum = make_float4(0, 0, 0, 0);
    for (int32_t r = 0; r < p.ranges; r++) {
        const float4 part = ((const float4 *)p.parts)[((int64_t)r * p.tiles + tile) * PART + own];
        sum.x += part.x;
        sum.y += part.y;
        sum.z += part.z;
        sum.w += part.w;
    }
    const int32_t t = own % MULTIPLIERS, i = own / MULTIPLIERS, of = tile / (p.across * p.down),
                  at = tile - of * p.across * p.down, unit = at % p.across * N + i / (WIDTH / 8),
                  place = unit / p.chunks,
                  c = (unit - place * p.chunks) * WIDTH + i % (WIDTH / 8) * 8 + t % 4 * 2,
                  output = at / p.across * M * DEEP + t / 32 * 16 + t % 32 / 4;
    const int64_t pitch = (int64_t)p.places * p.channels;
    T *to = (T *)p.w + ((int64_t)of * p.outputs + output) * pitch + (int64_t)place * p.channels + c;
    if (unit < p.units && output < p.outputs) {
        *(group<T, 2> *)to = {closed<T>(sum.x), closed<T>(sum.y)};
    }
    if (unit < p.units && output + 8 < p.outputs) {
        *(group<T, 2> *)(to + 8 * pitch) = {closed<T>(sum.z), closed<T>(sum.w)};
    }
}

/* --- launchers ---------------------------------------------------------------------------------------- */
bool dmi_cuda_hopper_built(void)
{
#ifdef DMATH_CUDA_SM90A
    return true;
#else
    return false;
#endif
}

template <typename T, int M, int N, int WIDTH> static void launch(dmi_queue *q, const dmi_weights_job *job)
{
    typedef shape<M, N, WIDTH> S;
    auto kernel = weights_products<std::is_same<T, f16>::value, M, N, WIDTH>;
    sums_params p = {};
    p.parts = job->parts;
    p.w = job->w;
    p.items = job->tiles * (S::PART / 4);
    p.ranges = job->ranges;
    p.tiles = job->tiles;
    p.across = job->across;
    p.down = job->down;
    p.units = job->units;
    p.chunks = job->chunks;
    p.outputs = job->outputs;
    p.channels = job->channels;
    p.places = job->places;
    cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::SHARED);
    if (e != cudaSuccess) {
        dmi_cuda_failed(q, "cudaFuncSetAttribute", (int)e, cudaGetErrorString(e));
        return;
    }
    kernel<<<(unsigned)(job->tiles * job->ranges), S::THREADS, S::SHARED, stream_of(q)>>>(*job);
    dmi_cuda_launched(q, "gradient by the weights");
    launch_after(q, add_ranges<T, M, N, WIDTH>, dim3(blocks_for(p.items, DMI_CUDA_THREADS)), p);
    dmi_cuda_launched(q, "sums of a gradient by the weights");
}

template <typename T> static void launch_form(dmi_queue *q, const dmi_weights_job *job)
{
    static void (*const form[])(dmi_queue *, const dmi_weights_job *) = {
        launch<T, 3, 3, 64>, launch<T, 2, 4, 64>, launch<T, 2, 5, 48>};
    static_assert(sizeof form / sizeof *form == DMI_WEIGHTS_FORMS, "as in dmi_weights_forms");
    form[job->form](q, job);
}

void dmi_cuda_launch_weights(dmi_queue *q, const dmi_weights_job *job, dm_dtype dtype)
{
    (dtype == DM_F16 ? launch_form<f16> : launch_form<bf16>)(q, job);
}
