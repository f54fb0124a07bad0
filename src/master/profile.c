/* The profile: what each op took, from the ports of the endpoints and from the clock of the program's thread.
 */
#include "base/plain.h"
#include "base/process.h"
#include "base/sized.h"
#include "master/session.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The numbers of an op, of all endpoints together. */
typedef struct sums {
    int64_t calls, kernel_ns, send_ns, receive_ns, idle_ns, bytes, sent, flops[DMI_USAGE_FLOPS];
} sums;
enum { NUMBERS = sizeof(sums) / sizeof(int64_t) };
_Static_assert(sizeof(sums) == sizeof(dmi_usage), "the same numbers");

struct dmi_profiling {
    int64_t since_ns;
    int64_t waited_ns, waited_from_ns; /* of the program's thread; at the last reset */
    int64_t master_ns[DMI_OPS], wait_ns[DMI_OPS];
    sums before[DMI_OPS]; /* at the last reset */
};

dm_status dmi_profiling_start(dmi_session *s)
{
    s->profiling = calloc(1, sizeof *s->profiling);
    if (!s->profiling) {
        return dmi_fail(DM_ERR_NOMEM, "no memory for a profile");
    }
    s->profiling->since_ns = dmi_now_ns();
    return DM_OK;
}

void dmi_profiling_stop(dmi_session *s)
{
    free(s->profiling);
    s->profiling = NULL;
}

int64_t dmi_profile_waited(const dmi_session *s)
{
    return s->profiling->waited_ns;
}

void dmi_profile_waited_since(dmi_session *s, int64_t begin_ns)
{
    s->profiling->waited_ns += dmi_now_ns() - begin_ns;
}

void dmi_profile_called(dmi_session *s, int op, int64_t begin_ns, int64_t waited_ns)
{
    struct dmi_profiling *p = s->profiling;
    int64_t waited = p->waited_ns - waited_ns;
    p->wait_ns[op] += waited;
    p->master_ns[op] += dmi_now_ns() - begin_ns - waited;
}

static sums sum_of(const dmi_session *s, int op)
{
    sums all = {0};
    int64_t *to = (int64_t *)(void *)&all;
    for (int w = 0; w <= s->workers; w++) {
        const dmi_usage *u = &dmi_hub_port(&s->hub, w)->usage[op];
        const atomic_int_fast64_t *from = (const atomic_int_fast64_t *)(const void *)u;
        for (int i = 0; i < NUMBERS; i++) {
            to[i] += atomic_load_explicit(&from[i], memory_order_relaxed);
        }
    }
    return all;
}

/* The mean of a rate of all workers; 0: one does not know it. at: its place in a worker's rates. */
static double mean_rate(const dmi_session *s, int at)
{
    double sum = 0;
    for (int w = 0; w < s->workers; w++) {
        const dmi_usage_rates *r = &dmi_hub_port(&s->hub, w)->rates;
        const atomic_int_fast64_t *rate = (const atomic_int_fast64_t *)(const void *)r;
        double one = (double)atomic_load_explicit(&rate[at], memory_order_relaxed);
        if (one == 0) {
            return 0;
        }
        sum += one;
    }
    return sum / s->workers;
}

/* The rate in kernels as a part of the machine's: a worker with that rate would have taken so much of the time.
 */
static double part_of(const dmi_session *s, const sums *u)
{
    double seconds = (double)u->kernel_ns * 1e-9, flops_s = 0, memory = mean_rate(s, 0);
    double bytes_s = memory > 0 ? (double)u->bytes / memory : 0;
    for (int i = 0; i < DMI_USAGE_FLOPS; i++) {
        double rate = mean_rate(s, 1 + i);
        flops_s += rate > 0 ? (double)u->flops[i] / rate : 0;
    }
    return seconds > 0 ? DMI_MAX(flops_s, bytes_s) / seconds : 0;
}

