/* The tests of the operations in one program: CMake links every tests/ops/test_NAME.c into it, each main()
 * under the name test_NAME_main, and writes the table op_programs.h. So one start, under mpirun above all,
 * serves many of them.
 *
 *   test_ops --list    the names
 *   test_ops NAME...   these, one after another: test_add or add
 *   test_ops --all     all that can share a launch
 *   test_NAME          a link to this program runs that one */
#include "driver/touches.h"
#include "support/cases.h"

#include "op_programs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct program {
    const char *name;
    int (*run)(void);
    bool alone; /* it opens the session of a launch itself */
} program;

#define ROW(name, alone) {#name, name##_main, alone},
static const program programs[] = {OP_PROGRAMS(ROW)};
enum { PROGRAMS = sizeof programs / sizeof *programs, MOST = 2 * PROGRAMS };

static const program *find(const char *name)
{
    for (int i = 0; i < PROGRAMS; i++) {
        if (strcmp(name, programs[i].name) == 0 || strcmp(name, programs[i].name + strlen("test_")) == 0) {
            return &programs[i];
        }
    }
    return NULL;
}

/* By DMATH_TEST_ONLY. */
static bool wanted(const program *p)
{
    const char *only = getenv("DMATH_TEST_ONLY");
    for (const char *at = only; at && *at; at += strcspn(at, ","), at += *at == ',') {
        char name[80];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, ","), at);
        if (find(name) == p) {
            return true;
        }
    }
    return !only || !*only;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* In a launch a program that fails leaves arrays behind, which the next ones would take for their own. */
static int run_all(const program *const *chosen, int count)
{
    int failed = 0, done = 0;
    for (; done < count && !(failed && dmt_launched()); done++) {
        double begin = seconds();
        int wrong = chosen[done]->run() != 0;
        failed += wrong;
        printf("== %s %s, %.2f s\n", chosen[done]->name, wrong ? "FAILED" : "ok", seconds() - begin);
        fflush(stdout);
    }
    for (; done < count; done++) {
        printf("== %s not run\n", chosen[done]->name);
    }
    return failed;
}

static int run_together(const program *const *chosen, int count)
{
    for (int i = 0; i < count && dmt_launched(); i++) {
        if (chosen[i]->alone) {
            fprintf(stderr, "test_ops: %s needs a launch of its own\n", chosen[i]->name);
            return 2;
        }
    }
    int failed = dmt_hold() != 0 || run_all(chosen, count) != 0;
    return dmt_release() != 0 || failed;
}

static int list(void)
{
    for (int i = 0; i < PROGRAMS; i++) {
        puts(programs[i].name);
    }
    return 0;
}

/* Returns how many; -1: one that there is not. */
static int choose(int argc, char **argv, const program **chosen)
{
    int count = 0;
    if (argc == 2 && strcmp(argv[1], "--all") == 0) {
        for (int i = 0; i < PROGRAMS; i++) {
            if (!(programs[i].alone && dmt_launched()) && wanted(&programs[i])) {
                chosen[count++] = &programs[i];
            }
        }
        return count;
    }
    for (int i = 1; i < argc && i <= MOST; i++) {
        const program *p = find(argv[i]);
        if (!p) {
            fprintf(stderr, "test_ops: there is no %s (--list)\n", argv[i]);
            return -1;
        }
        if (wanted(p)) {
            chosen[count++] = p;
        }
    }
    return count;
}

int main(int argc, char **argv)
{
    const program *chosen[MOST];
    const char *slash = strrchr(argv[0], '/');
    const program *self = find(slash ? slash + 1 : argv[0]);
    if (self) {
        return self->run();
    }
    if (argc == 2 && strcmp(argv[1], "--list") == 0) {
        return list();
    }
    if (argc < 2) {
        fputs("usage: test_ops --list | --all | NAME...\n", stderr);
        return 2;
    }
    int count = choose(argc, argv, chosen);
    if (count <= 0) {
        puts("nothing to run");
        return count < 0 ? 2 : 0;
    }
    int failed = count == 1 ? chosen[0]->run() : run_together(chosen, count);
    const char *touches = getenv("DMATH_TEST_TOUCHES"), *paper = getenv("DMATH_TEST_PAPER");
    failed = (touches && dmt_touches_end(strcmp(touches, "all") == 0) > 0) || failed;
    return (paper && dmt_paper_end(strcmp(paper, "all") == 0) > 0) || failed;
}
