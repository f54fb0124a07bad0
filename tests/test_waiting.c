/* How a thread waits: beside a long step, where there are too few cores, it sleeps; else it looks again for a
 * while. */
#include "comm/hub.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORKERS = 2, STEPS = 50 };
#define A_SECOND INT64_C(1000000000)

/* Looks again until the time to sleep has come; steps: how often the worker goes on to its next step meanwhile.
 */
static int64_t wait_beside(dmi_hub *hub, int steps)
{
    dmi_port *port = dmi_hub_port(hub, 1);
    dmi_backoff backoff = {0};
    int64_t begin = dmi_now_ns();
    int answer = DMI_WAIT_AGAIN;
    for (int i = 0; answer == DMI_WAIT_AGAIN; i++) {
        dmi_doing_set(&port->runs, (uint64_t)DMI_MIN(i, steps), 0, 0, 1);
        answer = dmi_backoff_step(&backoff, hub);
        assert_true(answer == DMI_WAIT_AGAIN || i >= steps);
        assert_true(dmi_now_ns() - begin < 60 * A_SECOND);
    }
    assert_int_equal(answer, DMI_WAIT_SLEEP);
    return dmi_now_ns() - begin;
}

static void sleeps_beside_a_long_step(void **state)
{
    (void)state;
    dmi_hub hub;
    assert_int_equal(dmi_hub_create(WORKERS + 1, 1 << 16, false, &hub), DM_OK);
    hub.oversubscribed = hub.tight = true;
    hub.spin_ns = 60 * A_SECOND; /* so that only the step can send it to sleep */
    atomic_store(&dmi_hub_port(&hub, 1)->now_busy, 1);
    wait_beside(&hub, 0);
    dmi_hub_close(&hub);
}

static void looks_again_beside_short_steps(void **state)
{
    (void)state;
    dmi_hub hub;
    assert_int_equal(dmi_hub_create(WORKERS + 1, 1 << 16, false, &hub), DM_OK);
    hub.oversubscribed = hub.tight = true;
    hub.spin_ns = 60 * A_SECOND;
    atomic_store(&dmi_hub_port(&hub, 1)->now_busy, 1);
    wait_beside(&hub, STEPS);
    dmi_hub_close(&hub);
}

static void others_spin_for_their_time(void **state)
{
    (void)state;
    dmi_hub hub;
    assert_int_equal(dmi_hub_create(WORKERS + 1, 1 << 16, false, &hub), DM_OK);
    hub.spin_ns = 2000000;
    atomic_store(&dmi_hub_port(&hub, 1)->now_busy, 1); /* there are cores enough */
    assert_true(wait_beside(&hub, 0) >= hub.spin_ns);
    hub.oversubscribed = hub.tight = true;
    atomic_store(&dmi_hub_port(&hub, 1)->now_busy, 0);
    assert_true(wait_beside(&hub, 0) >= hub.spin_ns);
    dmi_hub_close(&hub);
}

/* What another process's descriptor may be instead of the memory of a session. */
static void others_memory_is_refused(void **state)
{
    (void)state;
    dmi_hub hub;
    int file = memfd_create("no hub", MFD_CLOEXEC);
    assert_true(file >= 0 && ftruncate(file, 1 << 16) == 0);
    assert_int_equal(dmi_hub_attach((int)getpid(), file, &hub), DM_ERR_TRANSPORT);
    assert_non_null(strstr(dmi_error_text(), "is not control memory of dmath"));
    close(file);
    assert_int_equal(dmi_hub_attach((int)getpid(), file, &hub), DM_ERR_TRANSPORT);
    assert_non_null(strstr(dmi_error_text(), "cannot map control memory of process"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sleeps_beside_a_long_step),
        cmocka_unit_test(looks_again_beside_short_steps),
        cmocka_unit_test(others_spin_for_their_time),
        cmocka_unit_test(others_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
