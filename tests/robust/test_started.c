/* Programs that the process starts have none of the library's files, whatever moment they are started at: all
 * are close-on-exec from the start. */
#include "../support/folder.h"
#include "robust.h"

#include <dirent.h>
#include <dlfcn.h>
#include <dmath/checkpoint.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>

static char folder[64] = "/tmp/dmath-started-XXXXXX", found[4096];
static bool before[1024]; /* descriptors of the program's own, and of other libraries */
static atomic_int stop, looks;

/* A stream that is closed soon is hardly ever seen. */
FILE *fopen(const char *path, const char *how)
{
    FILE *(*real)(const char *, const char *);
    *(void **)&real = dlsym(RTLD_NEXT, "fopen");
    if (strncmp(path, folder, strlen(folder)) == 0 && !strchr(how, 'e')) {
        snprintf(found, sizeof found, "%s is opened with \"%s\"", path, how);
    }
    return real(path, how);
}

static void look(void)
{
    for (int i = 3; i < 1024; i++) {
        int flags = before[i] ? -1 : fcntl(i, F_GETFD);
        char name[300] = "", path[32];
        if (flags >= 0 && !(flags & FD_CLOEXEC)) {
            snprintf(path, sizeof path, "/proc/self/fd/%d", i);
            (void)!readlink(path, name, sizeof name - 1);
            if (strcmp(name, "/dev/urandom") != 0) { /* jansson's, for a moment, once in a process */
                snprintf(found, sizeof found, "descriptor %d, %s", i, name);
            }
        }
    }
    looks++;
}

static void *look_always(void *unused)
{
    while (!atomic_load(&stop)) {
        look();
    }
    return unused;
}

static int look_inside(const dm_task *task)
{
    (void)task;
    look();
    return 0;
}

/* What opens files: journal, timeline, profile, signals; saves and loads; checkpoints; reports. */
static void work(const char *device)
{
    char options[512], path[128];
    snprintf(options, sizeof options,
             "%s,log=error,interrupt=1,catch_signals=1,journal=%s/journal,trace=%s/trace,profile=%s/profile",
             device, folder, folder, folder);
    dm_session *s = open_session(2, options);
    dm_array a = make_matrix(s, 40, NULL, 1), b;
    snprintf(path, sizeof path, "%s/a.npy", folder);
    OK(dm_array_save(s, a, path));
    OK(dm_array_load(s, path, NULL, &b));
    OK(dm_apply(s, "look", 1, &a, (int[]){DM_READ}, NULL, 0));
    dm_checkpoint_item item = DM_KEEP_ARRAY("a", a);
    dm_event event;
    snprintf(path, sizeof path, "%s/series", folder);
    for (int i = 0; i < 5; i++) {
        OK(dm_checkpoint_save(s, path, 1, &item, NULL, &event));
        look();
        OK(dm_event_wait(s, event, 60));
    }
    OK(dm_checkpoint_load(s, path, 1, &item));
    look();
    OK(dm_finalize(s, &(int64_t){0}));
}

static bool has(const char *device)
{
    dm_session *s = NULL;
    dm_config config = DM_CONFIG_INIT;
    config.workers = 1;
    config.options = device;
    return dm_init(&config, &s) == DM_OK && dm_finalize(s, NULL) == DM_OK;
}

static void test_descriptors(void **state)
{
    (void)state;
    pthread_t thread;
    for (int i = 0; i < 1024; i++) {
        before[i] = fcntl(i, F_GETFD) >= 0;
    }
    assert_int_equal(pthread_create(&thread, NULL, look_always, NULL), 0);
    work("device=cpu");
    if (has("device=emulated")) { /* else the build has CUDA */
        work("device=emulated");
    }
    atomic_store(&stop, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(looks > 20);
    assert_string_equal(found, "");
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return dmt_remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_descriptors, deadline)};
    setenv("DMATH_EMULATED_GPUS", "2", 1);
    OK(dm_register("look", look_inside));
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
