/* The run protocol of run.h. Invariant: what a request's lock guards is changed under it, and a
 * stage is told to admit only after it was given back, because a stage may complete iterations
 * inside of that call and come back here. */
#include "coordinator/run.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "coordinator/watch.h"
#include "coordinator/wire.h"

/* Steps of a run without a number: until a source ends. */
#define TROUPE_RUN_ENDLESS (UINT64_C(1) << 62)
#define TROUPE_NS_PER_MS   UINT64_C(1000000)

static int own_rank(const struct troupe_request *request)
{
    return request->runtime->transport->rank;
}

/* Adds what every message of a run starts with. */
static void text_start(struct troupe_text *text, const struct troupe_request *request)
{
    troupe_text_init(text);
    troupe_wire_put_u64(text, request->number);
}

/* Sends a text and frees it. A message that cannot be sent leaves a rank waiting: the job ends. */
static void text_send(struct troupe_text *text, struct troupe_session *session, int to,
                      uint32_t kind)
{
    enum troupe_status status = to < 0 ? troupe_session_send_all(session, kind, text)
                                       : troupe_session_send(session, to, kind, text);
    troupe_text_fini(text);
    if (status != TROUPE_OK)
        troupe_runtime_abort(session->runtime, 3);
}

static void take_report_locked(struct troupe_request *request, bool is_complete, uint64_t end,
                               uint64_t live);

/* Tells rank 0 that this rank has stopped admitting at `end`, or has completed all up to it. */
static void report_locked(struct troupe_request *request, bool is_complete, uint64_t end)
{
    if (is_complete)
        request->is_complete = true;
    else
        request->is_held = true;
    if (own_rank(request) == 0) {
        take_report_locked(request, is_complete, end, request->live);
        return;
    }
    struct troupe_text text;
    text_start(&text, request);
    troupe_wire_put_u64(&text, is_complete);
    troupe_wire_put_u64(&text, end);
    troupe_wire_put_u64(&text, request->live);
    troupe_wire_put_u64(&text, request->drains);
    troupe_run_failure_put(&text, &request->failure);
    text_send(&text, request->session, 0, TROUPE_MESSAGE_REPORT);
}

/* Reports, once, that this rank has completed what it knows that it should. A rank without actors
 * has nothing to complete: it would count through all steps at once, and follows the others when
 * their end is known. */
static void look_locked(struct troupe_request *request)
{
    if (request->is_final || request->is_complete || request->duties > 0 ||
        (request->is_held && !request->has_end))
        return;
    uint64_t target = request->has_end ? request->end : request->goal;
    atomic_store(&request->mark, target);
    if (!request->has_end && request->plan->part_count == 0)
        report_locked(request, true, request->first);
    else if (atomic_load(&request->completed) >= target)
        report_locked(request, true, target);
}

/* All ranks have stopped: they go on to the common end. */
static void set_end_locked(struct troupe_request *request, uint64_t end)
{
    request->end = end;
    request->has_end = true;
    request->is_complete = false;
    request->must_admit = true;
}

static void set_final_locked(struct troupe_request *request, uint64_t end)
{
    request->end = end;
    request->is_final = true;
    request->must_admit = true;
}

static void send_end_locked(struct troupe_request *request)
{
    struct troupe_text text;
    text_start(&text, request);
    troupe_wire_put_u64(&text, request->end);
    troupe_wire_put_u64(&text, request->drains);
    troupe_run_failure_put(&text, &request->failure);
    text_send(&text, request->session, -1, TROUPE_MESSAGE_END);
    request->complete_reports = 0;
    set_end_locked(request, request->end);
}

static void send_final_locked(struct troupe_request *request)
{
    struct troupe_text text;
    if (request->runtime->transport->size > 1) {
        text_start(&text, request);
        troupe_wire_put_u64(&text, request->end);
        troupe_wire_put_u64(&text, request->live);
        troupe_run_failure_put(&text, &request->failure);
        text_send(&text, request->session, -1, TROUPE_MESSAGE_FINAL);
    }
    set_final_locked(request, request->end);
}

