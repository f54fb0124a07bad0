/* The configuration: one table, a row a setting. Each can be given in the environment as DMATH_<KEY> (in
 * capitals) and, over that, in the option string of a session. */
#ifndef DMI_CONFIG_H
#define DMI_CONFIG_H

#include "base/base.h"

#include <stdio.h>

#if defined(NDEBUG) || defined(__SANITIZE_THREAD__)
#define DMI_POOL_DEBUG "0"
#else /* debug builds check for overruns; an allocation is then reused only when its last user is done */
#define DMI_POOL_DEBUG "1"
#endif

/* type(key, default as one would write it, accepted, doc)
 * accepted: of INT, BYTES and DOUBLE the range (lo, hi); of ENUM the names, in the order of their numbers; of
 * STRING the forms that a text may have, N for a whole number between ':' or '=' and ':' or the end ("": any text).
 * The empty text is allowed too. */
#define DMI_CONFIG_MAP(INT, BYTES, DOUBLE, BOOL, ENUM, STRING)                                                 \
    INT(workers, "0", 0, 65536, "workers in this process; 0: one per GPU, or one per core up to 4")            \
    ENUM(log, "warn", "error|warn|info|debug|trace", "level of messages on stderr")                            \
    ENUM(device, "auto", "auto|cpu|cuda|emulated",                                                             \
         "devices of the workers; auto: GPUs if there are any; emulated: GPUs made of threads, for tests")     \
    INT(lanes, "3", 1, 4, "compute lanes of a worker with a GPU: independent commands run at once")            \
    BOOL(share_gpu, "0", "more than one worker on a GPU")                                                      \
    ENUM(bind, "auto", "auto|none|cores",                                                                      \
         "auto: a worker with a GPU runs on the CPUs near it; cores: and one without a GPU on one CPU, each "  \
         "on another; none: threads stay where they are started")                                              \
    BOOL(placement, "0", "print the placement of each worker to stderr at the start, one line each")           \
    ENUM(transport, "auto", "auto|direct|mpi|cuda_mpi|staged", "how bytes move between workers")               \
    INT(pretend_hosts, "0", 0, 65536,                                                                          \
        "split the workers into so many simulated hosts, for tests; 0: no split")                              \
    DOUBLE(link_gbps, "0", 0, 1e6, "bandwidth given to every direct link, GB/s; 0: what it has")               \
    DOUBLE(link_latency_us, "0", 0, 1e9, "latency added to every direct link")                                 \
    BYTES(memory_limit, "0", 0, INT64_MAX, "limit on the memory of a worker; 0: none")                         \
    BYTES(gemm_workspace, "0", 0, INT64_MAX,                                                                   \
          "limit on bytes in flight for one product, per worker; 0: chosen")                                   \
    INT(gemm_transpose, "2048", 1, INT32_MAX,                                                                  \
        "columns of c from which f64 and TF32 products on GPUs transpose a in memory first (if a is "          \
        "transposed and b is not)")                                                                            \
    ENUM(gemm_algorithm, "auto", "auto|cyclic|stationary|contract|two_block|panels|fused|ring",                \
         "how products are computed")                                                                          \
    ENUM(program_order, "auto", "auto|recorded|critical",                                                      \
         "order in which the calls of a program are planned: as recorded, or critical: some overtake others "  \
         "that have long transfers, where that is expected to gain much; auto: critical, but on GPUs as "      \
         "recorded")                                                                                           \
    BOOL(program_join, "1",                                                                                    \
         "elementwise calls of a program that follow one another run as one, in one pass over memory")         \
    ENUM(program_device, "off", "off|on|auto",                                                                 \
         "on: programs of workers with GPUs of one host run on these alone, as one graph a worker, where "     \
         "they can (small payloads between GPUs with direct access); no other session may use the GPUs; "      \
         "auto: as on, and no warning where no program can; `dmath train' has auto unless told otherwise")     \
    ENUM(reduce_algorithm, "auto", "auto|direct|scatter",                                                      \
         "how sums reach all holders of a result: direct, or scatter (reduce-scatter and all-gather)")         \
    BYTES(reduce_chunk, "0", 0, INT64_MAX, "minimum chunk size of the algorithm scatter; 0: chosen")           \
    BYTES(                                                                                                     \
        sum_bucket, "0", 0, INT64_MAX,                                                                         \
        "programs sum the gradients of layers together, up to so many bytes of a worker's at once; 0: 4M on "  \
        "GPUs, else none; 1: none")                                                                            \
    BYTES(sort_exchange, "64K", 0, INT64_MAX,                                                                  \
          "rows of at least so many bytes that are split are sorted by all workers, if there are few rows")    \
    BOOL(sort_wide, "0", "sort and search as with rows of more than 2^32 - 1 elements: a check, slow")         \
    ENUM(gemm_compute, "f32", "f32|tf32", "computing type of f32 products on GPUs, if the call gives none")    \
    ENUM(index_algorithm, "auto", "auto|fetch|exchange|list|lend",                                             \
         "how take and put bring rows: fetch all that may be needed, exchange those that are, or, of take, "   \
         "copy these at once by a list that the master makes, or read them where they are (threads)")          \
    BYTES(pace_bytes, "2M", 0, INT64_MAX,                                                                      \
          "pace payloads of at least so many bytes on three or more GPUs of one host; 0: none")                \
    BYTES(push_kernel, "0", 0, 1 << 30,                                                                        \
          "send payloads of at most so many bytes to another GPU by one kernel that also raises the counter; " \
          "0: none")                                                                                           \
    ENUM(map_compile, "auto", "auto|never|always",                                                             \
         "are elementwise programs compiled for the GPU? auto: those that move much or come often")            \
    STRING(cache_dir, "", "",                                                                                  \
           "folder for compiled programs; nothing: $XDG_CACHE_HOME/dmath or ~/.cache/dmath")                   \
    BOOL(replicas, "1", "cache replicas of operands that a product has brought to all workers")                \
    BYTES(replica_limit, "0", 0, INT64_MAX,                                                                    \
          "size of the replica cache per worker; 0: an eighth of a GPU's memory, of several hosts' CPUs, "     \
          "nothing on one")                                                                                    \
    INT(file_threads, "0", 0, 256,                                                                             \
        "threads of a GPU worker that read and write files; 0: its share of the cores less one, up to 16")     \
    BYTES(file_chunk, "2M", 4096, 1 << 30,                                                                     \
          "chunk size of a file thread; a worker pins 2 * file_threads + 2 chunks")                            \
    BYTES(slab, "64M", 4096, INT64_MAX / 4,                                                                    \
          "minimum size of the memory that a worker takes from the system at once")                            \
    BYTES(ring, "1M", 4096, 1 << 30, "size of the command ring")                                               \
    BOOL(sync, "0", "every call waits and reports its own failure")                                            \
    BOOL(catch_signals, "0", "SIGUSR1 and SIGTERM leave a note for the program (dm_session_signalled)")        \
    BOOL(interrupt, "0", "Ctrl-C cancels the commands (dm_cancel); the second one ends the process")           \
    DOUBLE(watchdog_s, "120", 0, 1e9, "a worker this long without progress is an error; 0: never")             \
    STRING(journal, "", "", "file in which every call is kept, for `dmath replay`")                            \
    STRING(report_dir, "", "",                                                                                 \
           "folder for reports on workers that are stuck or have died; nothing: $TMPDIR or /tmp")              \
    BOOL(liveness, "1", "notice when processes of the job on this host, or what started them, die")            \
    DOUBLE(heartbeat_s, "30", 0, 1e9,                                                                          \
           "a host of which rank 0 hears nothing for so long, or that hears nothing of it, is lost; 0: never") \
    ENUM(on_death, "job", "job|session",                                                                       \
         "what the death of a worker process ends: the job, or its session alone (workers of one host)")       \
    DOUBLE(meet_s, "120", 0, 1e9, "how long a rank waits for the others at the start; 0: for ever")            \
    STRING(load, "", "", "shared objects with operations of your own, loaded at the start: a.so:b.so")         \
    STRING(trace, "", "", "file the timeline is written to")                                                   \
    STRING(profile, "", "",                                                                                    \
           "1: dm_finalize prints what each operation took; a name: to that file; nothing or 0: no profile")   \
    BOOL(explain, "0", "print the plan of every call")                                                         \
    BOOL(pool_debug, DMI_POOL_DEBUG, "red zones round every allocation of a worker's memory")                  \
    BOOL(capture, "0", "capture the work of each step and run it as a CUDA graph: a check, slow")              \
    BOOL(pool_own, "0", "a slab for every allocation, for sanitizers; workers must be threads")                \
    STRING(fault, "",                                                                                          \
           "compute:N|overrun:N|illegal:N|illegal:N:worker=N|endless:N|alloc:N|file:N|prepare:N|prepares:N|"   \
           "version|cuda_mpi|no_"                                                                              \
           "pidfd|malloc:N|malloc:N:worker=N|"                                                                 \
           "malloc:N:on|malloc:N:worker=N:on|"                                                                 \
           "read:N|write:N|write:N:eio|write:N:enospc|write:N:short|fsync:N|rename:N|open:N|close:N|death:N|"  \
           "death:N:worker=N|delay:N|message:N|control:N|driver:N|spin:N|"                                     \
           "turns:N",                                                                                          \
           "a fault planted for tests; turns: the threads run one at a time, in an order that N gives")        \
    INT(blas_threads, "1", 1, 4096, "threads of each worker's local products")                                 \
    DOUBLE(spin_us, "-1", -1, 1e9, "how long a waiting thread spins before it sleeps; -1: chosen")             \
    INT(plan_cache, "4096", 1, 1 << 24, "plans kept for calls that come again")

