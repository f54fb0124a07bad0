/* dmath doctor: cores, memory, limits, what processes may do with each other, and rates of the host. */
#include "dmath_doctor.h"

#include <cblas.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (INT64_C(1) << 20)

/* The first two words of a file, "" where there are fewer. */
static bool words_of(const char *path, char first[32], char second[32])
{
    FILE *file = fopen(path, "re");
    first[0] = second[0] = 0;
    int n = file ? fscanf(file, "%31s %31s", first, second) : 0;
    if (file) {
        fclose(file);
    }
    return n >= 1;
}

/* 0 where it is none. */
static double number_in(const char *text)
{
    double value = 0;
    return tool_double_parse(text, &value) ? value : 0;
}

void doctor_cores(doctor *d)
{
    int cores = dmi_host_cores(), online = (int)sysconf(_SC_NPROCESSORS_ONLN), ranks = tool_ranks();
    int workers = ranks > 1 ? ranks - 1 : dmi_thread_workers(d->config),
        threads = workers * d->config->blas_threads;
    char quota[32], period[32];
    double load[1] = {0};
    doctor_say(
        d, cores < online ? DOCTOR_NOTE : DOCTOR_OK, "cores",
        "taskset, the batch system or mpirun bound it; mpirun --bind-to none leaves all cores to the ranks",
        "this process may use %d of %d", cores, online);
    doctor_say(d, threads > cores ? DOCTOR_NOTE : DOCTOR_OK, "workers",
               "fewer workers (DMATH_WORKERS), or fewer threads each (DMATH_BLAS_THREADS): their product is to "
               "be the cores",
               "%d workers of %d BLAS threads on %d cores%s", workers, d->config->blas_threads, cores,
               threads > cores ? ": they share cores" : "");
    double share = 0; /* of a control group: processors' time a second; "max": all */
    if (words_of("/sys/fs/cgroup/cpu.max", quota, period) && number_in(quota) > 0 && number_in(period) > 0) {
        share = number_in(quota) / number_in(period);
    }
    if (share > 0 && share < cores) {
        doctor_say(d, DOCTOR_PROBLEM, "quota",
                   "start the container with as many processors as it may use at once (--cpuset-cpus, not "
                   "--cpus), or take "
                   "fewer workers",
                   "the control group gives %.2f processors' time, to %d cores: workers are stopped while "
                   "others wait for them",
                   share, cores);
    }
    if (getloadavg(load, 1) == 1 && load[0] > 0.5 * online) {
        doctor_say(d, DOCTOR_NOTE, "load", "look with top who else is at work; measurements will be off",
                   "%.1f threads are running here, on %d cores", load[0], online);
    }
}

static void check_space(doctor *d, const char *path, int64_t least, const char *remedy)
{
    struct statvfs fs;
    if (statvfs(path, &fs) != 0) {
        doctor_say(d, DOCTOR_NOTE, path, remedy, "%s", strerror(errno));
        return;
    }
    int64_t unused = (int64_t)fs.f_bavail * (int64_t)fs.f_frsize;
    bool writable = access(path, W_OK) == 0;
    doctor_say(d, unused < least || !writable ? DOCTOR_NOTE : DOCTOR_OK, path, remedy, "%" PRId64 " MiB free%s",
               unused / MIB, writable ? "" : ", not writable");
}

void doctor_memory(doctor *d)
{
    struct sysinfo info;
    char most[32], rest[32];
    if (sysinfo(&info) == 0) {
        int64_t total = (int64_t)info.totalram * info.mem_unit, unused = (int64_t)info.freeram * info.mem_unit;
        doctor_say(d, DOCTOR_OK, "memory", NULL, "%" PRId64 " MiB, %" PRId64 " of them unused", total / MIB,
                   unused / MIB);
        double limit = words_of("/sys/fs/cgroup/memory.max", most, rest) ? number_in(most) : 0;
        if (limit > 0 && limit < 0.9 * (double)total) {
            doctor_say(d, DOCTOR_NOTE, "memory",
                       "set memory_limit to what a worker may have, so that calls are refused and not killed",
                       "the control group has a limit of %.0f MiB", limit / (double)MIB);
        }
    }
    check_space(d, "/dev/shm", 256 * MIB,
                "Open MPI keeps its messages there: --shm-size for the container, or "
                "OMPI_MCA_btl_vader_backing_directory=/tmp (scripts/mpi-env.sh)");
    const char *tmp = getenv("TMPDIR");
    check_space(d, tmp && *tmp ? tmp : "/tmp", 64 * MIB,
                "the launcher and reports need it: set TMPDIR to a folder with space");
}

static void check_limit(doctor *d, int which, const char *name, uint64_t least, int64_t unit,
                        const char *remedy)
{
    struct rlimit limit;
    if (getrlimit((__rlimit_resource_t)which, &limit) != 0) {
        return;
    }
    if (limit.rlim_cur == RLIM_INFINITY) {
        doctor_say(d, DOCTOR_OK, name, NULL, "no limit");
    } else {
        doctor_say(d, limit.rlim_cur < least ? DOCTOR_NOTE : DOCTOR_OK, name, remedy, "%" PRIu64 "%s",
                   (uint64_t)limit.rlim_cur / (uint64_t)unit, unit == MIB ? " MiB" : "");
    }
}

