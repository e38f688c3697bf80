/* The run protocol of run.h. Invariant: state->failure only ever moves to an earlier iteration or a
 * lower rank, and is read for the result only after FINAL. */
#include "coordinator/run.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "coordinator/wire.h"

/* Steps of a run without a number: until a source ends. */
#define TROUPE_RUN_ENDLESS (UINT64_C(1) << 62)

/* Takes over a failure when it is earlier than the known one. */
static void failure_merge(struct troupe_run_failure *known, uint64_t iteration, int rank,
                          enum troupe_status status, const char *message)
{
    if (known->is_set &&
        (known->iteration < iteration || (known->iteration == iteration && known->rank <= rank)))
        return;
    free(known->message);
    known->is_set = true;
    known->iteration = iteration;
    known->rank = rank;
    known->status = status;
    known->message = strdup(message);
}

static void put_failure(struct troupe_text *out, const struct troupe_run_failure *failure)
{
    troupe_wire_put_u64(out, failure->is_set);
    if (!failure->is_set)
        return;
    troupe_wire_put_u64(out, failure->iteration);
    troupe_wire_put_u64(out, (uint64_t)failure->rank);
    troupe_wire_put_u64(out, (uint64_t)failure->status);
    troupe_wire_put_string(out, failure->message ? failure->message : "");
}

enum troupe_status troupe_run_failure_read(const void *data, size_t bytes,
                                           const struct troupe_session *session,
                                           struct troupe_run_failure *known)
{
    struct troupe_wire_reader reader;
    troupe_wire_reader_init(&reader, data, bytes);
    if (!troupe_wire_get_u64(&reader))
        return troupe_wire_close(&reader, "failure");
    uint64_t iteration = troupe_wire_get_u64(&reader), rank = troupe_wire_get_u64(&reader);
    uint64_t code = troupe_wire_get_u64(&reader);
    char *message = troupe_wire_get_string(&reader);
    enum troupe_status status = troupe_wire_close(&reader, "failure");
    if (status == TROUPE_OK && !message)
        status = TROUPE_RESOURCE_EXHAUSTED;
    if (status == TROUPE_OK && (code == TROUPE_OK || code >= TROUPE_STATUS_COUNT ||
                                rank >= (uint64_t)session->runtime->transport->size))
        status =
            troupe_status_fail(TROUPE_DATA_LOSS, "message \"failure\" has status %llu of rank %llu",
                               (unsigned long long)code, (unsigned long long)rank);
    if (status == TROUPE_OK)
        failure_merge(known, iteration, (int)rank, (enum troupe_status)code, message);
    free(message);
    return status;
}

/* Sends FINAL to everybody, this rank included, once all have reported. */
static void finish_locked(struct troupe_run_state *state)
{
    struct troupe_session *session = state->plan->session;
    if (state->reports < session->runtime->transport->size)
        return;
    struct troupe_text text;
    troupe_text_init(&text);
    troupe_wire_put_u64(&text, state->number);
    troupe_wire_put_u64(&text, state->end);
    put_failure(&text, &state->failure);
    enum troupe_status status = troupe_session_send_all(session, TROUPE_MESSAGE_FINAL, &text);
    troupe_text_fini(&text);
    if (status != TROUPE_OK)
        failure_merge(&state->failure, state->plan->first_iteration, 0, status,
                      troupe_status_message());
    troupe_stage_admit(state->plan->stage, state->end);
    atomic_store(&state->is_final, 1);
    troupe_pool_wake(session->runtime->pool);
}

static void take_report_locked(struct troupe_run_state *state, uint64_t end)
{
    state->reports++;
    if (end > state->end)
        state->end = end;
    finish_locked(state);
}

