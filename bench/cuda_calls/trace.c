/* Counters behind CUPTI's callbacks, one a function. */
#include "calls.h"

#include <cupti.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DOMAINS = 2, MOST_FUNCTIONS = 2048 };

static const CUpti_CallbackDomain domain_of[DOMAINS] = {CUPTI_CB_DOMAIN_RUNTIME_API,
                                                        CUPTI_CB_DOMAIN_DRIVER_API};

/* The callback has no other way to what it counts that would outlive every thread of the program. */
static struct {
    atomic_bool on;
    atomic_int_fast64_t count[DOMAINS][MOST_FUNCTIONS];
} seen;

static void CUPTIAPI called(void *user, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
    const CUpti_CallbackData *call = data;
    int at = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? 0 : 1;
    (void)user;
    if (call->callbackSite == CUPTI_API_ENTER && id < MOST_FUNCTIONS && atomic_load(&seen.on)) {
        atomic_fetch_add(&seen.count[at][id], 1);
    }
}

static bool done(CUptiResult result, const char *what)
{
    const char *text = "unknown";
    if (result != CUPTI_SUCCESS) {
        cuptiGetResultString(result, &text);
        fprintf(stderr, "%s: %s\n", what, text);
    }
    return result == CUPTI_SUCCESS;
}

bool calls_watch(void)
{
    CUpti_SubscriberHandle subscriber;
    return done(cuptiSubscribe(&subscriber, called, NULL), "cuptiSubscribe") &&
           done(cuptiEnableDomain(1, subscriber, domain_of[0]), "cuptiEnableDomain of the runtime") &&
           done(cuptiEnableDomain(1, subscriber, domain_of[1]), "cuptiEnableDomain of the driver");
}

void calls_count(bool on)
{
    for (int d = 0; d < DOMAINS && on; d++) {
        for (int i = 0; i < MOST_FUNCTIONS; i++) {
            atomic_store(&seen.count[d][i], 0);
        }
    }
    atomic_store(&seen.on, on);
}

typedef struct counted {
    const char *name;
    int64_t count;
} counted;

/* Those that were called; the names are CUPTI's. */
static int take(counted *list)
{
    int n = 0;
    for (int d = 0; d < DOMAINS; d++) {
        for (int i = 0; i < MOST_FUNCTIONS; i++) {
            const char *name = NULL;
            int64_t count = atomic_load(&seen.count[d][i]);
            if (count > 0) {
                bool named = cuptiGetCallbackName(domain_of[d], (uint32_t)i, &name) == CUPTI_SUCCESS && name;
                list[n++] = (counted){named ? name : "(a function without a name)", count};
            }
        }
    }
    return n;
}

static int by_count(const void *a, const void *b)
{
    const counted *x = a, *y = b;
    return x->count == y->count ? strcmp(x->name, y->name) : x->count < y->count ? 1 : -1;
}

call_totals calls_print(int rounds)
{
    static counted list[DOMAINS * MOST_FUNCTIONS];
    call_totals totals = {0};
    int n = take(list);
    qsort(list, (size_t)n, sizeof *list, by_count);
    for (int i = 0; i < n; i++) {
        bool refused = call_refused(list[i].name);
        printf("  %-44s %9lld %10.2f a round%s\n", list[i].name, (long long)list[i].count,
               (double)list[i].count / rounds, refused ? "   REFUSED" : "");
        totals.calls += list[i].count;
        totals.refused += refused ? list[i].count : 0;
    }
    return totals;
}

int64_t calls_of(const char *beginning)
{
    static counted list[DOMAINS * MOST_FUNCTIONS];
    int64_t sum = 0;
    int n = take(list);
    for (int i = 0; i < n; i++) {
        sum += strncmp(list[i].name, beginning, strlen(beginning)) == 0 ? list[i].count : 0;
    }
    return sum;
}
