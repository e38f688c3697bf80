/* Starting runs, waiting for them, and ending them: the public interface, and the announcement of a
 * run to the other ranks.
 *
 * Invariant: all ranks begin the same runs in the same order. Rank 0 gives each its number, says
 * which plan of its signature it takes (one in which nothing runs) and from which step it counts;
 * a session's order lock is held from there until the run has begun. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "coordinator/run.h"
#include "coordinator/watch.h"
#include "coordinator/wire.h"

/* How long closing waits for what is still running. */
#define TROUPE_CLOSE_NS UINT64_C(60000000000)
#define TROUPE_NAP_NS   UINT64_C(1000000)

bool troupe_session_is_inside(const struct troupe_session *session)
{
    const struct troupe_worker *worker = troupe_worker_current();
    return worker && troupe_worker_pool(worker) == session->runtime->pool;
}

static enum troupe_status refuse_inside(const struct troupe_session *session, const char *what)
{
    if (!troupe_session_is_inside(session))
        return TROUPE_OK;
    return troupe_status_fail(TROUPE_FAILED_PRECONDITION,
                              "%s from inside an actor would wait for itself: use a thread of "
                              "your own",
                              what);
}

/* ---- Announcing ---- */

static void put_names(struct troupe_text *text, const char *const *names, int count)
{
    troupe_wire_put_u64(text, (uint64_t)count);
    for (int i = 0; i < count; i++)
        troupe_wire_put_string(text, names[i]);
}

static enum troupe_status announce(struct troupe_session *session, const struct troupe_run *run,
                                   const struct troupe_run_order *order)
{
    if (session->runtime->transport->size == 1)
        return TROUPE_OK;
    struct troupe_text text;
    troupe_text_init(&text);
    troupe_wire_put_u64(&text, order->number);
    troupe_wire_put_u64(&text, (uint64_t)order->instance);
    troupe_wire_put_u64(&text, order->first_step);
    troupe_wire_put_u64(&text, (uint64_t)run->steps);
    put_names(&text, run->feeds, run->feed_count);
    put_names(&text, run->fetches, run->fetch_count);
    put_names(&text, run->targets, run->target_count);
    enum troupe_status status = troupe_session_send_all(session, TROUPE_MESSAGE_RUN, &text);
    troupe_text_fini(&text);
    return status;
}

static uint64_t hash_names(uint64_t hash, const char *const *names, int count)
{
    hash = troupe_hash_u64(hash, (uint64_t)count);
    for (int i = 0; i < count; i++)
        hash = troupe_hash_string(hash, names[i]);
    return hash;
}

/* What all ranks must give alike in collective use. */
static uint64_t run_hash(const struct troupe_run *run)
{
    uint64_t hash = troupe_hash_u64(TROUPE_HASH_START, (uint64_t)run->steps);
    hash = hash_names(hash, run->feeds, run->feed_count);
    hash = hash_names(hash, run->fetches, run->fetch_count);
    return hash_names(hash, run->targets, run->target_count);
}

/* A run as it came in a letter; owns the names. */
struct announced {
    struct troupe_run run;
    struct troupe_run_order order;
    char **names;
    int name_count;
};

static void announced_fini(struct announced *announced)
{
    for (int i = 0; i < announced->name_count; i++)
        free(announced->names[i]);
    free(announced->names);
}

static enum troupe_status get_names(struct troupe_wire_reader *reader, struct announced *announced,
                                    int *count)
{
    uint64_t wanted = troupe_wire_get_u64(reader);
    /* A name takes 8 bytes at least: a larger number is not to be believed. */
    if (wanted > reader->bytes / 8)
        return troupe_status_fail(TROUPE_DATA_LOSS, "message \"run\" counts %llu names",
                                  (unsigned long long)wanted);
    char **grown = troupe_reallocarray(
        announced->names, (size_t)announced->name_count + (size_t)wanted + 1, sizeof(char *));
    if (!grown)
        return TROUPE_RESOURCE_EXHAUSTED;
    announced->names = grown;
    for (uint64_t i = 0; i < wanted; i++) {
        char *name = troupe_wire_get_string(reader);
        if (!name)
            return TROUPE_RESOURCE_EXHAUSTED;
        announced->names[announced->name_count++] = name;
    }
    *count = (int)wanted;
    return TROUPE_OK;
}

static enum troupe_status announced_read(const struct troupe_letter *letter,
                                         struct announced *announced)
{
    struct troupe_wire_reader reader;
    struct troupe_run *run = &announced->run;
    troupe_wire_reader_init(&reader, letter->data, letter->bytes);
    announced->order.number = troupe_wire_get_u64(&reader);
    uint64_t instance = troupe_wire_get_u64(&reader);
    announced->order.first_step = troupe_wire_get_u64(&reader);
    run->steps = (int64_t)troupe_wire_get_u64(&reader);
    enum troupe_status status = get_names(&reader, announced, &run->feed_count);
    if (status == TROUPE_OK)
        status = get_names(&reader, announced, &run->fetch_count);
    if (status == TROUPE_OK)
        status = get_names(&reader, announced, &run->target_count);
    if (status == TROUPE_OK)
        status = troupe_wire_close(&reader, "run");
    if (status == TROUPE_OK && (instance > INT32_MAX || run->steps < 0))
        status = troupe_status_fail(TROUPE_DATA_LOSS, "message \"run\" has plan %llu, %lld steps",
                                    (unsigned long long)instance, (long long)run->steps);
    if (status != TROUPE_OK)
        return status;
    announced->order.instance = (int)instance;
    const char *const *names = (const char *const *)announced->names;
    run->feeds = names;
    run->fetches = names + run->feed_count;
    run->targets = run->fetches + run->fetch_count;
    return TROUPE_OK;
}