/* Rank 0. */
static void take_report_locked(struct troupe_request *request, bool is_complete, uint64_t end,
                               uint64_t live)
{
    int size = request->runtime->transport->size;
    if (live < request->live)
        request->live = live;
    if (!request->has_end && end > request->end)
        request->end = end;
    if (is_complete)
        request->complete_reports++;
    else
        request->held_reports++;
    if (!is_complete && request->held_reports == size)
        send_end_locked(request);
    else if (is_complete && request->complete_reports == size &&
             (!request->failure.is_set || request->has_end))
        send_final_locked(request);
}

/* A failure or an interruption is known: ends admission, and says what drains. */
static void stop_locked(struct troupe_request *request)
{
    struct troupe_stage *stage = request->plan->stage;
    if (request->is_final)
        return;
    troupe_stage_poison(stage, request->drains ? 0 : request->failure.iteration + 1);
    if (request->drains && request->live == UINT64_MAX && request->plan->part_count > 0)
        request->live = atomic_load(&request->completed);
    if (!request->is_held)
        report_locked(request, false, troupe_stage_hold(stage));
    troupe_watch_wake(request->session->watch);
}

/* Tells the others what this rank has found. */
static void announce_locked(struct troupe_request *request)
{
    struct troupe_text text;
    text_start(&text, request);
    troupe_wire_put_u64(&text, request->drains);
    troupe_run_failure_put(&text, &request->failure);
    text_send(&text, request->session, -1, TROUPE_MESSAGE_FAILED);
    stop_locked(request);
}

/* Gives the lock back and does what is not to be done under it. */
static void leave(struct troupe_request *request)
{
    struct troupe_runtime *runtime = request->runtime;
    while (request->must_admit) {
        struct troupe_stage *stage = request->plan->stage;
        uint64_t end = request->end;
        request->must_admit = false;
        pthread_mutex_unlock(&request->lock);
        troupe_stage_admit(stage, end);
        pthread_mutex_lock(&request->lock);
        look_locked(request);
    }
    bool is_over = request->is_final && atomic_load(&request->completed) >= request->end;
    struct troupe_session *session = request->session;
    if (is_over && session)
        atomic_fetch_add(&session->visitors, 1);
    pthread_mutex_unlock(&request->lock);
    if (!is_over)
        return;
    atomic_store(&request->is_over, 1);
    atomic_store(&runtime->letter_came, 1); /* for who serves */
    if (session) {
        pthread_mutex_lock(&session->lock);
        for (struct troupe_any_waiter *waiter = session->waiters; waiter; waiter = waiter->next)
            atomic_store(&waiter->is_woken, 1);
        pthread_mutex_unlock(&session->lock);
        atomic_fetch_sub(&session->visitors, 1);
    }
    troupe_pool_wake(runtime->pool);
}

/* Names node, op, place, rank and device before a firing's message. */
static char *root_cause(const struct troupe_plan_part *part, const char *message)
{
    const struct troupe_session *session = part->plan->session;
    int rank = session->runtime->transport->rank, node = part->node;
    if (node < 0)
        return troupe_asprintf("rank %d: %s", rank, message);
    char text[TROUPE_NODE_TEXT_MAX];
    char device[24];
    return troupe_asprintf(
        "%s on rank %d, device %s: %s", troupe_node_describe(session->graph, node, text), rank,
        troupe_node_device_name(&session->graph->nodes[node], device, sizeof(device)), message);
}

void troupe_run_failed(void *context, uint64_t iteration, void *actor_context,
                       enum troupe_status status, const char *message)
{
    struct troupe_plan *plan = context;
    struct troupe_request *request = plan->request;
    if (status == TROUPE_ABORTED)
        return; /* derived: whoever knows the cause announces it */
    char *cause = root_cause(actor_context, message);
    pthread_mutex_lock(&request->lock);
    troupe_run_failure_merge(&request->failure, iteration, own_rank(request), status,
                             cause ? cause : message);
    announce_locked(request);
    leave(request);
    free(cause);
}

