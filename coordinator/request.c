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
    troupe_wire_put_u64(&text, (uint64_t)run->staleness);
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
    hash = troupe_hash_u64(hash, (uint64_t)run->staleness);
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
    uint64_t staleness = troupe_wire_get_u64(&reader);
    enum troupe_status status = get_names(&reader, announced, &run->feed_count);
    if (status == TROUPE_OK)
        status = get_names(&reader, announced, &run->fetch_count);
    if (status == TROUPE_OK)
        status = get_names(&reader, announced, &run->target_count);
    if (status == TROUPE_OK)
        status = troupe_wire_close(&reader, "run");
    if (status == TROUPE_OK &&
        (instance > INT32_MAX || run->steps < 0 || staleness > TROUPE_STALENESS_MAX))
        status = troupe_status_fail(
            TROUPE_DATA_LOSS, "message \"run\" has plan %llu, %lld steps, staleness %llu",
            (unsigned long long)instance, (long long)run->steps, (unsigned long long)staleness);
    if (status != TROUPE_OK)
        return status;
    announced->order.instance = (int)instance;
    run->staleness = (int)staleness;
    const char *const *names = (const char *const *)announced->names;
    run->feeds = names;
    run->fetches = names + run->feed_count;
    run->targets = run->fetches + run->fetch_count;
    return TROUPE_OK;
}

/* ---- Starting ---- */

/* Waits until the plan's last run is over, as it is on rank 0, or about to be. */
static enum troupe_status clear_plan(struct troupe_session *session, const struct troupe_plan *plan)
{
    pthread_mutex_lock(&session->lock);
    struct troupe_request *before = plan->request;
    if (before)
        troupe_request_ref(before);
    pthread_mutex_unlock(&session->lock);
    if (!before)
        return TROUPE_OK;
    enum troupe_status status = troupe_request_settle(before, 0);
    troupe_request_unref(before);
    return status;
}

/* Begins an announced run here; `plan` NULL: it is to be found, or made. One that this rank alone
 * cannot begin leaves the others waiting. */
static enum troupe_status begin_locked(struct troupe_session *session, const struct troupe_run *run,
                                       const struct troupe_run_order *order,
                                       struct troupe_plan *plan, struct troupe_request **out)
{
    session->runtime->runs = order->number;
    enum troupe_status status =
        plan ? TROUPE_OK : troupe_plan_get(session, run, order->instance, &plan);
    if (status != TROUPE_OK)
        return status; /* on every rank */
    status = clear_plan(session, plan);
    if (status == TROUPE_OK)
        status = troupe_request_begin(plan, run, order, out);
    if (status != TROUPE_OK && session->runtime->transport->size > 1)
        troupe_runtime_abort(session->runtime, 3);
    return status;
}

/* Rank 0: makes the order of a run, for a plan that may be yet to be made. */
static enum troupe_status start_first_locked(struct troupe_session *session,
                                             const struct troupe_run *run, struct troupe_plan *plan,
                                             int instance, struct troupe_request **out)
{
    struct troupe_run_order order = {.number = session->runtime->runs + 1, .instance = instance};
    pthread_mutex_lock(&session->lock);
    order.first_step = run->first_step > 0 ? (uint64_t)run->first_step : session->step;
    pthread_mutex_unlock(&session->lock);
    enum troupe_status status = announce(session, run, &order);
    return status == TROUPE_OK ? begin_locked(session, run, &order, plan, out) : status;
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
        status = begin_locked(session, run, &announced.order, NULL, out);
    announced_fini(&announced);
    return status;
}

static enum troupe_status start_locked(struct troupe_session *session, const struct troupe_run *run,
                                       struct troupe_request **out)
{
    struct troupe_plan *idle = NULL;
    int instance = 0;
    troupe_session_settle(session); /* plans may become idle */
    enum troupe_status status = troupe_plan_check(session, run, &idle, &instance);
    pthread_mutex_lock(&session->lock);
    bool is_closing = session->is_closing;
    pthread_mutex_unlock(&session->lock);
    if (status == TROUPE_OK && is_closing)
        status = troupe_status_fail(TROUPE_FAILED_PRECONDITION, "the session is being closed");
    if (session->collective)
        status = troupe_session_agree(session, status, run_hash(run));
    if (status != TROUPE_OK)
        return status;
    return session->runtime->transport->rank == 0
               ? start_first_locked(session, run, idle, instance, out)
               : start_other_locked(session, run, out);
}

/* The run with its `until` as the last fetch; the array of fetches is to be freed, NULL when there
 * is no `until`. */