static dm_profile_row row_of(const dmi_session *s, int op)
{
    const struct dmi_profiling *p = s->profiling;
    sums u = sum_of(s, op);
    int64_t *now = (int64_t *)(void *)&u;
    const int64_t *before = (const int64_t *)(const void *)&p->before[op];
    for (int i = 0; i < NUMBERS; i++) {
        now[i] -= before[i];
    }
    dm_profile_row row = {.size = sizeof row,
                          .op = dmi_ops[op].name,
                          .calls = u.calls,
                          .master_s = (double)p->master_ns[op] * 1e-9,
                          .waited_s = (double)p->wait_ns[op] * 1e-9,
                          .kernel_s = (double)u.kernel_ns * 1e-9,
                          .send_s = (double)u.send_ns * 1e-9,
                          .receive_s = (double)u.receive_ns * 1e-9,
                          .idle_s = (double)u.idle_ns * 1e-9,
                          .bytes = u.bytes,
                          .bytes_sent = u.sent,
                          .part = part_of(s, &u)};
    for (int i = 0; i < DMI_USAGE_FLOPS; i++) {
        row.flops += u.flops[i];
    }
    return row;
}

static double weight(const dm_profile_row *r)
{
    return r->kernel_s + r->send_s + r->idle_s + r->master_s;
}

static int compare(const void *a, const void *b)
{
    double x = weight(a), y = weight(b);
    return (x < y) - (x > y);
}

/* The ops that were called, those that took most first. */
static int rows_of(const dmi_session *s, dm_profile_row row[DMI_OPS])
{
    int count = 0;
    for (int op = 0; op < DMI_OPS; op++) {
        row[count] = row_of(s, op);
        count += row[count].calls > 0 || row[count].master_s > 0;
    }
    qsort(row, (size_t)count, sizeof *row, compare);
    return count;
}

/* --- the table --- */

enum { LINE = 256 };

/* Adds a number, or as much space where there is none. */
static void put(char line[LINE], int width, int digits, double value)
{
    size_t used = strlen(line);
    if (value > 0) {
        snprintf(line + used, LINE - used, " %*.*f", width, digits, value);
    } else {
        snprintf(line + used, LINE - used, " %*s", width, "");
    }
}

static void put_row(FILE *to, const dm_profile_row *r, int workers)
{
    char line[LINE];
    double ms = 1e3 / workers, per = r->kernel_s > 0 ? 1e-9 / r->kernel_s : 0;
    snprintf(line, sizeof line, "%-14s %9lld", r->op, (long long)r->calls);
    put(line, 9, 2, r->master_s * 1e3);
    put(line, 9, 2, r->waited_s * 1e3);
    put(line, 10, 2, r->kernel_s * ms);
    put(line, 9, 2, r->send_s * ms);
    put(line, 10, 2, r->receive_s * ms);
    put(line, 9, 2, r->idle_s * ms);
    put(line, 10, 3, (double)r->bytes * 1e-9);
    put(line, 9, 3, (double)r->bytes_sent * 1e-9);
    put(line, 10, 3, (double)r->flops * 1e-9);
    put(line, 8, 2, (double)r->bytes * per);
    put(line, 8, 2, (double)r->flops * per);
    put(line, 5, 2, r->part);
    size_t length = strlen(line);
    while (line[length - 1] == ' ') {
        length--;
    }
    fprintf(to, "%.*s\n", (int)length, line);
}

static bool put_table(const dmi_session *s, FILE *to)
{
    const struct dmi_profiling *p = s->profiling;
    dm_profile_row *row = malloc(DMI_OPS * sizeof *row);
    if (!row) {
        return false;
    }
    dmi_plain held;
    dmi_plain_enter(&held);
    int count = rows_of(s, row);
    int64_t in_calls = 0;
    for (int op = 0; op < DMI_OPS; op++) {
        in_calls += p->wait_ns[op];
    }
    fprintf(to,
            "profile of %.3f s, %d workers; the program's thread waited %.3f s, of that %.3f s in dm_sync and "
            "the like\n"
            "master, waited: ms of the program's thread. kernels to idle: ms of a worker. GB/s, Gflop/s: of a "
            "worker in kernels\n",
            (double)(dmi_now_ns() - p->since_ns) * 1e-9, s->workers,
            (double)(p->waited_ns - p->waited_from_ns) * 1e-9,
            (double)(p->waited_ns - p->waited_from_ns - in_calls) * 1e-9);
    fprintf(to, "%-14s %9s %9s %9s %10s %9s %10s %9s %10s %9s %10s %8s %8s %5s\n", "op", "calls", "master",
            "waited", "kernels", "send", "receive", "idle", "GB", "GB sent", "Gflop", "GB/s", "Gflop/s",
            "part");
    for (int i = 0; i < count; i++) {
        put_row(to, &row[i], s->workers);
    }
    dmi_plain_leave(&held);
    free(row);
    return true;
}