void troupe_run_completed(void *context, uint64_t iteration)
{
    struct troupe_plan *plan = context;
    struct troupe_request *request = plan->request;
    bool is_asked_to_stop = atomic_load(&plan->session->stop_requested) != 0;
    atomic_store(&request->completed, iteration + 1);
    /* Whoever moves the mark looks at `completed` afterwards: one of the two sees the other. */
    if (iteration + 1 < atomic_load(&request->mark) && !is_asked_to_stop)
        return;
    pthread_mutex_lock(&request->lock);
    if (is_asked_to_stop && !request->failure.is_set && !request->is_final) {
        troupe_run_failure_merge(&request->failure, TROUPE_ITERATION_ENDED, own_rank(request),
                                 TROUPE_CANCELLED, "stopped");
        announce_locked(request);
    }
    look_locked(request);
    leave(request);
}

/* Takes the lock of a request that somebody outside of the run wants to change, and counts as a
 * visitor of the session; false, and nothing of the kind, when the run is settled. */
static bool enter(struct troupe_request *request, struct troupe_session **session)
{
    pthread_mutex_lock(&request->lock);
    *session = request->session;
    if (*session && !request->is_final) {
        atomic_fetch_add(&(*session)->visitors, 1);
        return true;
    }
    pthread_mutex_unlock(&request->lock);
    return false;
}

void troupe_request_end(struct troupe_request *request, enum troupe_status status,
                        const char *message)
{
    struct troupe_session *session;
    if (!enter(request, &session))
        return;
    if (!request->failure.is_set) {
        troupe_run_failure_merge(&request->failure, TROUPE_ITERATION_ENDED, own_rank(request),
                                 status, message);
        announce_locked(request);
    }
    leave(request);
    atomic_fetch_sub(&session->visitors, 1);
}

void troupe_request_interrupt(struct troupe_request *request, enum troupe_status status,
                              const char *message)
{
    struct troupe_session *session;
    if (!enter(request, &session))
        return;
    if (!request->drains) {
        request->drains = true;
        troupe_run_failure_merge(&request->failure, TROUPE_ITERATION_INTERRUPTED, own_rank(request),
                                 status, message);
        announce_locked(request);
    }
    leave(request);
    atomic_fetch_sub(&session->visitors, 1);
}

void troupe_request_take_duty(struct troupe_request *request)
{
    pthread_mutex_lock(&request->lock);
    request->duties++;
    pthread_mutex_unlock(&request->lock);
}

void troupe_request_drop_duty(struct troupe_request *request)
{
    pthread_mutex_lock(&request->lock);
    request->duties--;
    look_locked(request);
    leave(request);
}

void troupe_request_release(struct troupe_request *request)
{
    struct troupe_session *session;
    if (!enter(request, &session))
        return;
    bool is_needed = (request->drains || request->failure.is_set) && !request->is_complete;
    uint64_t first = request->drains ? 0 : request->failure.iteration;
    struct troupe_plan *plan = request->plan;
    request->duties += is_needed; /* the plan is not another run's before */
    pthread_mutex_unlock(&request->lock);
    for (int i = 0; is_needed && i < plan->part_count; i++)
        if (plan->parts[i]->release)
            plan->parts[i]->release(plan->parts[i], first);
    if (is_needed)
        troupe_request_drop_duty(request);
    atomic_fetch_sub(&session->visitors, 1);
}

/* ---- Messages ---- */

/* The fields of all kinds of messages about a run, read in the order in which they are there. */
struct run_message {
    uint64_t number, is_complete, end, live, drains;
    const char *rest; /* the failure */
    size_t rest_bytes;
};