void doctor_limits(doctor *d)
{
    check_limit(d, RLIMIT_NOFILE, "ulimit -n", 1024, 1,
                "ranks share memory by open files: raise it (ulimit -n 65536)");
    check_limit(d, RLIMIT_MEMLOCK, "ulimit -l", UINT64_MAX, MIB,
                "InfiniBand and GPUs lock memory: unlimited in /etc/security/limits.conf, and for the batch "
                "system's daemon");
    check_limit(d, RLIMIT_AS, "ulimit -v", UINT64_MAX, MIB,
                "GPUs map more memory than there is: ulimit -v unlimited");
    check_limit(d, RLIMIT_FSIZE, "ulimit -f", UINT64_MAX, MIB,
                "larger files cannot be saved: ulimit -f unlimited");
    check_limit(d, RLIMIT_NPROC, "ulimit -u", 1024, 1, "workers are threads: raise it (ulimit -u)");
}

/* Can a process open what another one of the same user shares, as ranks of a host do? */
void doctor_sharing(doctor *d)
{
    int memory = memfd_create("dmath-doctor", MFD_CLOEXEC), status = 0;
    pid_t child = memory >= 0 ? fork() : -1;
    if (child == 0) {
        char path[64];
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)getppid(), memory);
        close(memory);
        _exit(open(path, O_RDWR | O_CLOEXEC) >= 0 ? 0 : 1);
    }
    bool ok = child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    doctor_say(d, ok ? DOCTOR_OK : DOCTOR_PROBLEM, "sharing",
               "ranks of one host map each other's memory through /proc: it must not be mounted with hidepid, "
               "and the container must "
               "allow memfd_create; -O transport=mpi does without",
               ok ? "processes can map each other's memory" : "a process cannot map another one's memory");
    if (memory >= 0) {
        close(memory);
    }
}

/* --- rates --- */

enum { SIDE = 768, TRIES = 4 };
#define COPY_BYTES ((size_t)64 << 20)
#define MATRIX ((size_t)SIDE * SIDE)

typedef struct copier {
    pthread_t thread;
    pthread_barrier_t *gate;
    char *memory;
    double seconds;
} copier;

/* The shortest of some copies, all threads at once. */
static void *copy_part(void *arg)
{
    copier *c = arg;
    memset(c->memory, 1, 2 * COPY_BYTES);
    c->seconds = 1e9;
    for (int i = 0; i < TRIES; i++) {
        pthread_barrier_wait(c->gate);
        int64_t begin = dmi_now_ns();
        memcpy(c->memory + (i % 2 ? COPY_BYTES : 0), c->memory + (i % 2 ? 0 : COPY_BYTES), COPY_BYTES);
        c->seconds = DMI_MIN(c->seconds, (double)(dmi_now_ns() - begin) * 1e-9);
    }
    return NULL;
}

/* Bytes read and written a second. */
static double copy_rate(int threads)
{
    pthread_barrier_t gate;
    copier *c = calloc((size_t)threads, sizeof *c);
    int made = 0;
    double rate = 0;
    bool ok = c && pthread_barrier_init(&gate, NULL, (unsigned)threads) == 0;
    for (int i = 0; ok && i < threads; i++) {
        c[i] = (copier){.gate = &gate, .memory = malloc(2 * COPY_BYTES)};
        ok = c[i].memory != NULL;
    }
    for (int i = 0; ok && i < threads; i++) {
        if (pthread_create(&c[i].thread, NULL, copy_part, &c[i]) != 0) {
            _exit(TOOL_FAILED); /* the others wait for it for ever */
        }
        made++;
    }
    for (int i = 0; i < made; i++) {
        pthread_join(c[i].thread, NULL);
        rate += 2.0 * (double)COPY_BYTES / c[i].seconds;
    }
    for (int i = 0; c && i < threads; i++) {
        free(c[i].memory);
    }
    free(c);
    return rate;
}

/* Of a product by one thread; flops a second. */
static double product_rate(void)
{
    float *m = calloc(3 * MATRIX, sizeof *m);
    double least = 1e9;
    for (int i = 0; m && i < TRIES; i++) {
        int64_t begin = dmi_now_ns();
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, SIDE, SIDE, SIDE, 1, m, SIDE, m + MATRIX, SIDE,
                    0, m + 2 * MATRIX, SIDE);
        least = DMI_MIN(least, (double)(dmi_now_ns() - begin) * 1e-9);
    }
    free(m);
    return 2.0 * SIDE * (double)MATRIX / least;
}

void doctor_rates(doctor *d)
{
    int threads = DMI_MIN(dmi_host_cores(), 32);
    double one = copy_rate(1), all = threads > 1 ? copy_rate(threads) : one;
    openblas_set_num_threads(1);
    double product = product_rate();
    doctor_say(d, DOCTOR_OK, "copying", NULL, "%.1f GB/s by one thread, %.1f by %d (bytes read and written)",
               one * 1e-9, all * 1e-9, threads);
    bool slow = product < 5e9;
    doctor_say(d, slow ? DOCTOR_NOTE : DOCTOR_OK, "products",
               "a core of today makes 50 and more: is OpenBLAS a generic build, or is somebody else at work? "
               "dmath info names its "
               "kernels",
               "%.1f Gflop/s in f32 by one thread (%s)", product * 1e-9, openblas_get_corename());
}
