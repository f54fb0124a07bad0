#include "base/turns.h"
#include "base/base.h"
#include "base/process.h"

#include <pthread.h>
#include <string.h>

enum { MASTER, SLOTS = 1 + DMI_TURNS_WORKERS * DMI_TURNS_ROLES, NOBODY = -1 };

static struct {
    pthread_mutex_t lock;
    bool on, here[SLOTS];
    pthread_cond_t mine[SLOTS];
    int turn;
    uint64_t state; /* of the generator */
    dmi_turns_record record;
} turns = {.lock = PTHREAD_MUTEX_INITIALIZER, .turn = NOBODY};
static _Thread_local int me = NOBODY;

/* They are the parent's. */
static void no_turns(void)
{
    turns.on = false;
    turns.turn = me = NOBODY;
}
DMI_FORK_KEEP(&turns.lock, no_turns)

static int slot_of(int worker, int role)
{
    return 1 + worker * DMI_TURNS_ROLES + role;
}

/* splitmix64 */
static uint64_t draw(void)
{
    uint64_t x = turns.state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* The next one's turn; it may be the caller's again. */
static void pass_on(void)
{
    int there = 0, slot = MASTER;
    for (int i = 0; i < SLOTS; i++) {
        there += turns.here[i];
    }
    if (there == 0) {
        turns.turn = NOBODY;
        return;
    }
    int left = (int)(draw() % (uint64_t)there);
    while (!turns.here[slot] || left-- > 0) {
        slot++;
    }
    turns.turn = slot;
    turns.record.turns++;
    turns.record.hash = (turns.record.hash ^ (uint64_t)slot) * UINT64_C(0x100000001b3);
    pthread_cond_signal(&turns.mine[slot]);
}

static void wait_for_turn(void)
{
    while (turns.turn != me) {
        pthread_cond_wait(&turns.mine[me], &turns.lock);
    }
}

bool dmi_turns_start(uint64_t seed, int workers)
{
    pthread_mutex_lock(&turns.lock);
    bool mine = !turns.on && workers <= DMI_TURNS_WORKERS;
    if (mine) {
        memset(turns.here, 0, sizeof turns.here);
        for (int i = 0; i < SLOTS; i++) {
            pthread_cond_init(&turns.mine[i], NULL);
        }
        turns.on = true;
        turns.here[MASTER] = true;
        turns.turn = me = MASTER;
        turns.state = seed;
        turns.record = (dmi_turns_record){0};
    }
    pthread_mutex_unlock(&turns.lock);
    return mine;
}

void dmi_turns_stop(void)
{
    pthread_mutex_lock(&turns.lock);
    if (turns.on && me == MASTER) {
        turns.on = false;
        turns.turn = me = NOBODY;
    }
    pthread_mutex_unlock(&turns.lock);
}

static void set_here(int worker, int role, bool here)
{
    if (me != NOBODY) { /* the maker takes part */
        pthread_mutex_lock(&turns.lock);
        turns.here[slot_of(worker, role)] = here;
        pthread_mutex_unlock(&turns.lock);
    }
}

void dmi_turns_add(int worker, int role)
{
    set_here(worker, role, true);
}

void dmi_turns_remove(int worker, int role)
{
    set_here(worker, role, false);
}

void dmi_turns_begin(int worker, int role)
{
    pthread_mutex_lock(&turns.lock);
    int slot = worker < DMI_TURNS_WORKERS ? slot_of(worker, role) : NOBODY;
    if (turns.on && slot != NOBODY && turns.here[slot]) {
        me = slot;
        wait_for_turn();
    }
    pthread_mutex_unlock(&turns.lock);
}

void dmi_turns_end(void)
{
    if (me != NOBODY) {
        pthread_mutex_lock(&turns.lock);
        turns.here[me] = false;
        me = NOBODY;
        pass_on();
        pthread_mutex_unlock(&turns.lock);
    }
}

static bool is_here(int slot)
{
    pthread_mutex_lock(&turns.lock);
    bool here = turns.here[slot];
    pthread_mutex_unlock(&turns.lock);
    return here;
}

void dmi_turns_await(int worker, int role)
{
    while (me != NOBODY && is_here(slot_of(worker, role))) {
        (void)dmi_turns_yield();
    }
}

bool dmi_turns_yield(void)
{
    if (me == NOBODY) {
        return false;
    }
    pthread_mutex_lock(&turns.lock);
    pass_on();
    wait_for_turn();
    pthread_mutex_unlock(&turns.lock);
    return true;
}

bool dmi_turns_toss(void)
{
    if (!dmi_turns_yield()) {
        return false;
    }
    pthread_mutex_lock(&turns.lock);
    bool bit = draw() >> 63;
    pthread_mutex_unlock(&turns.lock);
    return bit;
}

dmi_turns_record dmi_turns_recorded(void)
{
    pthread_mutex_lock(&turns.lock);
    dmi_turns_record record = turns.record;
    pthread_mutex_unlock(&turns.lock);
    return record;
}