static bool message_read(uint32_t kind, const void *data, size_t bytes, struct run_message *message)
{
    struct troupe_wire_reader reader;
    *message = (struct run_message){.live = UINT64_MAX};
    troupe_wire_reader_init(&reader, data, bytes);
    message->number = troupe_wire_get_u64(&reader);
    if (kind == TROUPE_MESSAGE_REPORT)
        message->is_complete = troupe_wire_get_u64(&reader);
    if (kind != TROUPE_MESSAGE_FAILED)
        message->end = troupe_wire_get_u64(&reader);
    if (kind == TROUPE_MESSAGE_REPORT || kind == TROUPE_MESSAGE_FINAL)
        message->live = troupe_wire_get_u64(&reader);
    if (kind != TROUPE_MESSAGE_FINAL)
        message->drains = troupe_wire_get_u64(&reader);
    message->rest = (const char *)data + reader.position;
    message->rest_bytes = bytes - reader.position;
    return !reader.failed;
}

/* False when the message does not make sense. */
static bool take_message_locked(struct troupe_request *request, uint32_t kind,
                                const struct run_message *message)
{
    if (kind == TROUPE_MESSAGE_FINAL) { /* rank 0 knows all: its failure is the root cause */
        free(request->failure.message);
        request->failure = (struct troupe_run_failure){0};
        request->live = message->live;
    }
    if (troupe_run_failure_read(message->rest, message->rest_bytes, request->session,
                                &request->failure) != TROUPE_OK)
        return false;
    if (message->drains)
        request->drains = true;
    if (request->failure.is_set && kind != TROUPE_MESSAGE_FINAL)
        stop_locked(request);
    if (kind == TROUPE_MESSAGE_REPORT)
        take_report_locked(request, message->is_complete != 0, message->end, message->live);
    else if (kind == TROUPE_MESSAGE_END)
        set_end_locked(request, message->end);
    else if (kind == TROUPE_MESSAGE_FINAL)
        set_final_locked(request, message->end);
    return true;
}

/* A message that cannot be read leaves a rank waiting for what it said: the job ends. */
static void give_up(struct troupe_session *session)
{
    troupe_log(TROUPE_LOG_ERROR, "%s", troupe_status_message());
    troupe_runtime_abort(session->runtime, 3);
}

/* A reference to the run, NULL when it is not in progress; `*is_late`: because it is over. */
static struct troupe_request *find_request(struct troupe_session *session, uint64_t number,
                                           bool *is_late)
{
    pthread_mutex_lock(&session->lock);
    struct troupe_request *request = session->requests;
    while (request && request->number != number)
        request = request->next;
    if (request)
        troupe_request_ref(request);
    *is_late = !request && number <= session->started;
    pthread_mutex_unlock(&session->lock);
    return request;
}

bool troupe_run_receive(struct troupe_session *session, uint32_t kind, const void *data,
                        size_t bytes)
{
    if (kind != TROUPE_MESSAGE_FAILED && kind != TROUPE_MESSAGE_REPORT &&
        kind != TROUPE_MESSAGE_END && kind != TROUPE_MESSAGE_FINAL)
        return false;
    struct run_message message;
    bool is_late, is_read = message_read(kind, data, bytes, &message);
    if (!is_read)
        (void)troupe_status_fail(TROUPE_DATA_LOSS, "a message about a run of %zu bytes", bytes);
    struct troupe_request *request = find_request(session, message.number, &is_late);
    if (request) {
        pthread_mutex_lock(&request->lock);
        if (is_read && request->session && !request->is_final)
            is_read = take_message_locked(request, kind, &message);
        leave(request);
        troupe_request_unref(request);
    }
    if (!is_read)
        give_up(session);
    return request || is_late;
}

/* Makes the run known to messages, and handles those that came before: the runtime's lock keeps
 * others from coming between. */
