/* The thread of watch.h. Invariant: it holds its own lock neither while it looks nor while it calls
 * a request, so that whoever holds a request's lock may wake it. */
#include "coordinator/watch.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "coordinator/census.h"
#include "coordinator/wire.h"

#define TROUPE_NS_PER_S            UINT64_C(1000000000)
#define TROUPE_NS_PER_MS           UINT64_C(1000000)
#define TROUPE_WATCH_TICK_NS       (100 * TROUPE_NS_PER_MS)
#define TROUPE_WATCHDOG_DEFAULT_NS (60 * TROUPE_NS_PER_S)
/* How long a stop may take before it becomes a cancellation. */
#define TROUPE_STOP_NS TROUPE_NS_PER_S
/* Ticks without a run before the thread sleeps until it is woken: a program that runs step after
 * step does not pay for waking it. */
#define TROUPE_WATCH_IDLE_TICKS 10
/* Looking takes at most one part in so many of a thread's time. */
#define TROUPE_WATCH_SHARE 100

struct troupe_watch {
    struct troupe_session *session;
    pthread_t thread;
    bool is_started;
    uint64_t watchdog_ns; /* 0: never */

    pthread_mutex_t lock;   /* guards what follows */
    bool is_self_contained; /* rank 0's option; others hear of it with a probe */
    pthread_cond_t woken;
    bool is_woken, is_leaving;
    uint64_t asked_round; /* of a probe that is to be answered; 0: none */
    bool asked_details;
    struct troupe_letter **answers; /* rank 0: of the round, by rank */
    int answer_count;
    uint64_t round; /* rank 0: the newest */
    _Atomic(bool) is_parked;

    /* Of the thread alone; rank 0. */
    uint64_t round_ns;           /* when the round was asked; 0: it is answered */
    uint64_t look_ns;            /* how long the last look took */
    bool wants_details;          /* in the next round */
    bool was_quiet;              /* in the round before: all ranks */
    uint64_t quiet_activity;     /* and what had been done by then */
    struct troupe_census *ranks; /* of the round */
};

static bool is_first(const struct troupe_watch *watch)
{
    return watch->session->runtime->transport->rank == 0;
}

static int rank_count(const struct troupe_watch *watch)
{
    return watch->session->runtime->transport->size;
}

/* ---- Messages ---- */

static void take_probe_locked(struct troupe_watch *watch, const void *data, size_t bytes)
{
    struct troupe_wire_reader reader;
    troupe_wire_reader_init(&reader, data, bytes);
    uint64_t round = troupe_wire_get_u64(&reader);
    bool with_details = troupe_wire_get_u64(&reader) != 0;
    bool is_self_contained = troupe_wire_get_u64(&reader) != 0;
    if (troupe_wire_close(&reader, "probe") != TROUPE_OK) {
        troupe_log(TROUPE_LOG_WARNING, "%s", troupe_status_message());
        return;
    }
    watch->asked_round = round;
    watch->asked_details = with_details;
    watch->is_self_contained = is_self_contained;
}

static void take_answer_locked(struct troupe_watch *watch, int from, const void *data, size_t bytes)
{
    struct troupe_wire_reader reader;
    troupe_wire_reader_init(&reader, data, bytes);
    if (troupe_wire_get_u64(&reader) != watch->round)
        return; /* late */
    struct troupe_letter *letter = malloc(sizeof(*letter) + bytes);
    if (!letter)
        return; /* as if it were late: another round follows */
    letter->from = from;
    letter->bytes = bytes;
    memcpy(letter->data, data, bytes);
    watch->answer_count += watch->answers[from] == NULL;
    free(watch->answers[from]);
    watch->answers[from] = letter;
}

bool troupe_watch_receive(struct troupe_session *session, int from, uint32_t kind, const void *data,
                          size_t bytes)
{
    struct troupe_watch *watch = session->watch;
    if (kind != TROUPE_MESSAGE_PROBE && kind != TROUPE_MESSAGE_CENSUS)
        return false;
    pthread_mutex_lock(&watch->lock);
    if (kind == TROUPE_MESSAGE_PROBE)
        take_probe_locked(watch, data, bytes);
    else if (is_first(watch))
        take_answer_locked(watch, from, data, bytes);
    watch->is_woken = true;
    pthread_cond_signal(&watch->woken);
    pthread_mutex_unlock(&watch->lock);
    return true;
}

