/* Where workers run: places on a host described by a file, what is told of them, and threads that are really
 * there. The host has three sockets, each with a CPU, a NUMA node and a GPU: 0 and 1 with CPUs that this
 * process may use, 2 with one that no process here may. */
#include "base/fault.h"
#include "launch/placements.h"
#include "master/session.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OK(call) assert_int_equal((call), DM_OK)

enum { NO_CPU = CPU_SETSIZE - 1 };
static const char *const gpu[3] = {"0000:1b:00.0", "0000:9c:00.0", "0001:C0:00.0"};

/* The first two CPUs that this process may use; false: there is one alone. */
static bool two_cpus(int cpu[2])
{
    cpu_set_t allowed;
    int n = 0;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    for (int i = 0; i < NO_CPU && n < 2; i++) {
        if (CPU_ISSET((size_t)i, &allowed)) {
            cpu[n++] = i;
        }
    }
    return n == 2;
}

/* --- a host in a file, in hwloc's format --- */

/* As hwloc writes sets: 32 bits a word, the highest first. */
static const char *set_of(const int *bit, int n, char out[800])
{
    int top = 0, used = 0;
    for (int i = 0; i < n; i++) {
        top = bit[i] / 32 > top ? bit[i] / 32 : top;
    }
    for (int word = top; word >= 0; word--) {
        uint32_t value = 0;
        for (int i = 0; i < n; i++) {
            value |= bit[i] / 32 == word ? UINT32_C(1) << bit[i] % 32 : 0;
        }
        used += snprintf(out + used, 800 - (size_t)used, "%s0x%08x", word < top ? "," : "", (unsigned)value);
    }
    return out;
}

static void sets(FILE *f, const int *cpu, int ncpu, const int *node, int nnode)
{
    char c[800], n[800];
    set_of(cpu, ncpu, c);
    set_of(node, nnode, n);
    fprintf(f, "cpuset=\"%s\" complete_cpuset=\"%s\" nodeset=\"%s\" complete_nodeset=\"%s\"", c, c, n, n);
}

static void card(FILE *f, int *id, const char *bus, const char *type, const char *osdev, const char *os_type)
{
    fprintf(f,
            "<object type=\"PCIDev\" gp_index=\"%d\" pci_busid=\"%s\" pci_type=\"%s\" pci_link_speed=\"0.0\">",
            ++*id, bus, type);
    if (osdev) {
        fprintf(f, "<object type=\"OSDev\" gp_index=\"%d\" name=\"%s\" osdev_type=\"%s\"/>", ++*id, osdev,
                os_type);
    }
}

static void bridge(FILE *f, int *id, const char *buses, const char *own)
{
    fprintf(f, "<object type=\"Bridge\" gp_index=\"%d\" bridge_type=\"%d-1\" depth=\"%d\" bridge_pci=\"%s\"",
            ++*id, own != NULL, own != NULL, buses);
    if (own) {
        fprintf(f, " pci_busid=\"%s\" pci_type=\"0604 [10b5:8796] [10b5:8796] ca\" pci_link_speed=\"0.0\"",
                own);
    }
    fputs(">\n", f);
}

/* Socket 0: below one switch the GPU and a card (mlx5_0, ib0), beside the switch another card (mlx5_9). Socket
 * 1: a GPU below two switches and, elsewhere in the socket, eth7. Socket 2: a GPU alone. */
static void devices(FILE *f, int *id, int socket)
{
    static const char vga[] = "0302 [10de:2335] [10de:18be] a1", net[] = "0200 [15b3:1021] [15b3:0041] 00";
    static const char *const root[3] = {"0000:[16-30]", "0000:[90-a0]", "0001:[c0-c0]"};
    bridge(f, id, root[socket], NULL);
    if (socket == 0) {
        card(f, id, "0000:18:00.0", net, "mlx5_9", "3");
        fputs("</object>\n", f);
        bridge(f, id, "0000:[1a-1f]", "0000:19:00.0");
    } else if (socket == 1) {
        bridge(f, id, "0000:[9a-9c]", "0000:91:00.0");
        bridge(f, id, "0000:[9b-9c]", "0000:9a:00.0");
    }
    card(f, id, gpu[socket], vga, NULL, NULL);
    fputs(socket == 1 ? "</object></object></object>\n" : "</object>\n", f);
    if (socket == 0) {
        card(f, id, "0000:1c:00.0", net, "ib0", "2");
        fprintf(f,
                "<object type=\"OSDev\" gp_index=\"%d\" name=\"mlx5_0\" osdev_type=\"3\"/></object></object>\n",
                ++*id);
    } else if (socket == 1) {
        card(f, id, "0000:9d:00.0", net, "eth7", "2");
        fputs("</object>\n", f);
    }
    fputs("</object>\n", f);
}

