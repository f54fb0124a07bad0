/* Has a worker made no progress for longer than it may? */
#include "base/process.h"
#include "master/session.h"

/* What a worker gets through at the least, for each second of processor time: operations of products, bytes
 * that it moves. A kernel may do much with a byte (an expression of a hundred functions, a sort): its bytes
 * count so many times. */
#define SLOWEST_RATE 20e6
#define KERNEL_FACTOR 16
enum { SAMPLE_NS = 200000000, LATE_NS = 100000000 };

static bool unfinished(const dmi_session *s, const dmi_port *port)
{
    return atomic_load(&port->completed) < s->command;
}

static uint64_t sum_of_progress(dmi_session *s)
{
    uint64_t sum =
        atomic_load(&s->engine.lane[DMI_LANE_RECV].done) + atomic_load(&s->engine.lane[DMI_LANE_SEND].done);
    for (int i = 0; i < s->workers; i++) {
        dmi_port *port = dmi_hub_port(&s->hub, i);
        sum += atomic_load(&port->completed) + (uint64_t)atomic_load(&port->tally.all.steps) +
               atomic_load(&port->consumed);
    }
    return sum;
}

/* Of a worker's two threads; of a worker of another host, as it was reported. */
static void times_of(const dmi_port *port, dmi_thread_times *compute, dmi_thread_times *other)
{
    *compute = *other = (dmi_thread_times){0};
    if (port->pid > 0) {
        (void)dmi_thread_times_get(port->pid, atomic_load(&port->compute_thread), compute);
        (void)dmi_thread_times_get(port->pid, atomic_load(&port->communication_thread), other);
    } else {
        compute->cpu_ns = atomic_load(&port->cpu_ns);
        compute->waited_ns = atomic_load(&port->waited_ns);
    }
}

/* In the time since the last look (0: there was none) was the thread ready, without a processor? The kernel counts a wait
 * when it is over; before, the thread is one that is ready and has not run. */
static int64_t starved_for(const dmi_thread_times *t, int64_t cpu_ns, int64_t waited_ns, int64_t since)
{
    bool waits = t->state == 'R' && t->cpu_ns == cpu_ns;
    return DMI_MAX(t->waited_ns - waited_ns, waits ? since : 0);
}

/* Looks at the threads of all workers that have something to do. Returns the time since the last look in which the
 * communication thread of one of them, or its compute thread in front of its next step, had no processor: they need next to
 * nothing to move on. */
static int64_t sample(dmi_session *s, int64_t since, int64_t now)
{
    int64_t starved = 0;
    for (int i = 0; i < s->workers; i++) {
        dmi_port *port = dmi_hub_port(&s->hub, i);
        dmi_watched *seen = &s->watched[i];
        if (!unfinished(s, port)) {
            continue;
        }
        dmi_thread_times compute, other;
        times_of(port, &compute, &other);
        if (since == 0) {
            *seen = (dmi_watched){
                .begun_cpu_ns = compute.cpu_ns, .begun_waited_ns = compute.waited_ns, .moved_ns = now};
        } else {
            int64_t begins = atomic_load(&port->now_busy)
                                 ? 0
                                 : starved_for(&compute, seen->cpu_ns, seen->waited_ns, since);
            int64_t carries = starved_for(&other, seen->other_cpu_ns, seen->other_waited_ns, since);
            starved = DMI_MAX(starved, DMI_MAX(begins, carries));
        }
        if (compute.cpu_ns + compute.waited_ns != seen->cpu_ns + seen->waited_ns) {
            seen->moved_ns = now;
        }
        seen->cpu_ns = compute.cpu_ns;
        seen->waited_ns = compute.waited_ns;
        seen->other_cpu_ns = other.cpu_ns;
        seen->other_waited_ns = other.waited_ns;
    }
    return starved;
}

/* May the worker go on with what it is doing? */
static bool may_go_on(const dmi_session *s, int worker, int64_t now, double quiet)
{
    const dmi_port *port = dmi_hub_port(&s->hub, worker);
    const dmi_watched *seen = &s->watched[worker];
    int kind = atomic_load(&port->now_step);
    double limit = s->config.watchdog_s;
    if (!unfinished(s, port) || !atomic_load(&port->now_busy)) {
        return false;
    }
    double held = (double)(atomic_load(&port->tally.memory[DMI_MEM_ARRAYS]) +
                           atomic_load(&port->tally.memory[DMI_MEM_WORKSPACE]) +
                           atomic_load(&port->tally.memory[DMI_MEM_REPLICAS]));
    quiet -= (double)(seen->waited_ns - seen->begun_waited_ns) / 1e9;
    if (kind == DMI_STEP(task)) {
        return quiet < 10 * limit;
    }
    /* a worker without a compute thread has a GPU, and is busy with host work alone */
    bool host = seen->cpu_ns == 0 || (kind >= DMI_STEP_KERNEL && kind < DMI_STEP_KINDS &&
                                      dmi_kernels[kind - DMI_STEP_KERNEL].traits & DMI_TRAIT_HOST);
    if (host) {
        return quiet < 10 * limit + held / SLOWEST_RATE;
    }
    double reach = (double)atomic_load(&port->now_bytes);
    double work = (KERNEL_FACTOR * reach + (double)atomic_load(&port->now_flops)) / SLOWEST_RATE;
    return (double)(seen->cpu_ns - seen->begun_cpu_ns) / 1e9 < limit + work &&
           (double)(now - seen->moved_ns) / 1e9 < limit;
}

bool dmi_watchdog_bites(dmi_session *s, dmi_watch *w)
{
    if (s->config.watchdog_s <= 0) {
        return false;
    }
    int64_t now = dmi_now_ns(), since = w->looked_ns ? now - w->looked_ns : 0;
    uint64_t sum = sum_of_progress(s);
    w->looked_ns = now;
    if (w->moved_ns == 0 || sum != w->last_sum) {
        *w = (dmi_watch){.moved_ns = now, .looked_ns = now, .last_sum = sum};
        return false;
    }
    if (since > LATE_NS) { /* the master itself was stopped, or had no processor: nor may others have run */
        w->late_ns += since - LATE_NS;
        for (int i = 0; i < s->workers; i++) {
            s->watched[i].moved_ns = DMI_MIN(now, s->watched[i].moved_ns + since);
        }
    }
    if (w->sampled_ns == 0 || now - w->sampled_ns > SAMPLE_NS) {
        int64_t starved = sample(s, w->sampled_ns ? now - w->sampled_ns : 0, now);
        w->moved_ns = DMI_MIN(now, w->moved_ns + DMI_MAX(starved, w->late_ns));
        w->late_ns = 0;
        w->sampled_ns = now;
    }
    double quiet = (double)(now - w->moved_ns) / 1e9;
    if (quiet > s->config.watchdog_s / 4 && !w->warned) {
        char text[2048];
        dmi_stuck_describe(s, quiet, text, sizeof text);
        dmi_log(DMI_LOG_WARN, "%s", text);
        w->warned = true;
    }
    if (quiet <= s->config.watchdog_s) {
        return false;
    }
    bool some = false;
    for (int i = 0; i < s->workers && !some; i++) {
        some = may_go_on(s, i, now, quiet);
    }
    return !some;
}