/* A pipe that nobody reads must not hold up the end of the session. */
static FILE *create(const char *path)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NONBLOCK | O_CLOEXEC, 0666);
    FILE *to = file >= 0 && fcntl(file, F_SETFL, O_WRONLY) == 0 ? fdopen(file, "w") : NULL;
    if (!to && file >= 0) {
        int error = errno;
        close(file);
        errno = error;
    }
    return to;
}

void dmi_profile_write(dmi_session *s)
{
    const char *path = s->config.profile;
    if (!s->profiling) {
        return;
    }
    bool standard = strcmp(path, "1") == 0;
    dmi_file_limit held;
    dmi_file_limit_enter(&held);
    FILE *to = standard ? stderr : create(path);
    bool ok = to && put_table(s, to);
    ok = to && (standard ? fflush(to) : fclose(to)) == 0 && ok;
    dmi_file_limit_leave(&held);
    if (!ok) {
        dmi_log(DMI_LOG_WARN, "profile: cannot write %s: %s", standard ? "the table" : path, strerror(errno));
    }
}

/* --- the calls --- */

static dm_status enter(dm_session *session, dmi_session **s)
{
    dm_status status = dmi_enter(session, s);
    if (status == DM_OK && !(*s)->profiling) {
        status =
            dmi_fail(DM_ERR_STATE, "%s: the session has no profile: set the option profile (DMATH_PROFILE=1)",
                     dmi_api_called());
    }
    return status == DM_OK ? dmi_wait(*s, (*s)->command) : status;
}

dm_status dm_profile(dm_session *session, char **text)
{
    dmi_session *s = NULL;
    dm_status status = enter(session, &s);
    if (status == DM_OK && !text) {
        status = dmi_fail(DM_ERR_ARG, "profile: text is NULL");
    }
    if (status != DM_OK) {
        return status;
    }
    char *made = NULL;
    size_t bytes = 0;
    FILE *to = open_memstream(&made, &bytes);
    bool ok = to && put_table(s, to);
    ok = to && fclose(to) == 0 && ok;
    if (!ok) {
        free(made);
        return dmi_fail(DM_ERR_NOMEM, "profile: no memory for the table");
    }
    *text = made;
    return DM_OK;
}

dm_status dm_profile_rows(dm_session *session, int room, dm_profile_row *rows, int *count)
{
    dmi_session *s = NULL;
    dm_status status = enter(session, &s);
    if (status == DM_OK && (room < 0 || (room > 0 && !rows) || !count)) {
        status = room < 0 ? dmi_fail(DM_ERR_ARG, "profile_rows: room is %d", room)
                          : dmi_fail(DM_ERR_ARG, "profile_rows: %s is NULL", count ? "rows" : "count");
    }
    if (status == DM_OK && room > 0) {
        status = dmi_sized_check(rows, DMI_SIZED_LEAST(dm_profile_row, part),
                                 "profile_rows: rows: set size of the first to sizeof(dm_profile_row)");
    }
    if (status != DM_OK) {
        return status;
    }
    dm_profile_row *row = malloc(DMI_OPS * sizeof *row);
    if (!row) {
        return dmi_fail(DM_ERR_NOMEM, "profile_rows: no memory");
    }
    int n = rows_of(s, row);
    size_t apart = room > 0 ? rows[0].size : 0;
    for (int i = 0; i < DMI_MIN(n, room); i++) {
        char *out = (char *)rows + (size_t)i * apart;
        memcpy(out, &apart, sizeof apart);
        dmi_sized_give(&row[i], sizeof row[i], out);
    }
    free(row);
    *count = n;
    return DM_OK;
}

dm_status dm_profile_reset(dm_session *session)
{
    dmi_session *s = NULL;
    dm_status status = enter(session, &s);
    if (status != DM_OK) {
        return status;
    }
    struct dmi_profiling *p = s->profiling;
    for (int op = 0; op < DMI_OPS; op++) {
        p->before[op] = sum_of(s, op);
        p->master_ns[op] = p->wait_ns[op] = 0;
    }
    p->waited_from_ns = p->waited_ns;
    p->since_ns = dmi_now_ns();
    return DM_OK;
}