static void request_publish(struct troupe_request *request)
{
    struct troupe_session *session = request->session;
    struct troupe_runtime *runtime = session->runtime;
    pthread_mutex_lock(&runtime->lock);
    pthread_mutex_lock(&session->lock);
    request->next = session->requests;
    session->requests = request;
    session->started = request->number;
    pthread_mutex_unlock(&session->lock);
    struct troupe_letter **at = &runtime->first, *newest = NULL;
    while (*at) {
        struct troupe_letter *letter = *at;
        if (troupe_run_receive(session, letter->kind, letter->data, letter->bytes)) {
            *at = letter->next;
            free(letter);
        } else {
            newest = letter;
            at = &letter->next;
        }
    }
    runtime->last = newest;
    pthread_mutex_unlock(&runtime->lock);
}

/* ---- Begin and end ---- */

static enum troupe_status request_create(struct troupe_plan *plan, const struct troupe_run *run,
                                         const struct troupe_run_order *order,
                                         struct troupe_request **out)
{
    int feeds = run->feed_values ? run->feed_count : 0;
    size_t tensors = (size_t)feeds + (size_t)run->fetch_count;
    struct troupe_request *request =
        troupe_calloc(1, sizeof(*request) + tensors * sizeof(struct troupe_tensor *));
    if (!request)
        return TROUPE_RESOURCE_EXHAUSTED;
    request->feeds = request->tensors;
    request->fetched = request->tensors + feeds;
    for (; request->feed_count < feeds; request->feed_count++)
        request->feeds[request->feed_count] =
            troupe_tensor_ref(run->feed_values[request->feed_count]);
    atomic_store(&request->references, 2);
    pthread_mutex_init(&request->lock, NULL);
    request->number = order->number;
    request->session = plan->session;
    request->runtime = plan->session->runtime;
    request->plan = plan;
    request->steps = run->steps;
    request->first = troupe_stage_admitted(plan->stage);
    request->goal = request->first + (run->steps == 0 ? TROUPE_RUN_ENDLESS : (uint64_t)run->steps);
    request->live = UINT64_MAX;
    request->timeout_ms = run->timeout_ms;
    if (run->timeout_ms > 0)
        request->deadline_ns = troupe_clock_ns() + (uint64_t)run->timeout_ms * TROUPE_NS_PER_MS;
    atomic_store(&request->completed, request->first);
    atomic_store(&request->mark, request->goal);
    request->fetch_count = run->fetch_count;
    request->has_until = run->until != NULL;
    *out = request;
    return TROUPE_OK;
}

enum troupe_status troupe_request_begin(struct troupe_plan *plan, const struct troupe_run *run,
                                        const struct troupe_run_order *order,
                                        struct troupe_request **out)
{
    struct troupe_request *request;
    enum troupe_status status = request_create(plan, run, order, &request);
    if (status != TROUPE_OK)
        return status;
    pthread_mutex_lock(&plan->session->lock);
    plan->request = request;
    pthread_mutex_unlock(&plan->session->lock);
    plan->first_iteration = request->first;
    plan->first_step = order->first_step;
    plan->feed_values = request->feeds;
    plan->dead_step = plan->dead_fetch = -1;
    plan->on_step = run->on_step;
    plan->on_step_context = run->on_step_context;
    plan->has_until = run->until != NULL;
    troupe_stage_poison(plan->stage, UINT64_MAX);
    if (request->runtime->transport->size > 1)
        troupe_runtime_await(request->runtime);
    if (plan->part_count > 0)
        troupe_stage_admit(plan->stage, request->goal);
    request_publish(request);
    pthread_mutex_lock(&request->lock);
    look_locked(request);
    leave(request);
    troupe_watch_began(plan->session->watch, request->deadline_ns != 0);
    *out = request;
    return TROUPE_OK;
}

