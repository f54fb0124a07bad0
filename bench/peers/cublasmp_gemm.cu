// Products by cuBLASMp, one process a GPU, under mpirun: cublasmp_gemm CASES DTYPES SIZES [SAMPLES]
//
// cuBLASMp's matrices are column-major: what it calls columns are rows here, and C = A B is computed as C' = B'
// A'.
//   rows/rows/rows   cublasMpGemm on a grid of 1 x P
//   rows/cols/cols   cublasMpMatmul, all-gather and product: A travels; B is held transposed, as it asks for
//   cols/rows/rows   cublasMpMatmul, product and reduce-scatter; B is held transposed
// cublasMpMatmul in three ways of overlap: by copies in turns (split), one kernel that waits (atomic), none.
// Lines as peer.py describes, by the stream's clock; largest_error in units of a typical entry.
#include "cublasmp_data.cuh"

struct Sample {
    std::vector<double> batched, alone;
};

template <class F> static Sample measure(const Job &j, F call)
{
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin), "event");
    check(cudaEventCreate(&end), "event");
    auto timed = [&](int count, bool by_host) {
        float ms = 0;
        check(cudaDeviceSynchronize(), "work before");
        MPI_Barrier(MPI_COMM_WORLD);
        auto start = std::chrono::steady_clock::now();
        check(cudaEventRecord(begin, j.stream), "event");
        for (int i = 0; i < count; i++)
            call();
        check(cudaEventRecord(end, j.stream), "event");
        check(cudaEventSynchronize(end), "product");
        std::chrono::duration<double, std::milli> host = std::chrono::steady_clock::now() - start;
        check(cudaEventElapsedTime(&ms, begin, end), "event");
        return slowest(by_host ? host.count() : (double)ms) / count;
    };
    timed(2, false);
    double estimate = timed(2, false);
    int batch = estimate < 1 ? 20 : estimate < 10 ? 5 : estimate < 25 ? 2 : 1;
    Sample s;
    for (int i = 0; i < j.samples; i++)
        s.batched.push_back(timed(batch, false));
    for (int i = 0; i < (estimate < 50 ? j.samples : 3); i++)
        s.alone.push_back(timed(1, true));
    std::sort(s.batched.begin(), s.batched.end());
    std::sort(s.alone.begin(), s.alone.end());
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return s;
}

static void report(const Job &j, const std::string &peer, const std::string &name, const std::string &dtype,
                   int64_t n, const Sample *s, double error, double tolerance, const char *why)
{
    if (j.rank != 0)
        return;
    printf("{\"peer\": \"%s\", \"case\": \"%s\", \"dtype\": \"%s\", \"n\": %lld, \"gpus\": %d, ", peer.c_str(),
           name.c_str(), dtype.c_str(), (long long)n, j.ranks);
    if (!s) {
        printf("\"checked\": false, \"error\": \"%s\"}\n", why);
    } else {
        const std::vector<double> &b = s->batched;
        printf("\"ms_median\": %.5f, \"ms_min\": %.5f, \"iqr\": %.5f, \"alone_ms\": %.5f, \"checked\": %s, "
               "\"largest_error\": %.3g, \"samples\": %zu}\n",
               (b[(b.size() - 1) / 2] + b[b.size() / 2]) / 2, b[0],
               b[3 * (b.size() - 1) / 4] - b[(b.size() - 1) / 4], s->alone[s->alone.size() / 2],
               error <= tolerance ? "true" : "false", error, b.size());
    }
    fflush(stdout);
}

// Uses what stands above.
#include "cublasmp_forms.cuh"

static std::vector<std::string> words(const char *list)
{
    std::vector<std::string> all;
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, ",");
        all.emplace_back(at, n);
        at += n + (at[n] == ',');
    }
    return all;
}

static void start(Job &j)
{
    ncclUniqueId id;
    const char *local = getenv("OMPI_COMM_WORLD_LOCAL_RANK");
    check(cudaSetDevice(local ? atoi(local) : 0),
          "cudaSetDevice"); // before MPI_Init, which may look at the device
    check(cudaFree(nullptr), "cudaFree");
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &j.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &j.ranks);
    if (j.rank == 0 && ncclGetUniqueId(&id) != ncclSuccess)
        stop("NCCL", "no id");
    MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
    if (ncclCommInitRank(&j.nccl, j.ranks, id, j.rank) != ncclSuccess)
        stop("NCCL", "no communicator");
    check(cudaStreamCreate(&j.stream), "stream");
    if (cublasMpCreate(&j.mp, j.stream) != CUBLASMP_STATUS_SUCCESS ||
        cublasMpGridCreate(1, j.ranks, CUBLASMP_GRID_LAYOUT_ROW_MAJOR, j.nccl, &j.wide) !=
            CUBLASMP_STATUS_SUCCESS ||
        cublasMpGridCreate(j.ranks, 1, CUBLASMP_GRID_LAYOUT_COL_MAJOR, j.nccl, &j.tall) !=
            CUBLASMP_STATUS_SUCCESS)
        stop("cuBLASMp", "cublasMpCreate or cublasMpGridCreate failed");
}

int main(int argc, char **argv)
{
    Job j;
    if (argc < 4) {
        fprintf(stderr, "usage: cublasmp_gemm CASES DTYPES SIZES [SAMPLES]\n");
        return 2;
    }
    // NVLink multicast belongs to the host: it stays off. One host: no network transport is looked for.
    setenv("NVSHMEM_DISABLE_NVLS", "1", 1);
    setenv("NCCL_NVLS_ENABLE", "0", 1);
    setenv("NVSHMEM_REMOTE_TRANSPORT", "none", 0);
    setenv("NVSHMEM_SYMMETRIC_SIZE", "16G", 0);
    setenv("NVIDIA_TF32_OVERRIDE", "0", 1); // f32 means f32
    j.samples = argc > 4 ? std::max(3, atoi(argv[4])) : 20;
    start(j);
    for (const std::string &dtype : words(argv[2]))
        for (const std::string &size : words(argv[3]))
            for (const std::string &name : words(argv[1])) {
                int64_t n = atoll(size.c_str());
                if (n < j.ranks || n % j.ranks != 0)
                    report(j, "cublasmp", name, dtype, n, nullptr, 0, 0,
                           "n is no multiple of the number of GPUs");
                else if (dtype == "bf16")
                    run<__nv_bfloat16>(j, name, dtype, n);
                else if (dtype == "f16")
                    run<__half>(j, name, dtype, n);
                else if (dtype == "f32")
                    run<float>(j, name, dtype, n);
                else if (dtype == "f64")
                    run<double>(j, name, dtype, n);
            }
    MPI_Barrier(MPI_COMM_WORLD);
    cublasMpGridDestroy(j.tall);
    cublasMpGridDestroy(j.wide);
    cublasMpDestroy(j.mp);
    ncclCommDestroy(j.nccl);
    MPI_Finalize();
    return 0;
}
