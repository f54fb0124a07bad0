/* dmath doctor: versions, the launcher, and GPUs with their way into MPI. */
#include "dmath_doctor.h"

#include "device/runtime.h"

#include <cblas.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void mpi_name(char out[MPI_MAX_LIBRARY_VERSION_STRING])
{
    int bytes = 0;
    MPI_Get_library_version(out, &bytes); /* allowed before MPI_Init */
    out[strcspn(out, ",\n")] = 0;
}

void doctor_versions(doctor *d)
{
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING];
    const char *blas = openblas_get_config();
    size_t name = strcspn(blas, " ");
    mpi_name(mpi);
    name += blas[name] ? 1 + strcspn(blas + name + 1, " ") : 0; /* two words */
    doctor_say(d, DOCTOR_OK, "versions", NULL, "dmath %s, %s, %.*s", dm_version(), mpi, (int)name, blas);
}

/* "4.1.4" of "Open MPI v4.1.4" and of "mpirun (Open MPI) 4.1.4". */
static const char *version_in(const char *text)
{
    const char *at = strstr(text, "Open MPI");
    return at ? at + strcspn(at, "0123456789") : NULL;
}

static void compare_versions(doctor *d, const char *launcher)
{
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING];
    mpi_name(mpi);
    const char *mine = version_in(mpi), *theirs = version_in(launcher);
    if (mine && theirs) {
        size_t n = strspn(mine, "0123456789.");
        bool same = strncmp(mine, theirs, n) == 0;
        doctor_say(d, same ? DOCTOR_OK : DOCTOR_PROBLEM, "mpirun",
                   "put the mpirun of the MPI that dmath is linked with first in PATH, or build dmath with the "
                   "other one",
                   "Open MPI %.*s, dmath is linked with %.*s", (int)strspn(theirs, "0123456789."), theirs,
                   (int)n, mine);
    } else {
        doctor_say(d, DOCTOR_NOTE, "mpirun", "is it the launcher of that library?",
                   "%.*s, dmath is linked with %s", (int)strcspn(launcher, "\n"), launcher, mpi);
    }
}

/* The first line that says something, of an output. */
static const char *reason_in(char *output)
{
    char *line = strtok(output, "\n");
    while (line && (strlen(line) <= 8 || strstr(line, "-----"))) {
        line = strtok(NULL, "\n");
    }
    return line ? line : "it said nothing";
}

/* A job of three ranks. */
static void try_launch(doctor *d)
{
    char self[4096], output[8192];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0) {
        return;
    }
    self[n] = 0;
    const char *const argv[] = {"mpirun", "-n",     "3", self, "bench", "dispatch", "--count",
                                "10",     "--idle", "0", "-r", "1",     NULL};
    int64_t begin = dmi_now_ns();
    int status = tool_run_program(argv, 30, output, sizeof output);
    if (status == 0) {
        doctor_say(d, DOCTOR_OK, "launch", NULL, "three ranks met and worked in %.1f s",
                   (double)(dmi_now_ns() - begin) * 1e-9);
    } else {
        doctor_say(d, DOCTOR_PROBLEM, "launch",
                   "source scripts/mpi-env.sh (containers, root, more ranks than cores), then try again",
                   status == -2 ? "a job of three ranks did not end in 30 s: %s"
                                : "a job of three ranks failed: %s",
                   reason_in(output));
    }
}

void doctor_launcher(doctor *d)
{
    char output[2048];
    const char *const argv[] = {"mpirun", "--version", NULL};
    if (tool_ranks() > 1) {
        doctor_say(d, DOCTOR_OK, "launch", NULL, "%d ranks of this job have met", tool_ranks());
        return;
    }
    int status = tool_run_program(argv, 10, output, sizeof output);
    if (status != 0) {
        doctor_say(d, DOCTOR_NOTE, "mpirun",
                   "install Open MPI's programs (openmpi-bin), or use srun; workers in this process need none",
                   status == -1 ? "it is not in PATH" : "mpirun --version failed");
        return;
    }
    compare_versions(d, output);
    try_launch(d);
}