static enum troupe_status take_census(struct troupe_watch *watch, bool with_details,
                                      struct troupe_census *out)
{
    pthread_mutex_lock(&watch->lock);
    bool is_self_contained = watch->is_self_contained;
    pthread_mutex_unlock(&watch->lock);
    return troupe_census_take(watch->session, with_details, is_self_contained, out);
}

static void answer_probe(struct troupe_watch *watch, uint64_t round, bool with_details)
{
    struct troupe_census census;
    struct troupe_text text;
    if (take_census(watch, with_details, &census) != TROUPE_OK)
        return; /* the round times out */
    census.round = round;
    troupe_text_init(&text);
    troupe_census_put(&text, &census);
    if (troupe_session_send(watch->session, 0, TROUPE_MESSAGE_CENSUS, &text) != TROUPE_OK)
        troupe_log(TROUPE_LOG_WARNING, "answering a probe: %s", troupe_status_message());
    troupe_text_fini(&text);
    troupe_census_fini(&census);
}

static void ask(struct troupe_watch *watch, uint64_t now)
{
    struct troupe_text text;
    troupe_text_init(&text);
    pthread_mutex_lock(&watch->lock);
    watch->answer_count = 0;
    for (int rank = 1; rank < rank_count(watch); rank++) {
        free(watch->answers[rank]);
        watch->answers[rank] = NULL;
    }
    watch->round = ++watch->session->runtime->rounds;
    troupe_wire_put_u64(&text, watch->round);
    troupe_wire_put_u64(&text, watch->wants_details);
    troupe_wire_put_u64(&text, watch->is_self_contained);
    pthread_mutex_unlock(&watch->lock);
    watch->round_ns = now;
    if (troupe_session_send_all(watch->session, TROUPE_MESSAGE_PROBE, &text) != TROUPE_OK)
        troupe_log(TROUPE_LOG_WARNING, "asking other ranks: %s", troupe_status_message());
    troupe_text_fini(&text);
}

/* ---- Judging ---- */

static void forget_censuses(struct troupe_watch *watch)
{
    for (int rank = 0; rank < rank_count(watch); rank++)
        troupe_census_fini(&watch->ranks[rank]);
}

/* Reads the answers of this round; false when one is unreadable. */
static bool read_answers(struct troupe_watch *watch)
{
    bool is_whole = true;
    pthread_mutex_lock(&watch->lock);
    for (int rank = 1; rank < rank_count(watch); rank++) {
        struct troupe_letter *letter = watch->answers[rank];
        watch->answers[rank] = NULL;
        if (!letter ||
            troupe_census_read(letter->data, letter->bytes, &watch->ranks[rank]) != TROUPE_OK)
            is_whole = false;
        free(letter);
    }
    watch->answer_count = 0;
    pthread_mutex_unlock(&watch->lock);
    return is_whole;
}

/* What every rank says of what waits, what does not complete first. free() frees. */
static char *report(const struct troupe_watch *watch, const char *first)
{
    struct troupe_text text;
    troupe_text_init(&text);
    troupe_text_add(&text, first);
    for (int rank = 0; rank < rank_count(watch); rank++)
        if (watch->ranks[rank].causes)
            troupe_text_add(&text, watch->ranks[rank].causes);
        else
            troupe_text_addf(&text, "; rank %d does not answer", rank);
    for (int rank = 0; rank < rank_count(watch); rank++)
        if (watch->ranks[rank].waits)
            troupe_text_add(&text, watch->ranks[rank].waits);
    char *result = troupe_text_take(&text);
    troupe_text_fini(&text);
    return result;
}

static void interrupt(struct troupe_request *request, enum troupe_status status, char *message)
{
    troupe_request_interrupt(request, status, message ? message : "(no memory)");
    free(message);
}

static void end_stalled(const struct troupe_watch *watch, struct troupe_request *request,
                        uint64_t ns)
{
    char first[96];
    snprintf(first, sizeof(first), "stalled: no firing has completed for %.3g s",
             (double)ns / (double)TROUPE_NS_PER_S);
    interrupt(request, TROUPE_DEADLINE_EXCEEDED, report(watch, first));
}