/* Tells rank 0 how far this rank has admitted, once. */
static void report_locked(struct troupe_run_state *state, uint64_t end)
{
    if (state->reported)
        return;
    state->reported = true;
    struct troupe_session *session = state->plan->session;
    if (session->runtime->transport->rank == 0) {
        take_report_locked(state, end);
        return;
    }
    struct troupe_text text;
    troupe_text_init(&text);
    troupe_wire_put_u64(&text, state->number);
    troupe_wire_put_u64(&text, end);
    put_failure(&text, &state->failure);
    if (troupe_session_send(session, 0, TROUPE_MESSAGE_REPORT, &text) != TROUPE_OK)
        troupe_runtime_abort(session->runtime, 3);
    troupe_text_fini(&text);
}

/* Ends admission because of the known failure: later iterations fire dead. */
static void stop_locked(struct troupe_run_state *state)
{
    struct troupe_stage *stage = state->plan->stage;
    troupe_stage_poison(stage, state->failure.iteration + 1);
    if (!state->reported)
        report_locked(state, troupe_stage_hold(stage));
}

/* Names node, op, place, rank and device before a firing's message. */
static char *root_cause(const struct troupe_plan_part *part, const char *message)
{
    const struct troupe_session *session = part->plan->session;
    int rank = session->runtime->transport->rank, node = part->node;
    if (node < 0)
        return troupe_asprintf("rank %d: %s", rank, message);
    char text[TROUPE_NODE_TEXT_MAX];
    return troupe_asprintf("%s on rank %d, device CPU:0: %s",
                           troupe_node_describe(session->graph, node, text), rank, message);
}

static void announce_locked(struct troupe_run_state *state, uint64_t iteration,
                            enum troupe_status status, const char *message)
{
    struct troupe_session *session = state->plan->session;
    int rank = session->runtime->transport->rank;
    failure_merge(&state->failure, iteration, rank, status, message);
    struct troupe_text text;
    troupe_text_init(&text);
    troupe_wire_put_u64(&text, state->number);
    put_failure(&text, &state->failure);
    if (troupe_session_send_all(session, TROUPE_MESSAGE_FAILED, &text) != TROUPE_OK)
        troupe_runtime_abort(session->runtime, 3);
    troupe_text_fini(&text);
    stop_locked(state);
}

void troupe_run_failed(void *context, uint64_t iteration, void *actor_context,
                       enum troupe_status status, const char *message)
{
    struct troupe_plan *plan = context;
    struct troupe_run_state *state = plan->session->run;
    if (status == TROUPE_ABORTED)
        return; /* derived: the rank where it began announces it */
    char *cause = status == TROUPE_CANCELLED ? NULL : root_cause(actor_context, message);
    pthread_mutex_lock(&state->lock);
    announce_locked(state, iteration, status, cause ? cause : message);
    pthread_mutex_unlock(&state->lock);
    free(cause);
}

void troupe_run_completed(void *context, uint64_t iteration)
{
    struct troupe_plan *plan = context;
    struct troupe_session *session = plan->session;
    (void)iteration;
    if (!atomic_load(&session->stop_requested))
        return;
    struct troupe_run_state *state = session->run;
    pthread_mutex_lock(&state->lock);
    if (!state->failure.is_set)
        announce_locked(state, troupe_stage_hold(plan->stage), TROUPE_CANCELLED, "stopped");
    pthread_mutex_unlock(&state->lock);
}

static void take_message_locked(struct troupe_run_state *state, uint32_t kind, uint64_t end)
{
    if (kind == TROUPE_MESSAGE_FAILED) {
        stop_locked(state);
    } else if (kind == TROUPE_MESSAGE_REPORT) {
        if (state->failure.is_set)
            stop_locked(state);
        take_report_locked(state, end);
    } else {
        if (state->failure.is_set)
            troupe_stage_poison(state->plan->stage, state->failure.iteration + 1);
        troupe_stage_admit(state->plan->stage, end);
        atomic_store(&state->is_final, 1);
        troupe_pool_wake(state->plan->session->runtime->pool);
    }
}

/* A message that cannot be read leaves a rank waiting for what it said: the job ends. */
static void give_up(struct troupe_session *session)
{
    troupe_log(TROUPE_LOG_ERROR, "%s", troupe_status_message());
    troupe_runtime_abort(session->runtime, 3);
}