/* What the run has come to, from the failure of all ranks. */
static void set_result_locked(struct troupe_request *request)
{
    const struct troupe_run_failure *failure = &request->failure;
    struct troupe_plan *plan = request->plan;
    uint64_t end = request->end;
    if (failure->is_set && failure->iteration < end)
        end = failure->iteration;
    if (request->live < end)
        end = request->live;
    request->steps_done = (int64_t)(end - request->first);
    bool has_ended =
        failure->is_set && (failure->status == TROUPE_OK ||
                            (failure->status == TROUPE_OUT_OF_RANGE && request->steps == 0));
    if (failure->is_set && !has_ended) {
        request->status = failure->status;
        request->message = troupe_strdup(failure->message ? failure->message : "(no memory)");
    } else if (plan->dead_fetch >= 0 && plan->dead_step < request->steps_done) {
        request->status = troupe_fetch_dead(plan);
        request->message = troupe_strdup(troupe_status_message());
    }
    for (int i = 0; i < request->fetch_count; i++) {
        request->fetched[i] = plan->last[i];
        plan->last[i] = NULL;
        if (own_rank(request) == 0 && !request->fetched[i] && request->status == TROUPE_OK) {
            request->status = TROUPE_OUT_OF_RANGE;
            request->message = troupe_strdup("the sequence ended before the first step");
        }
    }
}

/* Lets the session go on without the run. */
static void request_detach_locked(struct troupe_session *session, struct troupe_request *request)
{
    struct troupe_request **at = &session->requests;
    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
    uint64_t step = request->plan->first_step + request->end - request->first;
    if (step > session->step)
        session->step = step;
    /* A stop has had its effect; one that comes too late for this run is for the next. */
    if (request->status == TROUPE_CANCELLED && !session->requests)
        atomic_store(&session->stop_requested, 0);
    request->plan->request = NULL;
    request->plan->feed_values = NULL;
}

/* Takes the result out of plan and session. One thread does it. */
static void request_settle(struct troupe_request *request, struct troupe_session *session)
{
    /* Whoever completed the last iteration may still be inside of the stage. What this returns is
     * the rank's own failure; the root cause is the request's, the same on every rank. */
    (void)(troupe_stage_wait(request->plan->stage, 0) == TROUPE_OK);
    pthread_mutex_lock(&session->lock);
    pthread_mutex_lock(&request->lock);
    set_result_locked(request);
    request_detach_locked(session, request);
    request->session = NULL;
    request->plan = NULL;
    pthread_mutex_unlock(&request->lock);
    pthread_mutex_unlock(&session->lock);
    if (request->runtime->transport->size > 1)
        troupe_runtime_unawait(request->runtime);
    atomic_store(&request->is_settled, 1);
    troupe_pool_wake(request->runtime->pool);
}

enum troupe_status troupe_request_settle(struct troupe_request *request, uint64_t deadline_ns)
{
    pthread_mutex_lock(&request->lock);
    struct troupe_session *session = request->session;
    if (session)
        atomic_fetch_add(&session->visitors, 1);
    pthread_mutex_unlock(&request->lock);
    if (!session)
        return TROUPE_OK; /* perhaps the runtime is gone, too */
    struct troupe_pool *pool = request->runtime->pool;
    enum troupe_status status = troupe_pool_drive(pool, &request->is_over, deadline_ns);
    bool is_mine = status == TROUPE_OK && !atomic_exchange(&request->is_taken, true);
    if (is_mine)
        request_settle(request, session);
    else if (status == TROUPE_OK)
        status = troupe_pool_drive(pool, &request->is_settled, deadline_ns);
    atomic_fetch_sub(&session->visitors, 1);
    if (is_mine)
        troupe_request_unref(request);
    return status;
}

void troupe_request_ref(struct troupe_request *request)
{
    atomic_fetch_add(&request->references, 1);
}

void troupe_request_unref(struct troupe_request *request)
{
    if (atomic_fetch_sub(&request->references, 1) != 1)
        return;
    for (int i = 0; i < request->feed_count; i++)
        troupe_tensor_unref(request->feeds[i]);
    for (int i = 0; i < request->fetch_count; i++)
        troupe_tensor_unref(request->fetched[i]);
    pthread_mutex_destroy(&request->lock);
    free(request->failure.message);
    free(request->message);
    free(request);
}