static void write_host(const char *path, const int cpu[3])
{
    static const int nodes[3] = {0, 1, 2};
    int id = 1;
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
          "<topology version=\"2.0\">\n<object type=\"Machine\" os_index=\"0\" gp_index=\"1\" ",
          f);
    sets(f, cpu, 3, nodes, 3);
    fputs(">\n", f);
    for (int s = 0; s < 3; s++) {
        static const char *const kinds[] = {"Package", "NUMANode", "Core", "PU"};
        for (int k = 0; k < 4; k++) {
            fprintf(f, "<object type=\"%s\" os_index=\"%d\" gp_index=\"%d\" ", kinds[k], k == 3 ? cpu[s] : s,
                    ++id);
            sets(f, &cpu[s], 1, &nodes[s], 1);
            fputs(k == 1 ? "/>\n" : ">\n", f);
        }
        fputs("</object></object>\n", f); /* PU and Core */
        devices(f, &id, s);
        fputs("</object>\n", f);
    }
    fputs("</object></topology>\n", f);
    assert_int_equal(fclose(f), 0);
}

/* hwloc then describes that host in place of this one; false: this build has no hwloc. */
static bool pretend_host(int cpu[3])
{
    dmi_topology *t = dmi_topology_load();
    bool have = t != NULL;
    dmi_topology_free(t);
    if (have) {
        cpu[1] = cpu[2] = NO_CPU;
        if (!two_cpus(cpu)) {
            cpu[1] = NO_CPU - 1;
        }
        write_host("host.xml", cpu);
        setenv("HWLOC_XMLFILE", "host.xml", 1);
    }
    return have;
}

static int forget_host(void **state)
{
    (void)state;
    unsetenv("HWLOC_XMLFILE");
    unsetenv("DMATH_EMULATED_GPUS");
    unsetenv("DMATH_EMULATED_BUS_IDS");
    return 0;
}

static cpu_set_t cpu_set(int n, ...)
{
    cpu_set_t set;
    va_list list;
    CPU_ZERO(&set);
    va_start(list, n);
    for (int i = 0; i < n; i++) {
        CPU_SET((size_t)va_arg(list, int), &set);
    }
    va_end(list);
    return set;
}

/* --- tests --- */

static void test_near(void **state)
{
    (void)state;
    int cpu[3] = {0};
    static const char *const cards[3] = {"mlx5_0", "eth7", "none-or-any"}, *const numas[3] = {"0", "1", "2"};
    if (!pretend_host(cpu)) {
        skip();
    }
    dmi_topology *t = dmi_topology_load();
    assert_non_null(t);
    for (int s = 0; s < 3; s++) {
        dmi_near near;
        cpu_set_t want = cpu_set(1, cpu[s]);
        dmi_topology_near(t, gpu[s], NULL, &near);
        assert_true(near.known && CPU_EQUAL(&near.cpus, &want));
        assert_string_equal(near.numa, numas[s]);
        if (s < 2) {
            assert_string_equal(near.card, cards[s]);
        }
        dmi_topology_near(t, NULL, &want, &near); /* CPUs: of the cards in the socket, that of verbs */
        assert_true(near.known && CPU_EQUAL(&near.cpus, &want));
        assert_string_equal(near.numa, numas[s]);
        assert_true(s != 1 || strcmp(near.card, "eth7") == 0);
    }
    dmi_near near;
    cpu_set_t two = cpu_set(2, cpu[0], cpu[1]);
    dmi_topology_near(t, NULL, &two, &near);
    assert_true(near.known && strcmp(near.numa, "0-1") == 0);
    static const char *const nowhere[] = {"0000:1b:00.1", "", "emulated", "0000:1d:00.0"};
    for (int i = 0; i < 4; i++) {
        dmi_topology_near(t, nowhere[i], &two, &near);
        assert_false(near.known);
        assert_string_equal(near.numa, "unknown");
        assert_string_equal(near.card, "unknown");
    }
    cpu_set_t outside = cpu_set(1, NO_CPU - 2); /* which that host has not */
    dmi_topology_near(t, NULL, &outside, &near);
    assert_false(near.known);
    dmi_topology_free(t);
    dmi_fault_plant("malloc:1");
    assert_null(dmi_topology_load());
    dmi_fault_plant("");
    dmi_topology_near(NULL, gpu[0], &two, &near);
    assert_false(near.known);
    dmi_topology_free(NULL);
}

