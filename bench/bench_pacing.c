/* Copies from every GPU of the host to every other one, in turns (in turn t from GPU g to g + t), each with the
 * raise of a counter behind it, and nothing else: what it costs that senders drift apart, and what it costs to
 * keep them in step (docs/adr/0013). All work is on the streams before it begins; GPU g begins g times some
 * microseconds late.
 *
 *   bench_pacing [MIB...]     default 2 8 16 32
 *
 * Paced: a copy waits for the counter of what came in the round before. Status 77: fewer than three GPUs. */
#include "bench_time.h"
#include "device/runtime.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    MOST_GPUS = 16,
    COPIES = 36,
    SAMPLES = 9,
    WARM = 2,
    NUMBERS = 64,
    LATE_BYTES = 28 << 20,
    MOST_SIZES = 16
};

typedef struct mode {
    const char *name;
    int streams; /* in turn; 0: one for each receiver */
    bool in_step;
} mode;

static const mode modes[] = {
    {"one stream", 1, false},          {"one stream, in step", 1, true},         {"two streams", 2, false},
    {"two streams, in step", 2, true}, {"a stream for each receiver", 0, false},
};

typedef struct gpu {
    char *from, *to, *spare; /* to: a place for each sender; spare: for what makes it late */
    uint32_t *arrived, *numbers, *gate;
    dmi_stream stream[MOST_GPUS];
    dmi_event begin, end, last[MOST_GPUS];
} gpu;

static gpu all[MOST_GPUS];
static int gpus;

static void check(dm_status status)
{
    if (status != DM_OK) {
        fprintf(stderr, "bench_pacing: %s\n", dmi_error_text());
        exit(1);
    }
}

static void *take(int64_t bytes)
{
    void *p = dmi_cu_malloc(bytes);
    if (!p) {
        fprintf(stderr, "bench_pacing: no memory\n");
        exit(1);
    }
    check(dmi_cu_zero(p, bytes));
    return p;
}

static void make(int g, int64_t bytes)
{
    uint32_t numbers[NUMBERS];
    gpu *x = &all[g];
    for (uint32_t i = 0; i < NUMBERS; i++) {
        numbers[i] = i;
    }
    check(dmi_cu_use(g));
    for (int i = 0; i < gpus; i++) {
        if (i != g && dmi_cu_can_peer(g, i)) {
            check(dmi_cu_peer(i));
        }
        check(dmi_cu_stream_create(&x->stream[i]));
        check(dmi_cu_event_create(false, &x->last[i]));
    }
    check(dmi_cu_event_create(true, &x->begin));
    check(dmi_cu_event_create(true, &x->end));
    x->from = take(bytes > LATE_BYTES ? bytes : LATE_BYTES);
    x->spare = take(LATE_BYTES);
    x->to = take(bytes * gpus);
    x->arrived = take(sizeof numbers);
    x->gate = take(sizeof numbers);
    x->numbers = take(sizeof numbers);
    check(dmi_cu_move(x->numbers, numbers, sizeof numbers));
}

/* Turn n = 1, 2, ... of GPU g: its copies, in order, on the mode's streams. */
static void copy(const mode *m, int g, int n, int64_t bytes)
{
    int turn = (n - 1) % (gpus - 1) + 1, round = (n - 1) / (gpus - 1), to = (g + turn) % gpus;
    gpu *x = &all[g];
    dmi_stream s = x->stream[m->streams == 0 ? turn : n % m->streams];
    if (m->in_step && n > 1) {
        int before = (n - 2) % (gpus - 1) + 1, heard = (n - 2) / (gpus - 1) + 1;
        check(dmi_cu_wait_value(s, &x->arrived[(g - before + gpus) % gpus], (uint32_t)heard));
    }
    check(dmi_cu_copy(s, all[to].to + g * bytes, x->from, bytes));
    check(dmi_cu_copy(s, &all[to].arrived[g], &x->numbers[round + 1], sizeof(uint32_t)));
}

