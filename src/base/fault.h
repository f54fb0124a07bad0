/* Faults planted for tests: the K-th allocation, read, write, ... of the process fails. Off, each place costs
 * one branch that is always predicted. fault_calls.h has the places. */
#ifndef DMI_FAULT_H
#define DMI_FAULT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order of their names in fault.c. */
enum dmi_fault_kind {
    DMI_FAULT_MALLOC,
    DMI_FAULT_READ,
    DMI_FAULT_WRITE,
    DMI_FAULT_FSYNC,
    DMI_FAULT_RENAME,
    DMI_FAULT_OPEN,
    DMI_FAULT_CLOSE,
    DMI_FAULT_DEATH,
    DMI_FAULT_DELAY,
    DMI_FAULT_MESSAGE,
    DMI_FAULT_CONTROL,
    DMI_FAULT_SPIN,  /* no fault: a step takes 8 seconds of processor time more */
    DMI_FAULT_TURNS, /* no fault: base/turns.h */
    DMI_FAULT_DRIVER /* what emulated GPUs ask the host for: a call of their driver fails */
};

extern atomic_int dmi_fault_planted; /* 0: nothing; else 1 + enum dmi_fault_kind */

/* Counts one more call of a planted kind: shall this one fail? Sets errno where it does. */
bool dmi_fault_due(int kind);
static inline bool dmi_fault(int kind)
{
    return __builtin_expect(atomic_load_explicit(&dmi_fault_planted, memory_order_relaxed) == kind + 1, 0) &&
           dmi_fault_due(kind);
}

/* An allocation of so many bytes has failed on this thread: the next DM_ERR_NOMEM of it says so (status.c). 0:
 * forget it. */
void dmi_memory_missed(size_t bytes);

/* Takes the text of option fault: "malloc:5", "malloc:5:worker=1", "write:2:enospc". Any other text takes away
 * what is planted. The text that is planted already goes on counting. */
void dmi_fault_plant(const char *text);
/* Calls of the planted kind so far. */
int64_t dmi_fault_calls(void);
/* The calling thread works for this worker. The master and threads of the user are -1, which they need not say.
 */
void dmi_fault_worker(int worker);
/* The file whose write is to fail: does only a part of it go there first? */
bool dmi_fault_is_short(void);
/* fault=death:K: counts a step; the K-th does not return, for the process is killed as by the kernel.
 * fault=spin:K: the K-th is slow. */
void dmi_fault_step_now(void);
static inline void dmi_fault_step(void)
{
    if (__builtin_expect(atomic_load_explicit(&dmi_fault_planted, memory_order_relaxed), 0)) {
        dmi_fault_step_now();
    }
}
/* fault=turns:SEED: are the session's threads to run one at a time? */
static inline bool dmi_fault_turns(void)
{
    return __builtin_expect(atomic_load_explicit(&dmi_fault_planted, memory_order_relaxed) == DMI_FAULT_TURNS + 1, 0);
}
/* fault=delay:SEED: shall what has arrived, or could be sent, be left for a later look? Of a sequence of looks
 * about a half. */
bool dmi_fault_later_now(void);
static inline bool dmi_fault_later(void)
{
    return __builtin_expect(atomic_load_explicit(&dmi_fault_planted, memory_order_relaxed), 0) && dmi_fault_later_now();
}

#endif
