/* dmath info: this build, and its devices and settings here. */
#include "device/queue.h"
#include "dmath.h"
#include "launch/placement/placement.h"

#include <cblas.h>
#include <mpi.h>
#include <stdio.h>
#include <string.h>

typedef struct info_options {
    tool_common common;
    bool placement;
} info_options;

enum { KEY_PLACEMENT = 256 };

static const struct argp_option options[] = {
    {"placement", KEY_PLACEMENT, NULL, 0,
     "start the workers, and print of each its host, process, device, NUMA node, CPUs, network card, and how "
     "blocks "
     "go to its peers",
     0},
    {0},
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    info_options *o = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &o->common;
        return 0;
    case KEY_PLACEMENT:
        o->placement = true;
        return 0;
    case ARGP_KEY_END:
        if (o->common.nworkers > 1) {
            argp_error(state, "--workers: one number, not a list");
            return EINVAL;
        }
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "`%s' is one argument too many", arg);
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_child children[] = {{&tool_common_argp, 0, NULL, 0}, {0}};
static const struct argp argp = {
    options, parse, NULL, "Versions, machine, element types, operations, configuration.", children, NULL, NULL};

/* The first line of the MPI library's version. */
static void mpi_name(char out[MPI_MAX_LIBRARY_VERSION_STRING])
{
    int bytes = 0;
    MPI_Get_library_version(out, &bytes); /* allowed before MPI_Init */
    out[strcspn(out, "\n")] = 0;
}

static bool has_cuda(void)
{
    return dmi_device_gpu(DMI_DEVICE_CUDA) != NULL;
}

static const char *mode_name(int mode)
{
    return mode == DMI_READ ? "read" : mode == DMI_WRITE ? "written" : "updated";
}

static void print_dtypes(void)
{
    printf("\nelement types\n");
#define X(code, name, text, ctype, bytes) printf("  %-5s %d bytes\n", text, bytes);
    DM_DTYPE_MAP(X)
#undef X
}

static void print_ops(void)
{
    printf("\noperations\n");
    for (int op = 0; op < DMI_OPS; op++) {
        printf("  %-11s ", dmi_ops[op].name);
        for (int i = 0; i < DMI_MAX_OPERANDS && dmi_ops[op].operand[i].name; i++) {
            const dmi_operand_rule *r = &dmi_ops[op].operand[i];
            printf("%s%s %s (%s)", i ? ", " : "", r->name, mode_name(r->mode),
                   r->dtypes == DMI_DT_ALL     ? "all"
                   : r->dtypes == DMI_DT_FLOAT ? "floating"
                                               : "some");
        }
        printf("\n");
    }
}

/* That workers would use: 0 with device=cpu, too. */
static int gpus_of(const dmi_config *config)
{
    const dmi_device *gpu = dmi_device_gpu((int)config->device);
    return gpu ? gpu->count() : 0;
}

static void print_json(const dmi_config *config, const char *mpi, int workers)
{
    tool_table t = {.json = true, .command = "info"};
    tool_row_begin(&t);
    tool_row_text(&t, "mpi", 0, mpi);
    tool_row_text(&t, "openblas", 0, openblas_get_config());
    tool_row_int(&t, "cuda", 0, has_cuda());
    tool_row_text(&t, "map_compiler", 0, dmi_cuda_compiler());
    tool_row_int(&t, "hwloc", 0, dmi_topology_built);
    tool_row_int(&t, "cores", 0, dmi_host_cores());
    tool_row_int(&t, "gpus", 0, gpus_of(config));
    tool_row_int(&t, "workers", 0, workers);
    tool_row_int(&t, "blas_threads", 0, config->blas_threads);
    tool_row_int(&t, "operations", 0, DMI_OPS);
    tool_row_end(&t);
}

static void print_placement_json(const dmi_session *s)
{
    for (int w = 0; w < s->workers; w++) {
        const dmi_placement_report *p = &s->placement[w];
        tool_table t = {.json = true, .command = "info --placement"};
        tool_row_begin(&t);
        tool_row_int(&t, "worker", 0, p->worker);
        tool_row_text(&t, "host", 0, p->host);
        tool_row_int(&t, "process", 0, p->pid);
        tool_row_text(&t, "device", 0, p->device);
        tool_row_text(&t, "pci", 0, p->bus);
        tool_row_text(&t, "numa", 0, p->numa);
        tool_row_text(&t, "cpus", 0, p->cpus);
        tool_row_text(&t, "binding", 0, p->binding);
        tool_row_text(&t, "network", 0, p->card);
        tool_row_text(&t, "peers", 0, p->peers);
        tool_row_end(&t);
    }
}

/* Only the workers themselves know: they are started for it. To stdout, where the option of a session says it
 * on stderr. */
static int tell_placement(dmi_config *config, bool json)
{
    dm_session *session = NULL;
    dmi_session *s = NULL;
    config->placement = true;
    dmi_log_set_level((int)config->log);
    dmi_log_set_who("master");
    dm_status status = dmi_session_start(config, DM_OK, &(dmi_error_handler){0}, &session);
    if (status == DM_OK) {
        status = dmi_enter(session, &s);
    }
    if (status == DM_OK && json) {
        print_placement_json(s);
    } else if (status == DM_OK) {
        dmi_placement_print(s, stdout);
    }
    return tool_close(session, status);
}

int tool_info(int argc, char **argv)
{
    info_options o = {{.nworkers = 0}};
    dmi_config config;
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING];
    if (argp_parse(&argp, argc, argv, 0, NULL, &o) != 0) {
        return TOOL_USAGE;
    }
    dm_status status = dmi_config_load(&config, o.common.options);
    if (status != DM_OK) {
        tool_complain(status);
        return TOOL_USAGE;
    }
    if (o.common.nworkers > 0) {
        config.workers = (int)DMI_MIN(o.common.workers[0], INT32_MAX);
    }
    if (o.placement) {
        return tell_placement(&config, o.common.json);
    }
    int ranks = tool_ranks(), workers = ranks > 1 ? ranks - 1 : dmi_thread_workers(&config);
    mpi_name(mpi);
    if (o.common.json) {
        print_json(&config, mpi, workers);
        return 0;
    }
    printf("dmath     %s, operations %016llx\n", dm_version(), (unsigned long long)dmi_ops_fingerprint());
    printf("MPI       %s\n", mpi);
    printf("BLAS      %s\n", openblas_get_config());
    printf("build     CUDA: %s, hwloc: %s\n", has_cuda() ? "yes" : "no (GPUs are emulated, for tests)",
           dmi_topology_built ? "yes" : "no");
    printf("programs  compiled for GPUs: %s\n", dmi_cuda_compiler());
    printf("cores     %d\n", dmi_host_cores());
    printf("GPUs      %d\n", gpus_of(&config));
    printf("workers   %d, %s\n", workers, ranks > 1 ? "ranks of this launch" : "threads of this process");
    print_dtypes();
    print_ops();
    printf("\nconfiguration (environment: DMATH_ and the name in capitals)\n");
    dmi_config_print(&config, stdout);
    return 0;
}