static void test_choice(void **state)
{
    (void)state;
    dmi_near near = {.known = true, .cpus = cpu_set(3, 4, 5, 6)}, unknown = {.known = false};
    cpu_set_t allowed = cpu_set(3, 1, 5, 6), other = cpu_set(2, 0, 1), both = cpu_set(2, 5, 6);
    dmi_placement place;
    dmi_placement_choose(&near, &allowed, true, &place);
    assert_true(place.how == DMI_PLACEMENT_BOUND && CPU_EQUAL(&place.cpus, &both));
    dmi_placement_choose(&near, &other, true, &place);
    assert_int_equal(place.how, DMI_PLACEMENT_KEPT);
    assert_false(dmi_placement_enter(&place, NULL));
    dmi_placement_choose(&near, &allowed, false, &place);
    assert_int_equal(place.how, DMI_PLACEMENT_STARTED);
    dmi_placement_choose(&unknown, &allowed, true, &place);
    assert_int_equal(place.how, DMI_PLACEMENT_STARTED);
    cpu_set_t none = cpu_set(0), last = cpu_set(1, NO_CPU), before, after;
    dmi_placement_core(&none, 3, &place);
    assert_int_equal(place.how, DMI_PLACEMENT_STARTED);
    dmi_placement_core(&last, 3, &place);
    assert_true(place.how == DMI_PLACEMENT_BOUND && CPU_EQUAL(&place.cpus, &last));
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    if (!CPU_ISSET(NO_CPU, &before)) { /* the system refuses: the thread stays where it is */
        assert_false(dmi_placement_enter(&place, NULL));
        assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
        assert_true(CPU_EQUAL(&before, &after));
    }
}

static void test_words(void **state)
{
    (void)state;
    char text[DMI_CPUS_TEXT], line[DMI_PLACEMENT_LINE];
    cpu_set_t set = cpu_set(6, 0, 1, 2, 7, 9, 10);
    dmi_cpus_describe(&set, text, sizeof text);
    assert_string_equal(text, "0-2,7,9-10");
    dmi_cpus_describe(&set, text, 9);
    assert_string_equal(text, "0-2,7...");
    cpu_set_t ends = cpu_set(3, 0, NO_CPU - 1, NO_CPU);
    dmi_cpus_describe(&ends, text, sizeof text);
    assert_string_equal(text, "0,1022-1023");
    for (int i = 0; i < CPU_SETSIZE; i += 2) {
        CPU_SET((size_t)i, &set);
    }
    dmi_cpus_describe(&set, text, sizeof text);
    assert_true(strlen(text) < sizeof text && strcmp(text + strlen(text) - 3, "...") == 0);
    static const char *const transport[] = {"ipc", NULL, "ipc", "staged mpi", "ipc", "ipc", "staged mpi"};
    dmi_placement_report p = {
        .worker = 1, .pid = 7, .host = "h", .device = "G", .bus = "0:1", .numa = "0", .card = "none"};
    dmi_placement_peers(transport, 7, &p);
    assert_string_equal(p.peers, "ipc to 0,2,4-5, staged mpi to 3,6");
    dmi_near near = {.known = true, .numa = "0", .card = "none", .cpus = cpu_set(2, 8, 9)};
    cpu_set_t allowed = cpu_set(2, 0, 1);
    dmi_placement place;
    dmi_placement_choose(&near, &allowed, true, &place);
    dmi_placement_describe(&near, &allowed, &place, &p);
    dmi_placement_line(&p, line);
    assert_string_equal(line,
                        "worker 1: host h, process 7, G 0:1, NUMA 0, cpus 0-1 (as started: 8-9 near the device "
                        "may not be used), network none, ipc to 0,2,4-5, staged mpi to 3,6");
    dmi_placement_peers((const char *const[]){NULL}, 1, &p);
    assert_string_equal(p.peers, "no peers");
}

/* How many threads of this process run on exactly these CPUs; NULL: on any. */
static int threads_on(const cpu_set_t *cpus)
{
    int n = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *d; (d = readdir(tasks));) {
        cpu_set_t its;
        if (d->d_name[0] != '.' && sched_getaffinity(atoi(d->d_name), sizeof its, &its) == 0) {
            n += !cpus || CPU_EQUAL(&its, cpus);
        }
    }
    closedir(tasks);
    return n;
}

