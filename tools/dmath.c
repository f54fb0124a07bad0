/* dmath: the command line. The table of subcommands, and the choice of one. */
#include "dmath.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const tool_command commands[] = {
    {"info", tool_info, "versions, machine, element types, operations, configuration"},
    {"doctor", tool_doctor, "can jobs run well here, and what is to be done?"},
    {"stat", tool_stat, "what .npy files hold: smallest, largest, mean, NaN, histogram"},
    {"gemm", tool_gemm, "multiply two matrices in .npy files"},
    {"map", tool_map, "an elementwise expression of arrays in .npy files"},
    {"explain", tool_explain, "the plan of an operation, for any number of workers, without running it"},
    {"train", tool_train, "train a net: Caffe's solver and net files"},
    {"test", tool_test, "the outputs of a net over some batches"},
    {"time", tool_time, "milliseconds of each layer of a net"},
    {"classify", tool_classify, "the classes of images by a trained net"},
    {"extract", tool_extract, "blobs of a net over some batches, to .npy files"},
    {"net", tool_net, "nets: show, print, draw, upgrade, convert"},
    {"data", tool_data, "data for nets: convert, mean, show"},
    {"ckpt", tool_ckpt, "checkpoints: ls, verify, reshard, diff"},
    {"replay", tool_replay, "run a journal of calls again (option journal)"},
    {"bench", tool_bench,
     "measurements that check their results: any operation by name, and dispatch, transport, files"},
    {"completion", tool_completion, "prints completion of this command for a shell: bash, zsh"},
    {"man", tool_man, "writes manual pages to a folder"},
    {NULL, NULL, NULL},
};

static void usage(const char *prefix, const tool_command *list, FILE *to)
{
    fprintf(to, "Usage: %s COMMAND [OPTION...]\n\n", prefix);
    for (; list->name; list++) {
        fprintf(to, "  %-10s %s\n", list->name, list->doc);
    }
    fprintf(to, "\n`%s COMMAND --help' lists the options of a command.\n", prefix);
}

int tool_dispatch(const char *prefix, const tool_command *list, int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    if (name && (strcmp(name, "--help") == 0 || strcmp(name, "-?") == 0 || strcmp(name, "help") == 0)) {
        usage(prefix, list, stdout);
        return 0;
    }
    for (const tool_command *c = list; name && c->name; c++) {
        if (strcmp(c->name, name) == 0) {
            char program[64];
            snprintf(program, sizeof program, "%s %s", prefix, name);
            argv[1] = program; /* what messages call the program */
            return c->run(argc - 1, argv + 1);
        }
    }
    if (name) {
        fprintf(stderr, "%s: there is no command `%s'\n", prefix, name);
    }
    usage(prefix, list, stderr);
    return TOOL_USAGE;
}

/* Do the arguments ask for something that runs on workers? */
static bool wants_workers(int argc, char **argv)
{
    static const char *const words[] = {"--help", "-?", "--usage", "--version", "-V", "--rows", "--list"};
    for (int i = 1; i < argc; i++) {
        for (int j = 0; j < DMI_COUNT(words); j++) {
            if (strcmp(argv[i], words[j]) == 0) {
                return false;
            }
        }
    }
    bool asked = false;
    for (int i = 2; i < argc; i++) {
        asked = asked || (strcmp(argv[1], "info") == 0 && strcmp(argv[i], "--placement") == 0);
    }
    static const char *const always[] = {"stat", "gemm", "map",    "bench",   "train",
                                         "test", "time", "replay", "extract", "classify"};
    for (int j = 0; j < DMI_COUNT(always); j++) {
        asked = asked || (argc > 2 && strcmp(argv[1], always[j]) == 0);
    }
    asked = asked || (argc > 2 && strcmp(argv[1], "net") == 0 && strcmp(argv[2], "show") == 0);
    asked = asked || (argc > 3 && strcmp(argv[1], "ckpt") == 0 &&
                      (strcmp(argv[2], "reshard") == 0 || strcmp(argv[2], "diff") == 0));
    return argc > 2 && strcmp(argv[2], "help") != 0 && asked;
}

/* A command with several sessions: all ranks read it, see tool_series_begin. Options may be written in part. */
static bool wants_series(int argc, char **argv)
{
    static const char option[] = "--transports";
    bool transport = argc > 2 && strcmp(argv[1], "bench") == 0 && strcmp(argv[2], "transport") == 0;
    for (int i = 3; i < argc && transport; i++) {
        size_t n = strcspn(argv[i], "=");
        if (n >= strlen("--ti") && strncmp(argv[i], option, n) == 0) {
            return wants_workers(argc, argv);
        }
    }
    return false;
}

/* Only rank 0 reads the arguments; the other ranks serve. If the command needs no workers, they are released
 * first, because they wait for rank 0. */
static bool serve_or_release(int argc, char **argv)
{
    dm_session *s = NULL;
    bool other = tool_ranks() > 1 && tool_rank() != 0;
    if (wants_series(argc, argv)) {
        return false;
    }
    if (other || (tool_ranks() > 1 && !wants_workers(argc, argv))) {
        dm_status status = dm_init(NULL, &s);
        if (status == DM_OK) {
            status = dm_finalize(s, NULL);
        }
        if (!other) { /* rank 0 speaks for all */
            tool_complain(status);
        }
    }
    return other;
}

/* Called by exit(), that of argp behind --help too: results that could not be written are a failure. Who has
 * closed the pipe knows, and gets no message. */
static void check_output(void)
{
    bool failed = ferror(stdout) != 0;
    errno = 0;
    if (fflush(stdout) != 0 || failed) {
        int error = errno;
        if (error != EPIPE) {
            fprintf(stderr, "dmath: the output could not be written%s%s\n", error ? ": " : "",
                    error ? strerror(error) : "");
        }
        _exit(TOOL_FAILED);
    }
}

static bool watch_output(void)
{
    int none = -1;
    if (fcntl(STDOUT_FILENO, F_GETFD) < 0) { /* closed: writing must fail, and not go into the next file */
        none = open("/dev/null", O_RDONLY);
        (void)dup2(none, STDOUT_FILENO);
    }
    if (none > STDERR_FILENO) {
        close(none);
    }
    return atexit(check_output) == 0;
}

int main(int argc, char **argv)
{
    argp_err_exit_status = TOOL_USAGE;
    if (!watch_output()) {
        fprintf(stderr, "dmath: no memory\n");
        return TOOL_FAILED;
    }
    dm_status status = tool_ops_register();
    if (status != DM_OK) {
        tool_complain(status);
        return TOOL_FAILED;
    }
    if (serve_or_release(argc, argv)) {
        return 0;
    }
    if (argc > 1 && (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)) {
        printf("dmath %s\n", dm_version());
        return 0;
    }
    return tool_dispatch("dmath", commands, argc, argv);
}
