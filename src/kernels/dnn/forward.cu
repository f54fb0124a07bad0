/* Convolutions forward on Hopper GPUs, of 16 bits and without strides: products of the windows of x, which the
 * copy engine finds where they are, and the weights. A thread block has one warpgroup that loads, of which one
 * thread works, and two that multiply, each its half of a tile of y. Thread blocks stay, and load for the next
 * tile while they store one. */
#include "kernels/dnn/hopper.cuh"
#include "kernels/dnn/hopper_cuda.h"
#include "kernels/dnn/stored.cuh"

enum {
    WARP = 32, /* threads */
    WARPGROUP = 128,
    GROUPS = 2, /* that multiply */
    THREADS = (GROUPS + 1) * WARPGROUP,
    WARPS = GROUPS * WARPGROUP / WARP,
    PIXELS = DMI_FORWARD_PIXELS,
    ROW = 128, /* bytes of a row of a box: 64 channels */
    X_BYTES = PIXELS * ROW,
    STAGES = 4,
    ALIGN = 1024, /* of what is swizzled */
    STORE_BYTES = DMI_FORWARD_ROWS * ROW,
    STORE_BUFFERS = 2, /* of a warp */
    FEWER = 56,        /* registers of a thread that loads; MORE: that multiplies */
    MORE = 224
};

template <int N> struct shape {
    enum {
        STAGE = X_BYTES + N * ROW,
        STORE = WARPS * STORE_BUFFERS * STORE_BYTES,
        SHARED = ALIGN + STAGES * STAGE + STORE + 2 * 8 * STAGES
    };
};

/* --- products ----------------------------------------------------------------------------------------- */
#define PRODUCT_96(type)                                                                                       \
    asm volatile("{\n"                                                                                         \
                 ".reg .pred add;\n"                                                                           \
                 "setp.ne.b32 add, %50, 0;\n"                                                                  \
                 "wgmma.mma_async.sync.aligned.m64n96k16.f32." type "." type " "                               \
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                     \
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "            \
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47}, "           \
                 "%48, %49, add, 1, 1, 0, 0;\n"                                                                \
                 "}"                                                                                           \
                 : SUMS_24(d, 0), SUMS_24(d, 24)                                                               \
                 : "l"(a), "l"(b), "r"(add))
#define PRODUCT_128(type)                                                                                      \
    asm volatile("{\n"                                                                                         \
                 ".reg .pred add;\n"                                                                           \
                 "setp.ne.b32 add, %66, 0;\n"                                                                  \
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " "                              \
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                     \
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "            \
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "            \
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, "           \
                 "%64, %65, add, 1, 1, 0, 0;\n"                                                                \
                 "}"                                                                                           \
                 : SUMS_24(d, 0), SUMS_24(d, 24), SUMS_8(d, 48), SUMS_8(d, 56)                                 \
                 : "l"(a), "l"(b), "r"(add))

/* d = a b^T + (add ? d : 0), of 16 channels */
template <bool f16>
static __device__ __forceinline__ void multiply(float (&d)[48], uint64_t a, uint64_t b, uint32_t add)
{
    if (f16) {
        PRODUCT_96("f16");
    } else {
        PRODUCT_96("bf16");
    }
}
template <bool f16>
static __device__ __forceinline__ void multiply(float (&d)[64], uint64_t a, uint64_t b, uint32_t add)
{
    if (f16) {
        PRODUCT_128("f16");
    } else {
        PRODUCT_128("bf16");
    }
}

/* --- the kernel --------------------------------------------------------------------------------------- */
struct places {
    uint32_t stage, store, full, empty;
};

/* The ring of stages, as one side goes round it. */
struct ring {
    uint32_t at, parity;
    __device__ __forceinline__ void advance()
    {
        if (++at == STAGES) {
            at = 0;
            parity ^= 1;
        }
    }
};