/* Ends the runs in which nothing has happened for too long; asks for details first. */
static void judge_stalls(struct troupe_watch *watch, struct troupe_request *const *requests,
                         int count, uint64_t now)
{
    for (int i = 0; i < count; i++) {
        struct troupe_request *request = requests[i];
        uint64_t activity =
            troupe_census_activity(watch->ranks, rank_count(watch), request->number);
        if (activity != request->global_activity || request->global_ns == 0) {
            request->global_activity = activity;
            request->global_ns = now;
        }
        if (watch->watchdog_ns == 0 || now - request->global_ns < watch->watchdog_ns)
            continue;
        if (watch->ranks[0].has_details)
            end_stalled(watch, request, now - request->global_ns);
        else
            watch->wants_details = true;
    }
}

/* Two quiet censuses with nothing done between, the second with details. */
static void judge_deadlock(struct troupe_watch *watch, struct troupe_request *const *requests,
                           int count)
{
    int ranks = rank_count(watch);
    uint64_t activity = troupe_census_activity(watch->ranks, ranks, 0);
    bool is_quiet = troupe_census_is_quiet(watch->ranks, ranks);
    bool is_same = is_quiet && watch->was_quiet && activity == watch->quiet_activity;
    watch->was_quiet = is_quiet;
    watch->quiet_activity = activity;
    if (is_quiet)
        watch->wants_details = true;
    if (!is_same || !watch->ranks[0].has_details || !troupe_census_is_deadlock(watch->ranks, ranks))
        return;
    for (int i = 0; i < count; i++)
        interrupt(requests[i], TROUPE_FAILED_PRECONDITION,
                  report(watch, "deadlock: no firing can complete any more"));
    watch->was_quiet = false;
}

/* Rank 0: all censuses of a round are there. */
static void judge(struct troupe_watch *watch, struct troupe_request *const *requests, int count,
                  uint64_t now)
{
    if (take_census(watch, watch->wants_details, &watch->ranks[0]) != TROUPE_OK)
        return;
    bool had_details = watch->wants_details;
    watch->wants_details = false;
    for (int rank = 1; rank < rank_count(watch); rank++)
        had_details &= watch->ranks[rank].has_details;
    watch->ranks[0].has_details = had_details;
    judge_stalls(watch, requests, count, now);
    judge_deadlock(watch, requests, count);
    forget_censuses(watch);
}

/* Rank 0: some rank has not answered for as long as the watchdog waits. Either it is stuck, or no
 * worker of this rank has come to look at messages; runs that do not get on here are stalled. */
static void give_up_round(struct troupe_watch *watch, struct troupe_request *const *requests,
                          int count, uint64_t now)
{
    watch->round_ns = 0;
    (void)read_answers(watch);
    if (take_census(watch, true, &watch->ranks[0]) != TROUPE_OK)
        return;
    for (int i = 0; i < count; i++)
        if (now - requests[i]->seen_ns >= watch->watchdog_ns)
            end_stalled(watch, requests[i], now - requests[i]->seen_ns);
    forget_censuses(watch);
}

/* ---- Looking ---- */

/* Whether this rank has got on with the run since the last look. */
static bool gets_on(struct troupe_request *request, uint64_t now)
{
    uint64_t completed = atomic_load(&request->completed);
    bool does = completed != request->seen_completed || request->seen_ns == 0 ||
                !troupe_pool_is_staffed(request->runtime->pool);
    if (!does) { /* only then is it worth looking at every actor */
        uint64_t activity = 0;
        pthread_mutex_lock(&request->lock);
        if (request->plan)
            activity = troupe_stage_activity(request->plan->stage);
        pthread_mutex_unlock(&request->lock);
        does = activity != request->seen_activity;
        request->seen_activity = activity;
    }
    request->seen_completed = completed;
    if (does)
        request->seen_ns = request->global_ns = now;
    return does;
}

static void check_deadline(struct troupe_request *request, uint64_t now)
{
    if (request->deadline_ns == 0 || now < request->deadline_ns)
        return;
    request->deadline_ns = 0;
    uint64_t step = atomic_load(&request->completed) - request->first;
    interrupt(request, TROUPE_DEADLINE_EXCEEDED,
              troupe_asprintf("the run's time of %lld ms is up, in step %llu",
                              (long long)request->timeout_ms, (unsigned long long)step));
}