/* The numbers of the ENUM rows; those of log are DMI_LOG_*, those of gemm_algorithm enum dmi_gemm_algorithm, those of
 * reduce_algorithm enum dmi_reduce_algorithm, those of gemm_compute enum dmi_compute from its second on. */
enum dmi_config_device { DMI_DEVICE_AUTO, DMI_DEVICE_CPU, DMI_DEVICE_CUDA, DMI_DEVICE_EMULATED };
enum dmi_config_bind { DMI_BIND_AUTO, DMI_BIND_NONE, DMI_BIND_CORES };
enum dmi_config_index { DMI_INDEX_AUTO, DMI_INDEX_FETCH, DMI_INDEX_EXCHANGE, DMI_INDEX_LIST, DMI_INDEX_LEND };
/* LOADED is no value of the option. A queue has it while kernels behind an exchange are put into it: what is
 * loaded is used, and nothing is compiled or loaded, which could wait for a device that waits for this one. */
enum dmi_config_map_compile { DMI_COMPILE_AUTO, DMI_COMPILE_NEVER, DMI_COMPILE_ALWAYS, DMI_COMPILE_LOADED };
enum dmi_config_program_order { DMI_PROGRAM_AUTO, DMI_PROGRAM_RECORDED, DMI_PROGRAM_CRITICAL };
enum dmi_config_program_device { DMI_PROGRAM_DEVICE_OFF, DMI_PROGRAM_DEVICE_ON, DMI_PROGRAM_DEVICE_AUTO };
enum dmi_config_death { DMI_DEATH_JOB, DMI_DEATH_SESSION };
enum dmi_config_transport {
    DMI_TRANSPORT_AUTO,
    DMI_TRANSPORT_DIRECT,
    DMI_TRANSPORT_MPI,
    DMI_TRANSPORT_CUDA_MPI, /* between GPUs: messages from and to device memory */
    DMI_TRANSPORT_STAGED    /* between GPUs: through host memory */
};