/* --- GPUs --- */

static void check_peers(doctor *d, int gpus)
{
    int pairs = 0, direct = 0;
    char without[128] = "";
    for (int a = 0; a < gpus; a++) {
        for (int b = 0; b < gpus; b++) {
            if (a != b) {
                bool can = dmi_cu_can_peer(a, b);
                size_t used = strlen(without);
                pairs++;
                direct += can;
                if (!can && used + 16 < sizeof without) {
                    snprintf(without + used, sizeof without - used, " %d-%d", a, b);
                }
            }
        }
    }
    if (gpus > 1) {
        doctor_say(d, direct < pairs ? DOCTOR_NOTE : DOCTOR_OK, "peers",
                   "payloads between these go through the host: nvidia-smi topo -p2p r says why (IOMMU, a "
                   "bridge between the sockets)",
                   "%d of %d pairs of GPUs reach each other's memory%s%s", direct, pairs,
                   direct < pairs ? ", not" : "", without);
    }
}

/* Open MPI says how it was built. */
static void check_mpi(doctor *d)
{
    static char output[1 << 20];
    const char *const argv[] = {"ompi_info", "--parsable", "--all", NULL};
    if (tool_run_program(argv, 15, output, sizeof output) != 0) {
        doctor_say(d, DOCTOR_NOTE, "mpi+cuda",
                   "dmath asks it at the start of each job; only GPUs of several hosts need it",
                   "whether MPI takes device memory is not known: ompi_info does not run");
        return;
    }
    bool takes = strstr(output, "mpi_built_with_cuda_support:value:true") != NULL;
    doctor_say(d, takes ? DOCTOR_OK : DOCTOR_NOTE, "mpi+cuda",
               "payloads between hosts go through host memory: scripts/build-openmpi-cuda.sh builds an Open "
               "MPI for device memory "
               "(docs/gpu-hosts.md)",
               takes ? "MPI takes device memory" : "this MPI does not take device memory");
}

void doctor_gpus(doctor *d)
{
    const dmi_device *gpu =
        dmi_device_gpu(d->config->device == DMI_DEVICE_CPU ? DMI_DEVICE_AUTO : (int)d->config->device);
    if (!gpu) {
        bool there = access("/dev/nvidiactl", F_OK) == 0;
        doctor_say(d, there ? DOCTOR_NOTE : DOCTOR_OK, "GPUs",
                   "there is a driver: build dmath where nvcc is (docs/gpu-hosts.md)",
                   "this build has no CUDA%s", there ? ", but the host has GPUs" : "");
        return;
    }
    int gpus = gpu->settings() == DM_OK ? gpu->count() : 0;
    if (gpus == 0) {
        const char *why = gpu->why_none();
        doctor_say(d, DOCTOR_NOTE, "GPUs",
                   "nvidia-smi lists what the driver sees; in a container --gpus all, CUDA_VISIBLE_DEVICES",
                   "none: %s", *why ? why : "the driver finds none");
        return;
    }
    for (int i = 0; i < gpus; i++) {
        char bus[64] = "", model[80] = "";
        int64_t unused = 0, total = 1;
        bool known = gpu->name(i, bus, sizeof bus, model, sizeof model) == DM_OK && gpu->use(i) == DM_OK &&
                     gpu->memory(&unused, &total) == DM_OK;
        bool taken = known && (double)unused < 0.9 * (double)total;
        doctor_say(d,
                   !known  ? DOCTOR_PROBLEM
                   : taken ? DOCTOR_NOTE
                           : DOCTOR_OK,
                   "GPU",
                   known ? "another process has the rest: nvidia-smi"
                         : "nvidia-smi -i says what is wrong with it",
                   known ? "%d: %s%s%s, %.1f of %.1f GB free" : "%d: %s%s%s cannot be used: %.1f of %.1f GB", i,
                   model, *bus ? " at " : "", bus, (double)unused * 1e-9, (double)total * 1e-9);
    }
    check_peers(d, gpus);
    check_mpi(d);
}
