/* One thread at a time, in an order that a seed gives (option fault=turns:SEED): an interleaving that fails,
 * fails again. The threads of a session take part: the master's, and of each worker the communication thread,
 * the compute thread and the thread of the background. One of them has the turn. It gives it away where it
 * would wait or sleep, and at the places that planted faults have in the executor; who is next, the seed says.
 * So no thread waits for anything but its turn, and no clock decides. For workers that are threads on CPUs, of
 * one session at a time, used by the thread that started it. */
#ifndef DMI_TURNS_H
#define DMI_TURNS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum dmi_turns_role { DMI_TURNS_COMMUNICATION, DMI_TURNS_COMPUTE, DMI_TURNS_BACKGROUND, DMI_TURNS_ROLES };
enum { DMI_TURNS_WORKERS = 64 };

/* The calling thread is the master's, and has the turn. False: another session has them, or there are too many
 * workers. */
bool dmi_turns_start(uint64_t seed, int workers);
/* All other threads have ended. */
void dmi_turns_stop(void);
/* Before a thread is made, by its maker; then the thread begins, which waits for its first turn, and ends. What
 * takes no part (turns are off) goes through all of these at once. */
void dmi_turns_add(int worker, int role);
void dmi_turns_begin(int worker, int role);
void dmi_turns_end(void);
/* The thread could not be made. */
void dmi_turns_remove(int worker, int role);
/* Before pthread_join: until that thread has ended. */
void dmi_turns_await(int worker, int role);
/* Gives the turn away and waits for the next one; false: the calling thread takes no part. */
bool dmi_turns_yield(void);
/* As dmi_turns_yield, and then a bit that the seed gives. */
bool dmi_turns_toss(void);

/* Of the turns since the last start: how many there were, and a hash of their order. */
typedef struct dmi_turns_record {
    uint64_t turns, hash;
} dmi_turns_record;
dmi_turns_record dmi_turns_recorded(void);

#endif
