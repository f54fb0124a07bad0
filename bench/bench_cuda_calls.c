/* Which functions of CUDA are called when commands come again that came before: none that allocates, frees,
 * makes an object, or lets the host wait for the device. Counted by CUPTI over 50 rounds, after 3 that are not,
 * for sessions in which blocks travel in different ways. bench_cuda_calls [N, default 1024] [ROUNDS] Workers
 * are threads; DMATH_WORKERS and DMATH_SHARE_GPU as for any program. Status 0: right, 1: a call that is
 * refused, or CUPTI sees no calls, 77: no GPU. */
#include "cuda_calls/calls.h"
#include "device/runtime.h"

#include <stdio.h>
#include <stdlib.h>

enum { WARM = 3, ROUNDS = 50, LEAST_N = 64 };

/* Calls of our own, to see that the trace would show them. */
static bool trace_works(void)
{
    dmi_stream s = NULL;
    calls_count(true);
    work_check(dmi_cu_use(0));
    work_check(dmi_cu_stream_create(&s));
    void *p = dmi_cu_malloc(1 << 20);
    work_check(dmi_cu_zero(p, 1 << 20));
    work_check(dmi_cu_stream_wait(s));
    dmi_cu_release(p);
    dmi_cu_stream_destroy(s);
    calls_count(false);
    static const char *const expected[] = {"cudaMalloc_", "cudaFree_", "cudaStreamSynchronize",
                                           "cudaStreamCreate"};
    bool all = true;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        if (calls_of(expected[i]) == 0 || !call_refused(expected[i])) {
            printf("the trace does not show calls of %s\n", expected[i]);
            all = false;
        }
    }
    return all;
}

/* False: something was called that is refused. */
static bool try_session(const char *options, int64_t n, int rounds)
{
    dm_config config = DM_CONFIG_INIT;
    dm_session *s;
    config.options = options;
    work_check(dm_init(&config, &s));
    int workers = dm_workers(s);
    calls_work *w = work_make(s, n);
    for (int i = 0; i < WARM; i++) {
        work_round(w);
    }
    calls_count(true);
    for (int i = 0; i < rounds; i++) {
        work_round(w);
    }
    calls_count(false);
    printf("%d workers, %s\n", workers, options);
    call_totals totals = calls_print(rounds);
    printf(
        "{\"bench\":\"cuda_calls\",\"options\":\"%s\",\"workers\":%d,\"n\":%lld,\"rounds\":%d,\"calls\":%lld,"
        "\"refused\":%lld,\"right\":%s}\n",
        options, workers, (long long)n, rounds, (long long)totals.calls, (long long)totals.refused,
        totals.refused == 0 ? "true" : "false");
    fflush(stdout);
    work_free(w);
    work_check(dm_finalize(s, NULL));
    return totals.refused == 0;
}

int main(int argc, char **argv)
{
    static const char *const sessions[] = {"device=cuda,replicas=0", "device=cuda,replicas=1",
                                           "device=cuda,replicas=0,lanes=1",
                                           "device=cuda,replicas=0,pretend_hosts=2"};
    long long n = argc > 1 ? atoll(argv[1]) : 1024;
    int rounds = argc > 2 ? atoi(argv[2]) : ROUNDS;
    if (n < LEAST_N || rounds < 1) {
        fprintf(stderr, "bench_cuda_calls [N, at least %d] [ROUNDS]\n", LEAST_N);
        return 2;
    }
    bool right = calls_watch();
    if (dmi_cu_devices() == 0) {
        printf("no GPU, nothing counted\n");
        return 77;
    }
    bool shown = right && trace_works();
    right = shown;
    for (size_t i = 0; i < sizeof sessions / sizeof *sessions && shown; i++) {
        right = try_session(sessions[i], n, rounds) && right;
    }
    printf("%s\n", right ? "right" : "WRONG");
    return right ? 0 : 1;
}