template <int N, int WIDTH>
static __device__ __forceinline__ void load_tile(const dmi_forward_job &job, const places &s, int32_t pixel,
                                                 int32_t output, ring *r)
{
    const int32_t row = pixel / job.out[1], n = row / job.out[0], h = row - n * job.out[0] - job.pad[0],
                  w = pixel - row * job.out[1] - job.pad[1];
    int32_t chunk = 0, place = 0, right = 0, down = 0;
    for (int32_t step = 0; step < job.steps; step++) {
        const uint32_t to = s.stage + r->at * shape<N>::STAGE, full = s.full + 8 * r->at;
        barrier_wait(s.empty + 8 * r->at, r->parity);
        barrier_arrive_expecting(full, shape<N>::STAGE);
        load_window(&job.x, chunk * WIDTH, w, h, n, (uint16_t)(right * job.dilation[1]),
                    (uint16_t)(down * job.dilation[0]), to, full);
        load_box(&job.w, place * job.pitch + chunk * WIDTH, output, to + X_BYTES, full);
        if (++chunk == job.chunks) {
            chunk = 0;
            place++;
            if (++right == job.columns) {
                right = 0;
                down++;
            }
        }
        r->advance();
    }
}

/* All steps of a tile, into the warpgroup's 2 x 64 places. */
template <bool f16, int N, int WIDTH>
static __device__ __forceinline__ void multiply_tile(const dmi_forward_job &job, const places &s,
                                                     uint32_t group, ring *r, float (&d)[2][N / 2])
{
    const bool first = threadIdx.x % WARP == 0;
    uint32_t last = 0;
    for (int32_t step = 0; step < job.steps; step++) {
        const uint32_t stage = s.stage + r->at * shape<N>::STAGE;
        const uint64_t a = operand(stage + group * (X_BYTES / GROUPS), 0), b = operand(stage + X_BYTES, 0);
        barrier_wait(s.full + 8 * r->at, r->parity);
        products_begin();
#pragma unroll
        for (int i = 0; i < WIDTH / 16; i++) { /* 32 bytes of each row */
#pragma unroll
            for (int m = 0; m < 2; m++) {
                multiply<f16>(d[m], a + m * (64 * ROW >> 4) + i * 2, b + i * 2, step > 0 || i > 0);
            }
        }
        products_commit();
        if (step > 0) { /* the step before is read */
            products_wait<1>();
            if (first) {
                barrier_arrive(s.empty + 8 * last);
            }
        }
        last = r->at;
        r->advance();
    }
    products_wait<0>();
    if (first) {
        barrier_arrive(s.empty + 8 * last);
    }
#pragma unroll
    for (int m = 0; m < 2; m++) {
#pragma unroll
        for (int i = 0; i < N / 2; i++) {
            asm volatile("" : "+f"(d[m][i])::"memory");
        }
    }
}

template <bool f16> static __device__ __forceinline__ uint32_t rounded_pair(float x, float y)
{
    uint32_t bits;
    if (f16) {
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(y), "f"(x));
    } else {
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(bits) : "f"(y), "f"(x));
    }
    return bits;
}

/* Adds the bias. A thread holds, of each 8 outputs, two of row (warp lane) / 4 and two of the row 8 below. */
template <int N>
static __device__ __forceinline__ void add_bias(const dmi_forward_job &job, float (&d)[2][N / 2],
                                                int32_t output)
{
#pragma unroll
    for (int i = 0; i < N / 8; i++) {
        const int32_t c = output + i * 8 + (int32_t)(threadIdx.x % 4) * 2;
        const bool has = job.bias != NULL && c < job.outputs;
        const float bias[2] = {has ? job.bias[c] : 0, has ? job.bias[c + 1] : 0};
#pragma unroll
        for (int k = 0; k < 8; k++) {
            float *v = &d[k / 4][i * 4 + k % 4];
            *v += bias[k % 2];
            *v = job.relu && *v < 0 ? 0 : *v;
        }
    }
}

/* The warp's 2 x 16 rows of the tile, in boxes of up to 64 outputs: written to one of its two buffers, then
 * stored from there. */