/* A stop takes effect when an iteration completes; here when none does. */
static void check_stop(struct troupe_watch *watch, struct troupe_request *request, uint64_t now)
{
    if (!atomic_load(&watch->session->stop_requested))
        return;
    if (request->stop_ns == 0) {
        request->stop_ns = now;
        troupe_request_end(request, TROUPE_CANCELLED, "stopped");
    } else if (now - request->stop_ns >= TROUPE_STOP_NS) {
        troupe_request_interrupt(request, TROUPE_CANCELLED,
                                 "stopped; the steps in flight did not end by themselves");
    }
}

/* Rank 0: takes the census forward. `is_stuck`: a run does not get on here. */
static void take_round(struct troupe_watch *watch, struct troupe_request *const *requests,
                       int count, bool is_stuck, uint64_t now)
{
    bool is_answered;
    pthread_mutex_lock(&watch->lock);
    is_answered = watch->answer_count == rank_count(watch) - 1;
    pthread_mutex_unlock(&watch->lock);
    if (watch->round_ns != 0 && is_answered) {
        watch->round_ns = 0;
        if (read_answers(watch))
            judge(watch, requests, count, now);
        forget_censuses(watch);
    } else if (watch->round_ns == 0 && is_stuck) {
        ask(watch, now);
        if (rank_count(watch) == 1)
            take_round(watch, requests, count, is_stuck, now);
    } else if (watch->round_ns != 0 && watch->watchdog_ns != 0 &&
               now - watch->round_ns >= watch->watchdog_ns) {
        give_up_round(watch, requests, count, now);
    }
    if (!is_stuck)
        watch->was_quiet = false;
}

/* Looks at every run in progress; returns how many there are. */
static int look(struct troupe_watch *watch)
{
    struct troupe_request **requests;
    int count;
    uint64_t now = troupe_clock_ns();
    bool is_stuck = false;
    if (troupe_session_requests(watch->session, &requests, &count) != TROUPE_OK)
        return 1;
    for (int i = 0; i < count; i++) {
        check_deadline(requests[i], now);
        check_stop(watch, requests[i], now);
        troupe_request_release(requests[i]);
        if (is_first(watch) && !gets_on(requests[i], now))
            is_stuck = true;
    }
    if (is_first(watch) && count > 0)
        take_round(watch, requests, count, is_stuck, now);
    for (int i = 0; i < count; i++)
        troupe_request_unref(requests[i]);
    free(requests);
    watch->look_ns = troupe_clock_ns() - now;
    return count;
}

/* ---- The thread ---- */

/* When to look again, at the latest. */
static uint64_t next_look(struct troupe_watch *watch)
{
    uint64_t tick = TROUPE_WATCH_TICK_NS;
    if (watch->look_ns * TROUPE_WATCH_SHARE > tick)
        tick = watch->look_ns * TROUPE_WATCH_SHARE;
    uint64_t until = troupe_clock_ns() + tick;
    struct troupe_session *session = watch->session;
    pthread_mutex_lock(&session->lock);
    for (const struct troupe_request *at = session->requests; at; at = at->next)
        if (at->deadline_ns != 0 && at->deadline_ns < until)
            until = at->deadline_ns;
    pthread_mutex_unlock(&session->lock);
    return until;
}

/* Whether nothing is there to wait for but being woken. */
static bool may_park(struct troupe_watch *watch, int idle_ticks)
{
    struct troupe_session *session = watch->session;
    if (idle_ticks < TROUPE_WATCH_IDLE_TICKS)
        return false;
    /* A run that begins is listed before `is_parked` is read: one of the two sees the other. */
    atomic_store(&watch->is_parked, true);
    pthread_mutex_lock(&session->lock);
    bool is_empty = session->requests == NULL;
    pthread_mutex_unlock(&session->lock);
    if (!is_empty)
        atomic_store(&watch->is_parked, false);
    return is_empty;
}

