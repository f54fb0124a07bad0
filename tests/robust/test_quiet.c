/* A session without a launcher opens no socket. */
#include "robust.h"

#include <dirent.h>

static int sockets(void)
{
    int count = 0;
    DIR *dir = opendir("/proc/self/fd");
    assert_non_null(dir);
    for (struct dirent *e = readdir(dir); e; e = readdir(dir)) {
        char path[300], to[100] = "";
        snprintf(path, sizeof path, "/proc/self/fd/%s", e->d_name);
        count += readlink(path, to, sizeof to - 1) > 0 && strncmp(to, "socket:", 7) == 0;
    }
    closedir(dir);
    return count;
}

static void test_no_socket(void **state)
{
    (void)state;
    int before = sockets();
    dm_session *s = open_session(3, "");
    dm_array a = make_matrix(s, 64, NULL, 1), b;
    assert_int_equal(sockets(), before);
    OK(dm_array_save(s, a, "quiet.npy"));
    OK(dm_array_load(s, "quiet.npy", NULL, &b));
    OK(dm_matmul(s, a, b, a) == DM_ERR_OVERLAP ? DM_OK : DM_ERR_INTERNAL);
    OK(dm_copy(s, a, b));
    OK(dm_sync(s));
    assert_int_equal(sockets(), before);
    OK(dm_array_destroy(s, a));
    OK(dm_array_destroy(s, b));
    close_session(s);
    assert_int_equal(sockets(), before);
    assert_int_equal(unlink("quiet.npy"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup(test_no_socket, deadline)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