static dmi_session *open_session(const char *options, dm_session **out)
{
    dm_config config = DM_CONFIG_INIT;
    dmi_session *s = NULL;
    config.options = options;
    config.workers = 3;
    if (dm_init(&config, out) != DM_OK) {
        fail_msg("%s: %s", options, dm_error_message());
    }
    OK(dmi_enter(*out, &s));
    return s;
}

/* Three workers whose GPUs are emulated, with addresses of that host. */
static void test_bound(void **state)
{
    (void)state;
    int cpu[3] = {0};
    char buses[100], number[16];
    dm_session *session;
    cpu_set_t before, after, first;
    if (!dmi_device_gpu(DMI_DEVICE_EMULATED) || !two_cpus(cpu) || !pretend_host(cpu)) {
        skip();
    }
    snprintf(buses, sizeof buses, "%s,%s,%s", gpu[0], gpu[1], gpu[2]);
    setenv("DMATH_EMULATED_BUS_IDS", buses, 1);
    setenv("DMATH_EMULATED_GPUS", "3", 1);
    first = cpu_set(1, cpu[0]);
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    int threads = threads_on(NULL);
    dmi_session *s = open_session("device=emulated,placement=1", &session);
    for (int w = 0; w < 3; w++) {
        const dmi_placement_report *p = &s->placement[w];
        snprintf(number, sizeof number, "%d", w);
        assert_int_equal(p->worker, w);
        assert_int_equal(p->pid, getpid());
        assert_string_equal(p->numa, number);
        assert_string_equal(p->bus, gpu[w]);
        snprintf(number, sizeof number, "%d", cpu[w]);
        assert_true(w == 2 || (strcmp(p->cpus, number) == 0 && strcmp(p->binding, "bound") == 0));
    }
    assert_non_null(strstr(s->placement[2].binding, "may not be used"));
    assert_string_equal(s->placement[0].card, "mlx5_0");
    assert_string_equal(s->placement[1].peers, "direct to 0,2");
    /* All threads of a worker, its streams too; the program's own thread is where it was. A worker that has done
     * something has begun to run, and goes to its place first. */
    dm_array x;
    OK(dm_matrix(session, DM_F32, 3, 3, &x));
    OK(dm_fill(session, x, 1));
    OK(dm_sync(session));
    OK(dm_array_destroy(session, x));
    assert_int_equal(threads_on(&first), (threads_on(NULL) - threads) / 3);
    assert_true(threads_on(&first) > 3);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
    OK(dm_finalize(session, NULL));
    s = open_session("device=emulated,placement=1,bind=none", &session);
    assert_string_equal(s->placement[0].binding, "as started");
    assert_string_equal(s->placement[0].card, "mlx5_0");
    assert_true(CPU_COUNT(&before) == 1 || threads_on(&first) == 0);
    OK(dm_finalize(session, NULL));
    s = open_session("device=emulated", &session); /* bound, and nothing is told */
    assert_null(s->placement);
    assert_true(threads_on(&first) > 1);
    OK(dm_finalize(session, NULL));
}

static void test_cpu_workers(void **state)
{
    (void)state;
    dm_session *session;
    dmi_session *s = open_session("device=cpu,placement=1", &session);
    for (int w = 0; w < 3; w++) {
        assert_string_equal(s->placement[w].device, "cpu");
        assert_string_equal(s->placement[w].binding, "as started");
    }
    assert_string_equal(s->placement[1].peers, "direct to 0,2");
    OK(dm_finalize(session, NULL));
}

/* One CPU each, of those that the process may use; from the first one on again for the third worker of two. */
static void test_cores(void **state)
{
    (void)state;
    int cpu[3] = {0};
    char number[16];
    dm_session *session;
    cpu_set_t before, after, two;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    if (!two_cpus(cpu)) {
        skip();
    }
    two = cpu_set(2, cpu[0], cpu[1]);
    assert_int_equal(sched_setaffinity(0, sizeof two, &two), 0);
    dmi_session *s = open_session("device=cpu,placement=1,bind=cores", &session);
    for (int w = 0; w < 3; w++) {
        snprintf(number, sizeof number, "%d", cpu[w % 2]);
        assert_string_equal(s->placement[w].cpus, number);
        assert_string_equal(s->placement[w].binding, "bound");
    }
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&two, &after)); /* the program's own thread is where it was */
    OK(dm_finalize(session, NULL));
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_near, forget_host),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_words),
        cmocka_unit_test_teardown(test_bound, forget_host),
        cmocka_unit_test_teardown(test_cpu_workers, forget_host),
        cmocka_unit_test(test_cores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