/* Sleeps until there is something to look at. Returns the round that is to be answered, 0. */
static uint64_t sleep_until_woken(struct troupe_watch *watch, int idle_ticks, bool *with_details)
{
    uint64_t until = next_look(watch);
    struct timespec time = {.tv_sec = (time_t)(until / TROUPE_NS_PER_S),
                            .tv_nsec = (long)(until % TROUPE_NS_PER_S)};
    bool parks = may_park(watch, idle_ticks);
    int error = 0;
    pthread_mutex_lock(&watch->lock);
    while (!watch->is_woken && !watch->is_leaving && error == 0) {
        if (parks)
            pthread_cond_wait(&watch->woken, &watch->lock);
        else
            error = pthread_cond_timedwait(&watch->woken, &watch->lock, &time);
    }
    uint64_t asked = watch->asked_round;
    *with_details = watch->asked_details;
    watch->asked_round = 0;
    watch->is_woken = false;
    pthread_mutex_unlock(&watch->lock);
    atomic_store(&watch->is_parked, false);
    return asked;
}

static bool is_leaving(struct troupe_watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    bool result = watch->is_leaving;
    pthread_mutex_unlock(&watch->lock);
    return result;
}

static void *watch_main(void *argument)
{
    struct troupe_watch *watch = argument;
    int idle_ticks = 0;
    while (!is_leaving(watch)) {
        bool with_details;
        uint64_t asked = sleep_until_woken(watch, idle_ticks, &with_details);
        if (asked != 0)
            answer_probe(watch, asked, with_details);
        idle_ticks = look(watch) > 0 ? 0 : idle_ticks + 1;
    }
    return NULL;
}

void troupe_watch_wake(struct troupe_watch *watch)
{
    pthread_mutex_lock(&watch->lock);
    watch->is_woken = true;
    pthread_cond_signal(&watch->woken);
    pthread_mutex_unlock(&watch->lock);
}

void troupe_watch_began(struct troupe_watch *watch, bool is_urgent)
{
    if (is_urgent || atomic_load(&watch->is_parked))
        troupe_watch_wake(watch);
}

static enum troupe_status watch_start(struct troupe_watch *watch)
{
    sigset_t all, before;
    /* Signals are the caller's business. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&watch->thread, NULL, watch_main, watch);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0)
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "cannot start a thread: %s",
                                  strerror(error));
    (void)pthread_setname_np(watch->thread, "troupe-watch");
    watch->is_started = true;
    return TROUPE_OK;
}

enum troupe_status troupe_watch_create(struct troupe_session *session,
                                       const struct troupe_session_options *options,
                                       struct troupe_watch **out)
{
    struct troupe_watch *watch = troupe_calloc(1, sizeof(*watch));
    if (!watch)
        return TROUPE_RESOURCE_EXHAUSTED;
    size_t size = (size_t)session->runtime->transport->size;
    pthread_condattr_t attributes;
    pthread_mutex_init(&watch->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->woken, &attributes);
    pthread_condattr_destroy(&attributes);
    watch->session = session;
    watch->watchdog_ns = TROUPE_WATCHDOG_DEFAULT_NS;
    if (options && options->watchdog_ms != 0)
        watch->watchdog_ns =
            options->watchdog_ms < 0 ? 0 : (uint64_t)options->watchdog_ms * TROUPE_NS_PER_MS;
    watch->is_self_contained = options && options->self_contained;
    watch->answers = troupe_calloc(size, sizeof(struct troupe_letter *));
    watch->ranks = troupe_calloc(size, sizeof(*watch->ranks));
    enum troupe_status status =
        watch->answers && watch->ranks ? watch_start(watch) : TROUPE_RESOURCE_EXHAUSTED;
    if (status != TROUPE_OK) {
        troupe_watch_destroy(watch);
        return status;
    }
    *out = watch;
    return TROUPE_OK;
}

void troupe_watch_destroy(struct troupe_watch *watch)
{
    if (!watch)
        return;
    if (watch->is_started) {
        pthread_mutex_lock(&watch->lock);
        watch->is_leaving = true;
        pthread_cond_signal(&watch->woken);
        pthread_mutex_unlock(&watch->lock);
        pthread_join(watch->thread, NULL);
    }
    for (int rank = 0; watch->answers && rank < rank_count(watch); rank++)
        free(watch->answers[rank]);
    free(watch->answers);
    free(watch->ranks);
    pthread_cond_destroy(&watch->woken);
    pthread_mutex_destroy(&watch->lock);
    free(watch);
}