/* Microseconds a copy, of the slowest GPU. */
static double run(const mode *m, int64_t bytes, bool late)
{
    int copies = COPIES / (gpus - 1) * (gpus - 1);
    double worst = 0, seconds;
    uint32_t open = 1;
    for (int g = 0; g < gpus; g++) {
        gpu *x = &all[g];
        check(dmi_cu_use(g));
        check(dmi_cu_zero(x->arrived, NUMBERS * sizeof(uint32_t)));
        check(dmi_cu_zero(x->gate, sizeof open));
        for (int i = 0; i < gpus; i++) {
            check(dmi_cu_wait_value(x->stream[i], x->gate, open));
            if (i == 0) {
                check(dmi_cu_event_record(x->begin, x->stream[0]));
            }
        }
    }
    for (int n = -gpus; n <= copies; n++) {
        for (int g = 0; g < gpus; g++) {
            check(dmi_cu_use(g));
            if (n > 0) {
                copy(m, g, n, bytes);
            }
            for (int i = 0; late && n <= 0 && n + gpus < g && i < gpus; i++) { /* g times, on each stream */
                check(dmi_cu_copy(all[g].stream[i], all[g].spare, all[g].from, LATE_BYTES));
            }
        }
    }
    for (int g = 0; g < gpus; g++) {
        gpu *x = &all[g];
        check(dmi_cu_use(g));
        for (int i = 1; i < gpus; i++) {
            check(dmi_cu_event_record(x->last[i], x->stream[i]));
            check(dmi_cu_event_after(x->stream[0], x->last[i]));
        }
        check(dmi_cu_event_record(x->end, x->stream[0]));
    }
    for (int g = 0; g < gpus; g++) {
        check(dmi_cu_use(g));
        check(dmi_cu_move(all[g].gate, &open, sizeof open));
    }
    for (int g = 0; g < gpus; g++) {
        check(dmi_cu_use(g));
        check(dmi_cu_stream_wait(all[g].stream[0]));
        check(dmi_cu_event_between(all[g].begin, all[g].end, &seconds));
        worst = seconds > worst ? seconds : worst;
    }
    return worst * 1e6 / copies;
}

int main(int argc, char **argv)
{
    static char *sizes[] = {"2", "8", "16", "32"};
    char **size = argc > 1 ? argv + 1 : sizes;
    int count = argc > 1 ? argc - 1 : 4;
    int64_t most = 1, mib[MOST_SIZES];
    gpus = dmi_cu_devices() < MOST_GPUS ? dmi_cu_devices() : MOST_GPUS;
    if (gpus < 3) {
        fprintf(stderr, "bench_pacing: skipped: %d GPUs, and of two neither meets another sender\n", gpus);
        return 77;
    }
    for (int i = 0; i < count; i++) {
        char *end = NULL;
        mib[i % MOST_SIZES] = strtol(size[i], &end, 10);
        if (i >= MOST_SIZES || *end || mib[i] < 1 || mib[i] > 4096) {
            fprintf(stderr, "bench_pacing: '%s' is no size of 1 to 4096 MiB, or one too many\n", size[i]);
            return 2;
        }
        most = mib[i] > most ? mib[i] : most;
    }
    for (int g = 0; g < gpus; g++) {
        make(g, most << 20);
    }
    for (int late = 0; late < 2; late++) {
        for (size_t m = 0; m < sizeof modes / sizeof *modes; m++) {
            for (int i = 0; i < count; i++) {
                double us[SAMPLES];
                for (int k = -WARM; k < SAMPLES; k++) {
                    double one = run(&modes[m], mib[i] << 20, late != 0);
                    us[k < 0 ? 0 : k] = one;
                }
                qsort(us, SAMPLES, sizeof *us, by_value);
                printf("{\"bench\":\"turns\",\"mode\":\"%s\",\"late\":%d,\"mib\":%s,\"gpus\":%d,\"us\":%.1f,"
                       "\"min\":%.1f,\"max\":%.1f}\n",
                       modes[m].name, late, size[i], gpus, us[SAMPLES / 2], us[0], us[SAMPLES - 1]);
                fflush(stdout);
            }
        }
    }
    return 0; /* the process's end gives all of it back */
}
