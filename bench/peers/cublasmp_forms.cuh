// The distributed products of cublasmp_gemm.cu, which includes this file.
#pragma once

struct Way {
    const char *peer;
    cublasMpMatmulAlgoType_t algo;
};
static const Way WAYS[] = {{"cublasmp split", CUBLASMP_MATMUL_ALGO_TYPE_SPLIT_P2P},
                           {"cublasmp atomic", CUBLASMP_MATMUL_ALGO_TYPE_ATOMIC_P2P},
                           {"cublasmp plain", CUBLASMP_MATMUL_ALGO_TYPE_NO_OVERLAP}};

// Empty, or what some rank's call has refused; CUBLASMP_LOG_LEVEL=3 has the library say why. All ranks go the same way:
// a rank that alone stopped would leave the others waiting.
static std::string refusal(const char *call, int status)
{
    int worst = 0;
    MPI_Allreduce(&status, &worst, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    return worst ? std::string(call) + " refuses it, status " + std::to_string(worst) : "";
}

// C' = B' A': all three by columns here, which are rows of what is meant.
template <class T> static void gemm(const Job &j, const std::string &name, const std::string &dtype, int64_t n)
{
    typename Of<T>::Scale one = 1, zero = 0;
    size_t device = 0, host = 0;
    Matrix<T> a(j, n, true, 1, false), b(j, n, true, 2, false), c(j, n, true, 3, false);
    int status = (int)cublasMpGemm_bufferSize(j.mp, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a.memory.at, 1, 1,
                                              a.layout, b.memory.at, 1, 1, b.layout, &zero, c.memory.at, 1, 1,
                                              c.layout, Of<T>::compute, &device, &host);
    std::string refused = refusal("cublasMpGemm_bufferSize", status);
    if (!refused.empty()) {
        report(j, "cublasmp gemm", name, dtype, n, nullptr, 0, 0, refused.c_str());
        return;
    }
    Memory workspace(device, false);
    std::vector<char> host_workspace(host + 1);
    auto call = [&] {
        status |= (int)cublasMpGemm(j.mp, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, a.memory.at, 1, 1, a.layout,
                                    b.memory.at, 1, 1, b.layout, &zero, c.memory.at, 1, 1, c.layout,
                                    Of<T>::compute, workspace.at, device, host_workspace.data(), host);
    };
    call();
    refused = refusal("cublasMpGemm", status);
    if (!refused.empty()) {
        report(j, "cublasmp gemm", name, dtype, n, nullptr, 0, 0, refused.c_str());
        return;
    }
    double error = error_of(j, c, n, false);
    Sample s = measure(j, call);
    report(j, "cublasmp gemm", name, dtype, n, &s, error, Of<T>::tolerance, nullptr);
    MPI_Barrier(MPI_COMM_WORLD); // nobody frees what another still reads
}

// gather: A and B by columns, C by rows; else A and B by rows, which spreads K, and C by columns. A is used
// transposed.
template <class T>
static void matmul(const Job &j, const Way &way, bool gather, const std::string &name, const std::string &dtype,
                   int64_t n)
{
    typename Of<T>::Scale one = 1, zero = 0;
    const cublasOperation_t transposed = CUBLAS_OP_T, plain = CUBLAS_OP_N;
    size_t device = 0, host = 0;
    cublasMpMatmulDescriptor_t how = nullptr;
    Matrix<T> a(j, n, gather, 1, false), b(j, n, gather, 2, gather), c(j, n, !gather, 3, false);
    int status = (int)cublasMpMatmulDescriptorCreate(&how, Of<T>::compute);
    status |= (int)cublasMpMatmulDescriptorAttributeSet(how, CUBLASMP_MATMUL_DESCRIPTOR_ATTRIBUTE_TRANSA,
                                                        &transposed, sizeof transposed);
    status |= (int)cublasMpMatmulDescriptorAttributeSet(how, CUBLASMP_MATMUL_DESCRIPTOR_ATTRIBUTE_TRANSB,
                                                        &plain, sizeof plain);
    status |= (int)cublasMpMatmulDescriptorAttributeSet(how, CUBLASMP_MATMUL_DESCRIPTOR_ATTRIBUTE_ALGO_TYPE,
                                                        &way.algo, sizeof way.algo);
    status |= (int)cublasMpMatmul_bufferSize(j.mp, how, n, n, n, &one, a.memory.at, 1, 1, a.layout, b.memory.at,
                                             1, 1, b.layout, &zero, nullptr, 1, 1, nullptr, c.memory.at, 1, 1,
                                             c.layout, &device, &host);
    std::string refused = refusal("cublasMpMatmul_bufferSize", status);
    if (refused.empty()) {
        Memory workspace((size_t)slowest((double)device), true);
        std::vector<char> host_workspace(host + 1);
        auto call = [&] {
            status |= (int)cublasMpMatmul(j.mp, how, n, n, n, &one, a.memory.at, 1, 1, a.layout, b.memory.at, 1,
                                          1, b.layout, &zero, nullptr, 1, 1, nullptr, c.memory.at, 1, 1,
                                          c.layout, workspace.at, device, host_workspace.data(), host);
        };
        check(cudaStreamSynchronize(j.stream), "fill");
        call();
        refused = refusal("cublasMpMatmul", status);
        if (refused.empty()) {
            double error = error_of(j, c, n, true);
            Sample s = measure(j, call);
            report(j, way.peer, name, dtype, n, &s, error, Of<T>::tolerance, nullptr);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (!refused.empty())
        report(j, way.peer, name, dtype, n, nullptr, 0, 0, refused.c_str());
    if (how)
        cublasMpMatmulDescriptorDestroy(how);
}

template <class T> static void run(const Job &j, const std::string &name, const std::string &dtype, int64_t n)
{
    if (name == "rows/rows/rows") {
        gemm<T>(j, name, dtype, n);
    } else if (name == "rows/cols/cols" || name == "cols/rows/rows") {
        for (const Way &way : WAYS)
            matmul<T>(j, way, name == "rows/cols/cols", name, dtype, n);
    }
}
