// The ranks of cublasmp_gemm.cu, their matrices, and the check of a product.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <cublas_v2.h>
#include <cublasmp.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#include <nccl.h>
#include <unistd.h>

// Of libnvshmem_host, which cuBLASMp brings with it: its headers are not needed for these two.
extern "C" {
void *nvshmem_malloc(size_t);
void nvshmem_free(void *);
}

static const int PICKED = 64;

struct Job {
    int rank = 0, ranks = 1, samples = 20;
    cudaStream_t stream = nullptr;
    cublasMpHandle_t mp = nullptr;
    ncclComm_t nccl = nullptr;
    cublasMpGrid_t wide = nullptr, tall = nullptr; // 1 x P, P x 1
};

[[noreturn]] static void stop(const char *what, const char *why)
{
    fprintf(stderr, "cublasmp_gemm: %s: %s\n", what, why);
    MPI_Abort(MPI_COMM_WORLD, 1);
    _exit(1);
}
static void check(cudaError_t e, const char *what)
{
    if (e != cudaSuccess)
        stop(what, cudaGetErrorString(e));
}

// ---- elements, functions of their global place: any rank can check any entry
__host__ __device__ static float element(uint64_t seed, int64_t i, int64_t j)
{
    uint64_t x = (uint64_t)i * 0x9e3779b97f4a7c15ull + (uint64_t)j * 0xc2b2ae3d27d4eb4full + seed;
    x = (x ^ (x >> 29)) * 0xbf58476d1ce4e5b9ull;
    return (float)(int32_t)(x >> 32) * 0x1p-31f;
}

struct Place { // of a rank's part of a matrix, in one block
    int64_t rows, cols, row, col;
};

template <class T> __global__ void fill(T *at, Place p, uint64_t seed)
{
    for (int64_t e = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; e < p.rows * p.cols;
         e += (int64_t)gridDim.x * blockDim.x) {
        at[e] = (T)element(seed, p.row + e % p.rows, p.col + e / p.rows);
    }
}

// A block of threads an entry: what is there less the sum in double.
template <class T> __global__ void differences(const T *c, Place p, int64_t k, bool transposed, double *out)
{
    __shared__ double part[256];
    uint64_t h = (blockIdx.x + 1) * 0x9e3779b97f4a7c15ull;
    int64_t li = (int64_t)((h >> 33) % (uint64_t)p.rows), lj = (int64_t)((h & 0x7fffffff) % (uint64_t)p.cols);
    int64_t i = p.row + li, j = p.col + lj;
    double sum = 0;
    for (int64_t l = threadIdx.x; l < k; l += blockDim.x) {
        T a = (T)(transposed ? element(1, l, i) : element(1, i, l)), b = (T)element(2, l, j);
        sum += (double)(float)a * (double)(float)b;
    }
    part[threadIdx.x] = sum;
    __syncthreads();
    for (int w = 128; w > 0; w /= 2) {
        if (threadIdx.x < w)
            part[threadIdx.x] += part[threadIdx.x + w];
        __syncthreads();
    }
    if (threadIdx.x == 0)
        out[blockIdx.x] = (double)c[li + lj * p.rows] - part[0];
}

template <class T> struct Of;
template <> struct Of<__nv_bfloat16> {
    typedef float Scale;
    static const cudaDataType_t type = CUDA_R_16BF;
    static const cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
    static constexpr double tolerance = 3e-2;
};
template <> struct Of<__half> {
    typedef float Scale;
    static const cudaDataType_t type = CUDA_R_16F;
    static const cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
    static constexpr double tolerance = 4e-3;
};
template <> struct Of<float> {
    typedef float Scale;
    static const cudaDataType_t type = CUDA_R_32F;
    static const cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
    static constexpr double tolerance = 1e-4;
};
template <> struct Of<double> {
    typedef double Scale;
    static const cudaDataType_t type = CUDA_R_64F;
    static const cublasComputeType_t compute = CUBLAS_COMPUTE_64F;
    static constexpr double tolerance = 1e-12;
};

// ---- what is spread
struct Memory { // from the symmetric heap where cuBLASMp's overlap asks for it: all ranks then ask alike
    void *at = nullptr;
    bool symmetric;
    Memory(size_t bytes, bool heap) : symmetric(heap)
    {
        bytes = std::max<size_t>(bytes, 256);
        if (heap)
            at = nvshmem_malloc(bytes);
        else if (cudaMalloc(&at, bytes) != cudaSuccess)
            at = nullptr;
        if (!at)
            stop("memory", "not enough");
    }
    ~Memory()
    {
        if (symmetric)
            nvshmem_free(at);
        else
            cudaFree(at);
    }
    Memory(const Memory &) = delete;
};

// n x n, split along rows or columns. To cuBLASMp it is made of square blocks, for it wants those along k alike in
// both operands; a rank's lie in memory as one matrix all the same.
template <class T> struct Matrix {
    Place place;
    Memory memory;
    cublasMpMatrixDescriptor_t layout = nullptr;
    Matrix(const Job &j, int64_t n, bool by_cols, uint64_t seed, bool symmetric)
        : place(by_cols ? Place{n, n / j.ranks, 0, n / j.ranks * j.rank}
                        : Place{n / j.ranks, n, n / j.ranks * j.rank, 0}),
          memory((size_t)(place.rows * place.cols) * sizeof(T), symmetric)
    {
        fill<T><<<1024, 256, 0, j.stream>>>((T *)memory.at, place, seed);
        check(cudaGetLastError(), "fill");
        if (cublasMpMatrixDescriptorCreate(n, n, n / j.ranks, n / j.ranks, 0, 0, place.rows, Of<T>::type,
                                           by_cols ? j.wide : j.tall, &layout) != CUBLASMP_STATUS_SUCCESS)
            stop("cublasMpMatrixDescriptorCreate", "failed");
    }
    ~Matrix()
    {
        cublasMpMatrixDescriptorDestroy(layout);
    }
};

static double slowest(double t)
{
    double all;
    MPI_Allreduce(&t, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
}

template <class T> static double error_of(const Job &j, const Matrix<T> &c, int64_t n, bool transposed)
{
    double host[PICKED], worst = 0;
    Memory out(sizeof host, false);
    differences<T>
        <<<PICKED, 256, 0, j.stream>>>((const T *)c.memory.at, c.place, n, transposed, (double *)out.at);
    check(cudaMemcpyAsync(host, out.at, sizeof host, cudaMemcpyDeviceToHost, j.stream), "differences");
    check(cudaStreamSynchronize(j.stream), "differences");
    for (double d : host)
        worst = std::fabs(d) <= worst ? worst : std::fabs(d);
    // The product of two uniforms deviates by 1/3. MPI's maximum would lose a NaN.
    return slowest(std::isnan(worst) ? 1e300 : worst / (std::sqrt((double)n) / 3));
}