/* ---- Starting ---- */

/* Begins an announced run here. One that this rank alone cannot begin leaves the others waiting. */
static enum troupe_status begin_locked(struct troupe_session *session, const struct troupe_run *run,
                                       struct troupe_run_order *order, struct troupe_request **out)
{
    struct troupe_plan *plan;
    enum troupe_status status = troupe_plan_get(session, run, order->instance, &plan);
    if (status != TROUPE_OK)
        return status; /* on every rank */
    /* On rank 0 the plan's last run is over; here it is about to be. */
    if (plan->request) {
        struct troupe_request *before = plan->request;
        troupe_request_ref(before);
        status = troupe_request_settle(before, 0);
        troupe_request_unref(before);
    }
    if (status == TROUPE_OK)
        status = troupe_request_begin(plan, run, order, out);
    if (status != TROUPE_OK && session->runtime->transport->size > 1)
        troupe_runtime_abort(session->runtime, 3);
    return status;
}

/* Rank 0: makes the order of a run. The plan that it takes may be one that is yet to be made. */
static enum troupe_status start_first_locked(struct troupe_session *session,
                                             const struct troupe_run *run,
                                             struct troupe_request **out)
{
    troupe_session_settle(session);
    struct troupe_run_order order = {.number = ++session->runtime->runs};
    pthread_mutex_lock(&session->lock);
    order.first_step = run->first_step > 0 ? (uint64_t)run->first_step : session->step;
    pthread_mutex_unlock(&session->lock);
    order.instance = troupe_plan_choose(session, run);
    enum troupe_status status = announce(session, run, &order);
    return status == TROUPE_OK ? begin_locked(session, run, &order, out) : status;
}

/* Another rank in collective use: takes the order from rank 0, and all else from its caller. */
static enum troupe_status start_other_locked(struct troupe_session *session,
                                             const struct troupe_run *run,
                                             struct troupe_request **out)
{
    struct troupe_letter *letter;
    enum troupe_status status = troupe_session_await(session, TROUPE_MESSAGE_RUN, &letter);
    if (status != TROUPE_OK)
        return status;
    struct announced announced = {0};
    status = announced_read(letter, &announced);
    free(letter);
    if (status == TROUPE_OK)
        status = begin_locked(session, run, &announced.order, out);
    announced_fini(&announced);
    return status;
}

static enum troupe_status start_locked(struct troupe_session *session, const struct troupe_run *run,
                                       struct troupe_request **out)
{
    enum troupe_status status = troupe_plan_check(session, run);
    pthread_mutex_lock(&session->lock);
    bool is_closing = session->is_closing;
    pthread_mutex_unlock(&session->lock);
    if (status == TROUPE_OK && is_closing)
        status = troupe_status_fail(TROUPE_FAILED_PRECONDITION, "the session is being closed");
    if (session->collective)
        status = troupe_session_agree(session, status, run_hash(run));
    if (status != TROUPE_OK)
        return status;
    return session->runtime->transport->rank == 0 ? start_first_locked(session, run, out)
                                                  : start_other_locked(session, run, out);
}

enum troupe_status troupe_session_start(struct troupe_session *session,
                                        const struct troupe_run *run, struct troupe_request **out)
{
    enum troupe_status status = refuse_inside(session, "a run");
    if (status == TROUPE_OK && session->runtime->transport->rank != 0 && !session->collective)
        status = troupe_status_fail(TROUPE_FAILED_PRECONDITION,
                                    "rank 0 runs: other ranks serve, or all run collectively");
    if (status != TROUPE_OK)
        return status;
    pthread_mutex_lock(&session->order);
    status = start_locked(session, run, out);
    pthread_mutex_unlock(&session->order);
    return status;
}

enum troupe_status troupe_session_follow(struct troupe_session *session,
                                         const struct troupe_letter *letter)
{
    struct announced announced = {0};
    struct troupe_request *request;
    enum troupe_status status = announced_read(letter, &announced);
    if (status == TROUPE_OK) {
        pthread_mutex_lock(&session->order);
        /* A plan that cannot be made is rank 0's to report. */
        if (begin_locked(session, &announced.run, &announced.order, &request) == TROUPE_OK)
            troupe_request_unref(request);
        pthread_mutex_unlock(&session->order);
    }
    announced_fini(&announced);
    return status;
}

/* ---- Waiting and ending ---- */