enum { DMI_CONFIG_TEXT = 256 }; /* bytes of a STRING, its end included */

typedef struct dmi_config {
#define DMI_FIELD_INT(key, standard, lo, hi, doc) int key;
#define DMI_FIELD_BYTES(key, standard, lo, hi, doc) int64_t key;
#define DMI_FIELD_DOUBLE(key, standard, lo, hi, doc) double key;
#define DMI_FIELD_BOOL(key, standard, doc) bool key;
#define DMI_FIELD_ENUM(key, standard, names, doc) int key;
#define DMI_FIELD_STRING(key, standard, forms, doc) char key[DMI_CONFIG_TEXT];
    DMI_CONFIG_MAP(DMI_FIELD_INT, DMI_FIELD_BYTES, DMI_FIELD_DOUBLE, DMI_FIELD_BOOL, DMI_FIELD_ENUM,
                   DMI_FIELD_STRING)
#undef DMI_FIELD_INT
#undef DMI_FIELD_BYTES
#undef DMI_FIELD_DOUBLE
#undef DMI_FIELD_BOOL
#undef DMI_FIELD_ENUM
#undef DMI_FIELD_STRING
} dmi_config;

/* Defaults, over them the environment, over it `options`: "key=value,key=value" (may be NULL). A value may
 * stand in '...', and must if it holds a comma. Bytes take K, M, G or T (powers of 1024; "64M", "64MB",
 * "64MiB"). An empty variable counts as not set. A key may occur once in `options`. DM_ERR_CONFIG names the
 * key, the value and what would be accepted; *out is written on success only. An unknown DMATH_ variable gets a
 * warning with the nearest known name, except those that belong to tests, scripts and libdmath_blas. */
DM_CHECKED dm_status dmi_config_load(dmi_config *out, const char *options);
/* Does the option profile ask for one? */
static inline bool dmi_config_profile(const dmi_config *config)
{
    return config->profile[0] != 0 && !(config->profile[0] == '0' && config->profile[1] == 0);
}
/* A line for each setting: key, value, doc, what is accepted, default. */
void dmi_config_print(const dmi_config *config, FILE *to);

#endif