bool troupe_run_receive(struct troupe_session *session, uint32_t kind, const void *data,
                        size_t bytes)
{
    if (kind != TROUPE_MESSAGE_FAILED && kind != TROUPE_MESSAGE_REPORT &&
        kind != TROUPE_MESSAGE_FINAL)
        return false;
    struct troupe_run_state *state = session->run;
    struct troupe_wire_reader reader;
    troupe_wire_reader_init(&reader, data, bytes);
    uint64_t number = troupe_wire_get_u64(&reader);
    uint64_t end = kind == TROUPE_MESSAGE_FAILED ? 0 : troupe_wire_get_u64(&reader);
    const char *rest = (const char *)data + reader.position;
    pthread_mutex_lock(&state->lock);
    bool is_current = state->is_active && number == state->number;
    /* A failure may be heard of twice, the second time after the end of its run. */
    bool is_late = number < state->number || (number == state->number && !state->is_active);
    bool is_read = !reader.failed;
    if (is_current && is_read)
        is_read = troupe_run_failure_read(rest, bytes - reader.position, session,
                                          &state->failure) == TROUPE_OK;
    if (is_current && is_read)
        take_message_locked(state, kind, end);
    pthread_mutex_unlock(&state->lock);
    if (!is_read)
        give_up(session);
    return is_current || is_late;
}

/* Letters that came before this rank was ready for the run are handled now. */
static void replay_letters(struct troupe_session *session)
{
    struct troupe_runtime *runtime = session->runtime;
    pthread_mutex_lock(&runtime->lock);
    struct troupe_letter *letter = runtime->first, *rest = NULL, **tail = &rest;
    runtime->first = runtime->last = NULL;
    pthread_mutex_unlock(&runtime->lock);
    struct troupe_letter *newest = NULL;
    while (letter) {
        struct troupe_letter *next = letter->next;
        if (troupe_run_receive(session, letter->kind, letter->data, letter->bytes)) {
            free(letter);
        } else {
            letter->next = NULL;
            *tail = letter;
            tail = &letter->next;
            newest = letter;
        }
        letter = next;
    }
    pthread_mutex_lock(&runtime->lock);
    if (rest) {
        newest->next = runtime->first;
        runtime->first = rest;
        if (!runtime->last)
            runtime->last = newest;
    }
    pthread_mutex_unlock(&runtime->lock);
}

static void plan_start(struct troupe_plan *plan, const struct troupe_run *run)
{
    plan->first_iteration = troupe_stage_admitted(plan->stage);
    plan->first_step = plan->session->step;
    plan->feed_values = run->feed_values;
    plan->dead_step = plan->dead_fetch = -1;
    plan->on_step = run->on_step;
    plan->on_step_context = run->on_step_context;
    troupe_stage_poison(plan->stage, UINT64_MAX);
}

/* Waits until the iterations of this rank and the common end are done. */
static void wait_for_end(struct troupe_run_state *state)
{
    struct troupe_session *session = state->plan->session;
    struct troupe_stage *stage = state->plan->stage;
    bool alone = session->runtime->transport->size == 1;
    if (!alone)
        troupe_runtime_await(session->runtime);
    /* What a stage's wait returns is this rank's own failure; the root cause is in the state, the
     * same on every rank. Without a deadline nothing else ends a wait. */
    (void)(troupe_stage_wait(stage, 0) == TROUPE_OK);
    pthread_mutex_lock(&state->lock);
    report_locked(state, troupe_stage_admitted(stage));
    pthread_mutex_unlock(&state->lock);
    if (!atomic_load(&state->is_final))
        (void)(troupe_pool_drive(session->runtime->pool, &state->is_final, 0) == TROUPE_OK);
    (void)(troupe_stage_wait(stage, 0) == TROUPE_OK);
    if (!alone)
        troupe_runtime_unawait(session->runtime);
}