enum troupe_status troupe_request_wait(struct troupe_request *request,
                                       struct troupe_tensor **fetched, int64_t *steps_done)
{
    enum troupe_status status = troupe_request_settle(request, 0);
    if (status == TROUPE_FAILED_PRECONDITION)
        return troupe_status_fail(status, "a wait for a run from inside an actor would wait for "
                                          "itself: use a thread of your own");
    if (status != TROUPE_OK)
        return status;
    if (steps_done)
        *steps_done = request->steps_done;
    if (request->status != TROUPE_OK)
        return troupe_status_fail(request->status, "%s",
                                  request->message ? request->message : "(no memory)");
    for (int i = 0; fetched && i < request->fetch_count; i++)
        if (request->fetched[i])
            fetched[i] = troupe_tensor_ref(request->fetched[i]);
    return TROUPE_OK;
}

bool troupe_request_test(const struct troupe_request *request)
{
    return atomic_load(&request->is_over) != 0;
}

void troupe_request_stop(struct troupe_request *request)
{
    troupe_request_end(request, TROUPE_OK, "");
}

void troupe_request_cancel(struct troupe_request *request)
{
    troupe_request_interrupt(request, TROUPE_CANCELLED, "the run was cancelled");
}

void troupe_request_free(struct troupe_request *request)
{
    if (request)
        troupe_request_unref(request);
}

enum troupe_status troupe_session_run(struct troupe_session *session, const struct troupe_run *run,
                                      struct troupe_tensor **fetched, int64_t *steps_done)
{
    struct troupe_request *request;
    enum troupe_status status = troupe_session_start(session, run, &request);
    if (status != TROUPE_OK)
        return status;
    status = troupe_request_wait(request, fetched, steps_done);
    troupe_request_free(request);
    return status;
}

/* ---- All runs of a session ---- */

enum troupe_status troupe_session_requests(struct troupe_session *session,
                                           struct troupe_request ***out, int *count)
{
    struct troupe_request **requests = NULL;
    int found = 0;
    pthread_mutex_lock(&session->lock);
    for (struct troupe_request *at = session->requests; at; at = at->next)
        found++;
    requests = troupe_calloc((size_t)found + 1, sizeof(struct troupe_request *));
    found = 0;
    for (struct troupe_request *at = session->requests; requests && at; at = at->next) {
        troupe_request_ref(at);
        requests[found++] = at;
    }
    pthread_mutex_unlock(&session->lock);
    *out = requests;
    *count = found;
    return requests ? TROUPE_OK : TROUPE_RESOURCE_EXHAUSTED;
}

/* The oldest run that is over, with a reference; NULL when there is none. */
static struct troupe_request *find_over(struct troupe_session *session)
{
    struct troupe_request *found = NULL;
    pthread_mutex_lock(&session->lock);
    for (struct troupe_request *at = session->requests; at; at = at->next)
        if (atomic_load(&at->is_over))
            found = at;
    if (found)
        troupe_request_ref(found);
    pthread_mutex_unlock(&session->lock);
    return found;
}

void troupe_session_settle(struct troupe_session *session)
{
    struct troupe_request *request;
    while ((request = find_over(session)) != NULL) {
        enum troupe_status status = troupe_request_settle(request, 0);
        troupe_request_unref(request);
        if (status != TROUPE_OK)
            return;
    }
}

void troupe_session_cancel(struct troupe_session *session)
{
    struct troupe_request **requests;
    int count;
    if (troupe_session_requests(session, &requests, &count) != TROUPE_OK)
        return;
    for (int i = 0; i < count; i++) {
        troupe_request_cancel(requests[i]);
        troupe_request_unref(requests[i]);
    }
    free(requests);
}

/* Waits for the runs in progress; rank 0 and collective ranks cancel them first. */
static enum troupe_status finish_requests(struct troupe_session *session, uint64_t deadline_ns)
{
    struct troupe_request **requests;
    int count;
    if (session->runtime->transport->rank == 0 || session->collective)
        troupe_session_cancel(session);
    enum troupe_status status = troupe_session_requests(session, &requests, &count);
    for (int i = 0; i < count && status == TROUPE_OK; i++) {
        status = troupe_request_settle(requests[i], deadline_ns);
        if (status == TROUPE_DEADLINE_EXCEEDED)
            status = troupe_status_fail(status, "a run does not end: something in it is still "
                                                "running; the session's memory stays");
    }
    for (int i = 0; i < count; i++)
        troupe_request_unref(requests[i]);
    free(requests);
    return status;
}

enum troupe_status troupe_session_finish(struct troupe_session *session)
{
    uint64_t deadline_ns = troupe_clock_ns() + TROUPE_CLOSE_NS;
    struct timespec nap = {.tv_nsec = (long)TROUPE_NAP_NS};
    pthread_mutex_lock(&session->lock);
    session->is_closing = true;
    pthread_mutex_unlock(&session->lock);
    /* Whoever starts a run has begun it, or sees that the session is closing. */
    pthread_mutex_lock(&session->order);
    enum troupe_status status = finish_requests(session, deadline_ns);
    pthread_mutex_unlock(&session->order);
    while (status == TROUPE_OK && atomic_load(&session->visitors) > 0)
        (void)nanosleep(&nap, NULL);
    return status;
}
