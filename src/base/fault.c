/* Faults planted for tests. One for the process, like the level of the log: what they count is the process's.
 */
#include "base/fault.h"
#include "base/base.h"
#include "base/turns.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Every call of the library is counted before it is known what fails, so nothing here allocates. */
static const struct {
    const char *name;
    int error;
} kinds[] = {{"malloc", ENOMEM}, {"read", EIO},  {"write", EIO}, {"fsync", EIO},    {"rename", EIO},
             {"open", EIO},      {"close", EIO}, {"death", 0},   {"delay", 0},      {"message", 0},
             {"control", 0},     {"spin", 0},    {"turns", 0},   {"driver", ENOMEM}};

atomic_int dmi_fault_planted;
static struct {
    atomic_int_fast64_t calls;
    int64_t at; /* the number of the call that fails; of delay the seed */
    int worker; /* its calls alone are counted; ANY_WORKER: all */
    int error;
    bool is_short, stays; /* stays: all calls from that number on */
    char text[64];
} fault;
enum { ANY_WORKER = -2, SPIN_S = 8 };
static _Thread_local int my_worker = -1;

void dmi_fault_worker(int worker)
{
    my_worker = worker;
}

int64_t dmi_fault_calls(void)
{
    return atomic_load(&fault.calls);
}

bool dmi_fault_is_short(void)
{
    return fault.is_short;
}

/* The forms are checked by the configuration. */
void dmi_fault_plant(const char *text)
{
    if (atomic_load(&dmi_fault_planted) && strncmp(fault.text, text, sizeof fault.text - 1) == 0) {
        return;
    }
    atomic_store(&dmi_fault_planted, 0);
    for (int kind = 0; kind < DMI_COUNT(kinds); kind++) {
        size_t length = strlen(kinds[kind].name);
        if (strncmp(text, kinds[kind].name, length) != 0 || text[length] != ':') {
            continue;
        }
        char *rest = NULL;
        fault.at = strtoll(text + length + 1, &rest, 10);
        fault.worker = strncmp(rest, ":worker=", 8) == 0 ? (int)strtol(rest + 8, NULL, 10) : ANY_WORKER;
        size_t end = strlen(rest);
        fault.stays = end >= 3 && strcmp(rest + end - 3, ":on") == 0;
        fault.error = strcmp(rest, ":enospc") == 0 ? ENOSPC : kinds[kind].error;
        fault.is_short = strcmp(rest, ":short") == 0;
        strncpy(fault.text, text, sizeof fault.text - 1);
        atomic_store(&fault.calls, 0);
        atomic_store(&dmi_fault_planted, kind + 1);
    }
}

/* splitmix64 */
static uint64_t mixed(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

bool dmi_fault_due(int kind)
{
    if (fault.worker != ANY_WORKER && fault.worker != my_worker) {
        return false;
    }
    if (kind == DMI_FAULT_TURNS) {
        return dmi_turns_toss();
    }
    int64_t call = atomic_fetch_add(&fault.calls, 1) + 1;
    if (kind == DMI_FAULT_DELAY) {
        return mixed((uint64_t)fault.at * 0x10001 + (uint64_t)call) & 1;
    }
    if (fault.stays ? call < fault.at : call != fault.at) {
        return false;
    }
    if (kind == DMI_FAULT_DEATH) {
        raise(SIGKILL);
    }
    errno = fault.error;
    return true;
}

static void spin(void)
{
    struct timespec t = {0};
    time_t end = 0;
    while (end == 0 || t.tv_sec < end) {
        (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        end = end ? end : t.tv_sec + SPIN_S;
    }
}

/* Both places are where turns (base/turns.h) pass on. */
void dmi_fault_step_now(void)
{
    if (!dmi_turns_yield()) {
        (void)dmi_fault(DMI_FAULT_DEATH);
        if (dmi_fault(DMI_FAULT_SPIN)) {
            spin();
        }
    }
}

bool dmi_fault_later_now(void)
{
    return dmi_fault(DMI_FAULT_TURNS) || dmi_fault(DMI_FAULT_DELAY);
}