static enum troupe_status take_fetched(struct troupe_plan *plan, struct troupe_tensor **fetched)
{
    if (plan->session->runtime->transport->rank != 0)
        return TROUPE_OK;
    for (int i = 0; i < plan->signature.fetch_count; i++) {
        if (!plan->last[i])
            return troupe_status_fail(TROUPE_OUT_OF_RANGE,
                                      "the sequence ended before the first step");
        if (fetched)
            fetched[i] = troupe_tensor_ref(plan->last[i]);
    }
    return TROUPE_OK;
}

static void drop_last(struct troupe_plan *plan)
{
    for (int i = 0; i < plan->signature.fetch_count; i++) {
        troupe_tensor_unref(plan->last[i]);
        plan->last[i] = NULL;
    }
}

static enum troupe_status run_result(struct troupe_run_state *state, const struct troupe_run *run,
                                     struct troupe_tensor **fetched, int64_t *steps_done)
{
    const struct troupe_run_failure *failure = &state->failure;
    struct troupe_plan *plan = state->plan;
    uint64_t done = (failure->is_set ? failure->iteration : troupe_stage_completed(plan->stage)) -
                    plan->first_iteration;
    if (steps_done)
        *steps_done = (int64_t)done;
    bool ended = failure->is_set && failure->status == TROUPE_OUT_OF_RANGE && run->steps == 0;
    if (failure->is_set && !ended)
        return troupe_status_fail(failure->status, "%s",
                                  failure->message ? failure->message : "(no memory)");
    if (plan->dead_fetch >= 0 && plan->dead_step < (int64_t)done)
        return troupe_fetch_dead(plan);
    return take_fetched(plan, fetched);
}

static void state_begin(struct troupe_run_state *state, struct troupe_plan *plan)
{
    pthread_mutex_lock(&state->lock);
    free(state->failure.message);
    state->failure = (struct troupe_run_failure){0};
    state->plan = plan;
    state->reported = false;
    state->reports = 0;
    state->end = 0;
    atomic_store(&state->is_final, 0);
    state->number = ++plan->session->runtime->runs;
    state->is_active = true;
    pthread_mutex_unlock(&state->lock);
}

enum troupe_status troupe_run_execute(struct troupe_plan *plan, const struct troupe_run *run,
                                      struct troupe_tensor **fetched, int64_t *steps_done)
{
    struct troupe_session *session = plan->session;
    struct troupe_run_state *state = session->run;
    plan_start(plan, run);
    state_begin(state, plan);
    uint64_t steps = run->steps == 0 ? TROUPE_RUN_ENDLESS : (uint64_t)run->steps;
    /* A rank without actors has nothing to wait for: it would count through all steps at once. It
     * follows the others when their end is known. */
    if (plan->part_count > 0)
        troupe_stage_admit(plan->stage, plan->first_iteration + steps);
    replay_letters(session);
    wait_for_end(state);
    pthread_mutex_lock(&state->lock);
    state->is_active = false;
    pthread_mutex_unlock(&state->lock);
    session->step += troupe_stage_completed(plan->stage) - plan->first_iteration;
    enum troupe_status status = run_result(state, run, fetched, steps_done);
    /* A stop has had its effect; one that comes too late for this run is for the next. */
    if (status == TROUPE_CANCELLED)
        atomic_store(&session->stop_requested, 0);
    drop_last(plan);
    return status;
}

enum troupe_status troupe_run_state_create(struct troupe_run_state **out)
{
    struct troupe_run_state *state = troupe_calloc(1, sizeof(*state));
    if (!state)
        return TROUPE_RESOURCE_EXHAUSTED;
    pthread_mutex_init(&state->lock, NULL);
    *out = state;
    return TROUPE_OK;
}

void troupe_run_state_destroy(struct troupe_run_state *state)
{
    if (!state)
        return;
    pthread_mutex_destroy(&state->lock);
    free(state->failure.message);
    free(state);
}