static enum troupe_status with_until(const struct troupe_run *run, struct troupe_run *extended,
                                     const char ***fetches)
{
    *extended = *run;
    *fetches = NULL;
    if (!run->until)
        return TROUPE_OK;
    *fetches = troupe_calloc((size_t)run->fetch_count + 1, sizeof(**fetches));
    if (!*fetches)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < run->fetch_count; i++)
        (*fetches)[i] = run->fetches[i];
    (*fetches)[extended->fetch_count++] = run->until;
    extended->fetches = *fetches;
    return TROUPE_OK;
}

enum troupe_status troupe_session_start(struct troupe_session *session,
                                        const struct troupe_run *run, struct troupe_request **out)
{
    struct troupe_run extended;
    const char **fetches;
    enum troupe_status status = refuse_inside(session, "a run");
    if (status == TROUPE_OK && session->runtime->transport->rank != 0 && !session->collective)
        status = troupe_status_fail(TROUPE_FAILED_PRECONDITION,
                                    "rank 0 runs: other ranks serve, or all run collectively");
    if (status != TROUPE_OK)
        return status;
    status = with_until(run, &extended, &fetches);
    if (status != TROUPE_OK)
        return status;
    pthread_mutex_lock(&session->order);
    status = start_locked(session, &extended, out);
    pthread_mutex_unlock(&session->order);
    free(fetches);
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
        if (begin_locked(session, &announced.run, &announced.order, NULL, &request) == TROUPE_OK)
            troupe_request_unref(request);
        pthread_mutex_unlock(&session->order);
    }
    announced_fini(&announced);
    return status;
}

/* ---- Waiting and ending ---- */

static enum troupe_status refuse_wait(void)
{
    return troupe_status_fail(TROUPE_FAILED_PRECONDITION,
                              "a wait for a run from inside an actor would wait for itself: use a "
                              "thread of your own");
}

enum troupe_status troupe_request_wait(struct troupe_request *request,
                                       struct troupe_tensor **fetched, int64_t *steps_done)
{
    enum troupe_status status = troupe_request_settle(request, 0);
    if (status == TROUPE_FAILED_PRECONDITION)
        return refuse_wait();
    if (status != TROUPE_OK)
        return status;
    if (steps_done)
        *steps_done = request->steps_done;
    if (request->status != TROUPE_OK)
        return troupe_status_fail(request->status, "%s",
                                  request->message ? request->message : "(no memory)");
    for (int i = 0; fetched && i < request->fetch_count - request->has_until; i++)
        if (request->fetched[i])
            fetched[i] = troupe_tensor_ref(request->fetched[i]);
    return TROUPE_OK;
}

/* Lets a waiter hear of every run of the session that ends; NULL when none of the requests is in
 * progress any more. The session stays until waiter_leave. */
static struct troupe_session *waiter_enter(struct troupe_any_waiter *waiter,
                                           struct troupe_request *const *requests, int count)
{
    struct troupe_session *session = NULL;
    for (int i = 0; i < count && !session; i++) {
        pthread_mutex_lock(&requests[i]->lock);
        session = requests[i]->session;
        if (session)
            atomic_fetch_add(&session->visitors, 1);
        pthread_mutex_unlock(&requests[i]->lock);
    }
    if (!session)
        return NULL;
    pthread_mutex_lock(&session->lock);
    waiter->next = session->waiters;
    session->waiters = waiter;
    pthread_mutex_unlock(&session->lock);
    return session;
}

static void waiter_leave(struct troupe_any_waiter *waiter, struct troupe_session *session)
{
    pthread_mutex_lock(&session->lock);
    struct troupe_any_waiter **at = &session->waiters;
    while (*at != waiter)
        at = &(*at)->next;
    *at = waiter->next;
    pthread_mutex_unlock(&session->lock);
    atomic_fetch_sub(&session->visitors, 1);
}

static bool find_over_of(struct troupe_request *const *requests, int count, int *index)
{
    for (int i = 0; i < count; i++)
        if (troupe_request_test(requests[i])) {
            *index = i;
            return true;
        }
    return false;
}

enum troupe_status troupe_request_wait_any(struct troupe_request *const *requests, int count,
                                           int *index)
{
    struct troupe_any_waiter waiter = {0};
    enum troupe_status status = TROUPE_OK;
    if (count < 1)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "there is no run to wait for");
    struct troupe_session *session = waiter_enter(&waiter, requests, count);
    while (!find_over_of(requests, count, index) && status == TROUPE_OK) {
        status = troupe_pool_drive(requests[0]->runtime->pool, &waiter.is_woken, 0);
        atomic_store(&waiter.is_woken, 0);
    }
    if (session)
        waiter_leave(&waiter, session);
    return status == TROUPE_FAILED_PRECONDITION ? refuse_wait() : status;
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