template <bool f16, int N>
static __device__ __forceinline__ void store_tile(const dmi_forward_job &job, const float (&d)[2][N / 2],
                                                  uint32_t buffer, int32_t pixel, int32_t output)
{
    enum { EIGHTS = N / 8, IN_BOX = 8, BOXES = (EIGHTS + IN_BOX - 1) / IN_BOX };
    const uint32_t lane = threadIdx.x % WARP, row = lane % 16;
#pragma unroll
    for (int box = 0; box < 2 * BOXES; box++) {
        const int m = box / BOXES, first = box % BOXES * IN_BOX;
        const uint32_t at = buffer + (uint32_t)(box % STORE_BUFFERS) * STORE_BYTES;
        if (lane == 0) {
            stores_have_read<STORE_BUFFERS - 1>();
        }
        __syncwarp();
#pragma unroll
        for (int i = first; i < first + IN_BOX && i < EIGHTS; i += 2) {
            const float *v = &d[m][i * 4];
            const uint32_t unit = (uint32_t)(i - first) + lane / 16;
            const uint32_t pairs[4] = {rounded_pair<f16>(v[0], v[1]), rounded_pair<f16>(v[2], v[3]),
                                       rounded_pair<f16>(v[4], v[5]), rounded_pair<f16>(v[6], v[7])};
            store_matrices(at + row * ROW + (unit ^ row % 8) * 16, pairs);
        }
        fence_async_shared();
        __syncwarp();
        if (lane == 0) {
            store_box(&job.y, output + first * 8, pixel + m * 64, at);
            stores_commit();
        }
    }
}

template <bool f16, int N, int WIDTH>
static __global__ void __launch_bounds__(THREADS, 1)
    forward_products(const __grid_constant__ dmi_forward_job job)
{
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    extern __shared__ unsigned char memory[];
    places s;
    s.stage = (shared_address(memory) + ALIGN - 1) / ALIGN * ALIGN;
    s.store = s.stage + STAGES * shape<N>::STAGE;
    s.full = s.store + shape<N>::STORE;
    s.empty = s.full + 8 * STAGES;
    if (threadIdx.x == 0) {
        for (uint32_t i = 0; i < STAGES; i++) {
            barrier_init(s.full + 8 * i, 1);
            barrier_init(s.empty + 8 * i, WARPS);
        }
        barriers_ready();
    }
    after_previous();
    __syncthreads();
    if (threadIdx.x < WARPGROUP) {
        registers_fewer<FEWER>();
        ring r = {0, 1}; /* the first round waits for nothing */
        for (int32_t tile = (int32_t)blockIdx.x; threadIdx.x == 0 && tile < job.tiles;
             tile += (int32_t)gridDim.x) {
            load_tile<N, WIDTH>(job, s, tile / job.across * PIXELS, tile % job.across * N, &r);
        }
    } else {
        registers_more<MORE>();
        const uint32_t warp = threadIdx.x / WARP - WARPGROUP / WARP, group = warp / (WARPGROUP / WARP);
        const uint32_t buffer = s.store + warp * (STORE_BUFFERS * STORE_BYTES);
        const int32_t row = (int32_t)(group * (PIXELS / GROUPS) + warp % (WARPGROUP / WARP) * DMI_FORWARD_ROWS);
        float d[2][N / 2];
        ring r = {0, 0};
        for (int32_t tile = (int32_t)blockIdx.x; tile < job.tiles; tile += (int32_t)gridDim.x) {
            const int32_t output = tile % job.across * N;
            multiply_tile<f16, N, WIDTH>(job, s, group, &r, d);
            add_bias<N>(job, d, output);
            store_tile<f16, N>(job, d, buffer, tile / job.across * PIXELS + row, output);
        }
        if (threadIdx.x % WARP == 0) {
            stores_have_read<0>(); /* the end of the kernel waits for the rest */
        }
    }
#else
    __trap();
#endif
}

template <bool f16, int N, int WIDTH> static void launch(dmi_queue *q, const dmi_forward_job *job)
{
    auto kernel = forward_products<f16, N, WIDTH>;
    cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shape<N>::SHARED);
    if (e != cudaSuccess) {
        dmi_cuda_failed(q, "cudaFuncSetAttribute", (int)e, cudaGetErrorString(e));
        return;
    }
    kernel<<<(unsigned)(job->tiles < job->blocks ? job->tiles : job->blocks), THREADS, shape<N>::SHARED,
             stream_of(q)>>>(*job);
    dmi_cuda_launched(q, "convolution");
}

template <bool f16> static void launch_form(dmi_queue *q, const dmi_forward_job *job)
{
    if (job->wide == 96) {
        (job->width == 48 ? launch<f16, 96, 48> : launch<f16, 96, 64>)(q, job);
    } else {
        (job->width == 48 ? launch<f16, 128, 48> : launch<f16, 128, 64>)(q, job);
    }
}

void dmi_cuda_launch_forward(dmi_queue *q, const dmi_forward_job *job, dm_dtype dtype)
{
    (dtype == DM_F16 ? launch_form<true> : launch_form<false>)(q, job);
}
