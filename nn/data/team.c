/* The threads take runs of rows in order; each makes one in a page of its own and puts it. */
#include "data/team.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct member {
    nn_team *team;
    pthread_t thread;
    nn_page page; /* of a run */
} member;

struct nn_team {
    const nn_feed_type *type;
    void *state;
    nn_rows rows;
    pthread_mutex_t lock;
    pthread_cond_t begun, ended; /* what the threads, what the taker waits for */
    member member[NN_FEED_THREADS];
    int threads;
    bool stop;
    int64_t run; /* rows that a thread takes at once */
    /* the batch */
    int64_t batch, next, left; /* row to be made next; rows that are not done yet */
    nn_put_rows put;
    void *context;
    nn_page *told;
    int64_t failed; /* where the first run with an error begins */
    char **why; /* [rows.count]: what is wrong with the records of the run that begins there; NULL: nothing */
};

enum { RUN_BYTES = 1 << 16 }; /* small rows are made as many at once as fit in it, */
enum { RUNS = 4 };            /* but so that each thread has as many runs of a batch */

static nn_rows run_from(const nn_team *t, int64_t row)
{
    nn_rows run = t->rows;
    run.first += row;
    run.count = t->rows.count - row < t->run ? t->rows.count - row : t->run;
    return run;
}

static int64_t rows_of_run(const nn_rows *rows, int threads)
{
    int64_t bytes = 1, most = rows->count / (RUNS * threads);
    for (int i = 0; i < rows->tops; i++) {
        bytes += rows->each[i] * (i == 0 && rows->images ? 1 : (int64_t)sizeof(float));
    }
    most = most > RUN_BYTES / bytes ? RUN_BYTES / bytes : most;
    return most < 1 ? 1 : most;
}

/* --- threads */
/* With the lock held. */
static void note(nn_team *t, int64_t row, const nn_page *p)
{
    t->told->damaged += p->damaged;
    t->why[row] = p->damaged > 0 ? strdup(p->why) : NULL;
    if (p->status != DM_OK && row < t->failed) {
        t->failed = row;
        t->told->status = p->status;
        snprintf(t->told->error, sizeof t->told->error, "%s", p->error);
    }
}

/* With the lock held, but not while rows are made. Those behind a run that has failed are not made. */
static void make_run(nn_team *t, nn_page *p)
{
    const int64_t row = t->next;
    const nn_rows run = run_from(t, row);
    t->next += run.count;
    if (row < t->failed) {
        pthread_mutex_unlock(&t->lock);
        p->damaged = 0;
        p->why[0] = 0;
        p->status = t->type->make(t->state, t->batch, &run, p);
        if (p->status == DM_OK) {
            t->put(t->context, run.first, run.count, p);
        } else {
            snprintf(p->error, sizeof p->error, "%s", dm_error_message());
        }
        pthread_mutex_lock(&t->lock);
        note(t, row, p);
    }
    t->left -= run.count;
    if (t->left == 0) {
        pthread_cond_signal(&t->ended);
    }
}

static void *make_rows(void *context)
{
    member *m = context;
    nn_team *t = m->team;
    pthread_mutex_lock(&t->lock);
    while (!t->stop) {
        if (t->next < t->rows.count) {
            make_run(t, &m->page);
        } else {
            pthread_cond_wait(&t->begun, &t->lock);
        }
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* --- opening and closing */
static dm_status start(nn_team *t, int wanted)
{
    const nn_rows run = run_from(t, 0);
    dm_status status = DM_OK;
    while (status == DM_OK && t->threads < wanted) {
        member *m = &t->member[t->threads];
        m->team = t;
        status = nn_page_make(&run, &m->page);
        if (status == DM_OK && pthread_create(&m->thread, NULL, make_rows, m) != 0) {
            status = dm_error_set(DM_ERR_IO, "no thread for the data can be started");
        }
        t->threads += status == DM_OK;
    }
    return t->threads > 0 ? DM_OK : status;
}

dm_status nn_team_open(const nn_feed_type *type, void *state, const nn_rows *rows, int beside, int sharing,
                       nn_team **out)
{
    nn_team *t = calloc(1, sizeof *t);
    char **why = calloc((size_t)rows->count + 1, sizeof *why);
    *out = NULL;
    if (!t || !why) {
        free(t);
        free(why);
        return dm_error_no_memory("the batches of a data layer", sizeof *t);
    }
    t->type = type;
    t->state = state;
    t->rows = *rows;
    t->next = rows->count;
    t->why = why;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->begun, NULL);
    pthread_cond_init(&t->ended, NULL);
    const int threads = type->in_order ? 1 : nn_feed_threads(beside, sharing);
    t->run = rows_of_run(rows, threads);
    dm_status status = start(t, threads < rows->count ? threads : (int)rows->count);
    if (status != DM_OK) {
        nn_team_close(t);
        return status;
    }
    *out = t;
    return DM_OK;
}

void nn_team_close(nn_team *t)
{
    if (!t) {
        return;
    }
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_broadcast(&t->begun);
    pthread_mutex_unlock(&t->lock);
    for (int i = 0; i < t->threads; i++) {
        pthread_join(t->member[i].thread, NULL);
    }
    for (int i = 0; i < NN_FEED_THREADS; i++) {
        nn_page_drop(&t->member[i].page);
    }
    pthread_cond_destroy(&t->ended);
    pthread_cond_destroy(&t->begun);
    pthread_mutex_destroy(&t->lock);
    free(t->why);
    free(t);
}

/* --- a batch */
/* As nn_page_damaged would have noted them one after the other. */
static void tell_why(nn_team *t)
{
    size_t used = 0;
    t->told->why[0] = 0;
    for (int64_t row = 0; row < t->rows.count; row++) {
        const char *line = t->why[row] ? t->why[row] : "";
        for (size_t n; *line; line += n) {
            n = strcspn(line, "\n") + 1; /* each ends with one */
            if (n < sizeof t->told->why - used) {
                memcpy(t->told->why + used, line, n);
                used += n;
                t->told->why[used] = 0;
            }
        }
        free(t->why[row]);
        t->why[row] = NULL;
    }
}

void nn_team_make(nn_team *t, int64_t batch, nn_put_rows put, void *context, nn_page *told)
{
    told->status = DM_OK;
    told->damaged = 0;
    pthread_mutex_lock(&t->lock);
    t->batch = batch;
    t->put = put;
    t->context = context;
    t->told = told;
    t->failed = INT64_MAX;
    t->left = t->rows.count;
    t->next = 0;
    pthread_cond_broadcast(&t->begun);
    while (t->left > 0) {
        pthread_cond_wait(&t->ended, &t->lock);
    }
    pthread_mutex_unlock(&t->lock);
    tell_why(t);
}
