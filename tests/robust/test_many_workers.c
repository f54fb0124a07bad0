/* Far more workers than there are cores, or memory for: an error that says so, soon, with nothing left behind;
 * or a session whose workers take little each. In processes of their own, which are given little address space,
 * and whose memory is looked at. */
#include "robust.h"
#include "support/child.h"

#include <inttypes.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { FAR_TOO_MANY = 3000, MANY = 200 };
#ifdef __SANITIZE_ADDRESS__
enum { OWN_ALLOCATOR = 1 };
#else
enum { OWN_ALLOCATOR = 0 };
#endif

/* Of /proc/self/status, in its unit. */
static int64_t process_has(const char *key)
{
    char line[256];
    int64_t value = -1;
    FILE *from = fopen("/proc/self/status", "r");
    CHECK(from);
    while (fgets(line, sizeof line, from)) {
        if (strncmp(line, key, strlen(key)) == 0) {
            value = strtoll(line + strlen(key) + 1, NULL, 10);
        }
    }
    fclose(from);
    return value;
}

static dm_status start(int workers, dm_session **s)
{
    dm_config config = {.size = sizeof config, .workers = workers, .options = "device=cpu,log=error"};
    return dm_init(&config, s);
}

/* Every worker has a row; the sum goes through all of them. */
static void use(dm_session *s, int workers)
{
    dm_array x, sums;
    double value = 0;
    CHECK(dm_matrix(s, DM_F64, workers, 600, &x) == DM_OK && dm_vector(s, DM_F64, 600, &sums) == DM_OK);
    CHECK(dm_fill(s, x, 1) == DM_OK && dm_sum_dim(s, x, 0, sums) == DM_OK);
    CHECK(dm_item(s, sums, (int64_t[]){599}, &value) == DM_OK && value == workers);
}

_Noreturn static void refused(int gib, const char *words)
{
    struct rlimit most = {(rlim_t)gib << 30, (rlim_t)gib << 30};
    dm_session *s = NULL;
    CHECK(setrlimit(RLIMIT_AS, &most) == 0);
    double begin = seconds();
    int64_t resident = process_has("VmRSS"), threads = process_has("Threads");
    dm_status status = start(FAR_TOO_MANY, &s);
    fprintf(stderr, "%d GiB, %.1f s: %s: %s\n", gib, seconds() - begin, dm_status_name(status),
            dm_error_message());
    CHECK(status == DM_ERR_NOMEM && strstr(dm_error_message(), words));
    CHECK(seconds() - begin < 30);
    threads += sysconf(_SC_NPROCESSORS_ONLN); /* the BLAS library's own may have begun */
    for (int i = 0; i < 200 && process_has("Threads") > threads;
         i++) { /* joined, and yet in /proc for a moment */
        usleep(10000);
    }
    CHECK(process_has("Threads") <= threads);
    CHECK(process_has("VmRSS") - resident < 256 << 10);
    CHECK(start(2, &s) == DM_OK);
    use(s, 2);
    CHECK(dm_finalize(s, &(int64_t){0}) == DM_OK);
    _exit(0);
}

/* No memory for what each pair of workers needs. */
_Noreturn static void no_control_memory(void)
{
    refused(4, "control memory for 3000 workers");
}

/* No memory for the threads and queues of all workers. */
_Noreturn static void no_executors(void)
{
    refused(24, " of 3000");
}

/* A worker that has small arrays alone takes at most a huge page, and a quarter of it before it has any. Of
 * address space it takes two stacks, its queues and a part of what slabs may take; the C library has some GiB.
 */
_Noreturn static void little_each(void)
{
    const int64_t at_start = 512, in_use = 2048 + 1024, space = (16 + 8) << 10, others = 3 << 20; /* KiB */
    int64_t slabs = (int64_t)sysconf(_SC_PHYS_PAGES) * (sysconf(_SC_PAGESIZE) >> 10) / 16;
    dm_session *s = NULL;
    int64_t before = process_has("VmRSS"), space_before = process_has("VmSize");
    CHECK(start(MANY, &s) == DM_OK);
    int64_t begun = process_has("VmRSS") - before;
    use(s, MANY);
    int64_t used = process_has("VmRSS") - before;
    fprintf(stderr, "%d workers: %" PRId64 " KiB each at the start, %" PRId64 " in use\n", MANY, begun / MANY,
            used / MANY);
    CHECK(begun < MANY * at_start && used < MANY * in_use);
    CHECK(process_has("VmSize") - space_before < MANY * space + others + slabs);
    CHECK(dm_finalize(s, &(int64_t){0}) == DM_OK);
    _exit(0);
}

static void in_child(void (*function)(void))
{
    int result = -1;
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(200);
        function();
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 0);
}

static void test_far_too_many(void **state)
{
    (void)state;
    if (OWN_ALLOCATOR) {
        skip(); /* the sanitizer's shadow memory needs more address space than the limits leave */
    }
    in_child(no_control_memory);
    in_child(no_executors);
}

static void test_many(void **state)
{
    (void)state;
    if (OWN_ALLOCATOR) {
        skip();
    }
    in_child(little_each);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_far_too_many), cmocka_unit_test(test_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
