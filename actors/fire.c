/* Firing and sending: the hot path. Invariant: a firing touches its cell for the last time before
 * its last send over an edge of distance 0 (or, for a sink, before it counts as fired), because
 * from then on the iteration may complete, and the cell serve another one. For that reason
 * edges with a distance are served first. */
#include <stddef.h>
#include <string.h>

#include "actors/stage.h"

/* So many firings follow each other inside one task before the pool is asked again. */
#define INLINE_LIMIT 64
/* Consumers whose cells are fetched together, before the behaviour runs: one after the other, each
 * would be waited for. */
#define PREFETCH_LIMIT 8

static struct troupe_firing *firing_of_task(struct troupe_task *task)
{
    return (struct troupe_firing *)((char *)task - offsetof(struct troupe_firing, task));
}

uint64_t troupe_firing_iteration(const struct troupe_firing *firing)
{
    return troupe_firing_record(firing)->number;
}

struct troupe_payload *const *troupe_firing_inputs(const struct troupe_firing *firing)
{
    return firing->tokens;
}

struct troupe_payload **troupe_firing_outputs(struct troupe_firing *firing)
{
    return firing->tokens + firing->actor->input_count;
}

struct troupe_payload *troupe_firing_take_input(struct troupe_firing *firing, int port)
{
    struct troupe_payload *token = firing->tokens[port];

    firing->tokens[port] = NULL;
    return token;
}

bool troupe_firing_is_dead(const struct troupe_firing *firing)
{
    return firing->is_dead;
}

void *troupe_firing_context(const struct troupe_firing *firing)
{
    return firing->actor->context;
}

struct troupe_firing *troupe_firing_defer(struct troupe_firing *firing)
{
    /* A local of the code that called the behaviour: the cell may serve another iteration before
     * that code looks. */
    *firing->task.flag = true;
    return firing;
}

void troupe_ready_init(struct troupe_ready *ready, struct troupe_pool *pool)
{
    struct troupe_worker *worker = troupe_worker_current();

    ready->pool = pool;
    ready->worker = worker != NULL && troupe_worker_pool(worker) == pool ? worker : NULL;
    ready->alone = ready->worker != NULL && troupe_pool_workers(pool) == 1;
    ready->count = 0;
}

void troupe_ready_flush(struct troupe_ready *ready)
{
    if (ready->count > 0)
        troupe_pool_push_many(ready->pool, ready->worker, ready->tasks, ready->count);
    ready->count = 0;
}

static void ready_add(struct troupe_ready *ready, struct troupe_firing *firing)
{
    if (ready->count == TROUPE_READY_ROOM)
        troupe_ready_flush(ready);
    /* On its way from memory until the firing's turn comes. */
    __builtin_prefetch(firing->actor);
    ready->tasks[ready->count++] = &firing->task;
}

/* Counts one arrival at a counter that started at `need`; true when it was the last. */
static bool count_arrival(_Atomic(int32_t) *missing, int32_t need)
{
    /* Release: publishes the token to whoever sees the last arrival, which acquires. */
    return need == 1 || atomic_fetch_sub_explicit(missing, 1, memory_order_acq_rel) == 1;
}

/* The same for an edge within an iteration. A pool's only worker counts without locking the bus:
 * deferred firings end on it too, and the admission, from any thread, counts at sources alone. */
static bool count_near_arrival(_Atomic(int32_t) *missing, int32_t need, bool alone)
{
    int32_t left;

    if (!alone)
        return count_arrival(missing, need);
    if (need == 1)
        return true;
    /* Relaxed: no other thread uses the counter before the pool has another driver. */
    left = atomic_load_explicit(missing, memory_order_relaxed) - 1;
    atomic_store_explicit(missing, left, memory_order_relaxed);
    return left == 0;
}

void troupe_actor_admit(const struct troupe_actor *actor, struct troupe_iteration *iteration,
                        struct troupe_ready *ready)
{
    struct troupe_firing *firing =
        troupe_actor_cell(iteration->instance, actor->number, iteration->number);

    if (!count_arrival(&firing->missing, actor->need))
        return;
    if (actor->is_far)
        *troupe_far_cell_iteration(firing) = iteration;
    ready_add(ready, firing);
}

/* Slow paths are functions of their own, marked cold, so that the others stay short. */
#define COLD __attribute__((cold, noinline))

static COLD void firing_put_dead(struct troupe_firing *firing)
{
    /* Relaxed: published by the arrival. */
    atomic_store_explicit(&firing->dead, true, memory_order_relaxed);
}

static void firing_put(struct troupe_firing *firing, int to_port, struct troupe_payload *token,
                       bool dead)
{
    if (to_port >= 0)
        firing->tokens[to_port] = token;
    if (dead)
        firing_put_dead(firing);
}

/* What a port sends: its token, or a plain signal that is as dead as the firing. */
static struct troupe_payload *port_token(struct troupe_payload **outputs, int port, bool dead)
{
    return port >= 0 ? outputs[port] : (dead ? &troupe_payload_dead : NULL);
}

static void far_send(const struct troupe_far_mailbox *mailbox, struct troupe_iteration *iteration,
                     struct troupe_payload *token, struct troupe_ready *ready)
{
    struct troupe_instance *instance = iteration->instance;
    const struct troupe_actor *to = mailbox->to;
    uint64_t number = iteration->number + mailbox->distance;
    struct troupe_firing *firing =
        troupe_far_cell(instance, to->cell, mailbox->stride, number & mailbox->slot_mask);
    bool dead = token == &troupe_payload_dead;

    /* A signal over a distance carries no deadness. */
    if (dead && mailbox->distance != 0 && (mailbox->from_port < 0 || mailbox->to_port < 0)) {
        dead = false;
        token = NULL;
    }
    firing_put(firing, mailbox->to_port, token, dead);
    if (!count_arrival(&firing->missing, to->need))
        return;
    *troupe_far_cell_iteration(firing) = troupe_instance_iteration(instance, number);
    ready_add(ready, firing);
}

static COLD void far_send_all(struct troupe_iteration *iteration, const struct troupe_actor *actor,
                              struct troupe_payload **outputs, bool dead,
                              struct troupe_ready *ready)
{
    const struct troupe_actor_rest *rest = &iteration->instance->stage->rest[actor->number];
    const struct troupe_far_mailbox *mailbox = rest->far, *end = rest->far + rest->far_count;

    for (; mailbox < end; mailbox++)
        far_send(mailbox, iteration, port_token(outputs, mailbox->from_port, dead), ready);
}

/* Gives an output's token as many references as it has consumers, which are not one. */
static __attribute__((noinline)) void token_count(struct troupe_payload *token, int consumers)
{
    if (consumers > 1)
        troupe_payload_ref(token, (uint32_t)(consumers - 1));
    else
        troupe_payload_unref(token);
}

/* True when the output is dead, as all outputs of a failed firing are. */
static bool output_settle(struct troupe_payload **output, int consumers, bool failed)
{
    struct troupe_payload *token = *output;

    if (failed) {
        *output = &troupe_payload_dead;
        troupe_payload_unref(token);
    } else if (token != &troupe_payload_dead && consumers != 1) {
        token_count(token, consumers);
    }
    return *output == &troupe_payload_dead;
}

static COLD bool outputs_settle(struct troupe_firing *firing, bool failed)
{
    const struct troupe_actor *actor = firing->actor;
    const struct troupe_actor_rest *rest =
        &troupe_firing_record(firing)->instance->stage->rest[actor->number];
    bool dead = true;

    if (actor->output_count == 1)
        return output_settle(troupe_firing_outputs(firing), actor->consumers, failed);
    for (int port = 0; port < actor->output_count; port++)
        dead &= output_settle(&troupe_firing_outputs(firing)[port], rest->consumers[port], failed);
    return dead;
}

/* Returns whether the firing counts as dead: it was told to, or it has outputs and all are dead. */
static inline bool firing_settle_outputs(struct troupe_firing *firing, bool failed)
{
    const struct troupe_actor *actor = firing->actor;

    if (actor->output_count == 0)
        return failed || firing->is_dead;
    if (actor->output_count != 1 || failed)
        return outputs_settle(firing, failed);
    return output_settle(troupe_firing_outputs(firing), actor->consumers, false);
}

/* Drops the tokens from `port` on. */
static __attribute__((noinline)) void tokens_release(struct troupe_payload **tokens, int port,
                                                     int count)
{
    for (; port < count; port++) {
        struct troupe_payload *token = tokens[port];
        uint32_t same = 1;

        if (token == NULL)
            continue;
        tokens[port] = NULL;
        /* Neighbours often hold the same token: one subtraction drops them all. */
        for (; port + 1 < count && tokens[port + 1] == token; same++)
            tokens[++port] = NULL;
        troupe_payload_unref_many(token, same);
    }
}

static void firing_release_inputs(struct troupe_firing *firing)
{
    int port = 0, count = firing->actor->input_count;

    while (port < count && firing->tokens[port] == NULL)
        port++;
    if (port < count)
        tokens_release(firing->tokens, port, count);
}

static __attribute__((noinline)) void group_send(const struct troupe_mailbox *mailbox,
                                                 struct troupe_iteration *iteration,
                                                 struct troupe_payload *token,
                                                 struct troupe_ready *ready)
{
    struct troupe_group *group = (void *)((char *)iteration + (size_t)mailbox->cell * TROUPE_LINE);
    struct troupe_firing *to = troupe_iteration_cell(iteration, group->cell);
    int32_t cell_need = group->cell_need;

    firing_put(to, mailbox->to_port, token, token == &troupe_payload_dead);
    if (!count_near_arrival(&group->missing, group->need, ready->alone))
        return;
    /* Relaxed: published by the arrival at the cell, before which no iteration can follow. */
    atomic_store_explicit(&group->missing, group->need, memory_order_relaxed);
    if (count_near_arrival(&to->missing, cell_need, ready->alone))
        ready_add(ready, to);
}

static void near_send(const struct troupe_mailbox *mailbox, struct troupe_iteration *iteration,
                      struct troupe_payload *token, struct troupe_ready *ready)
{
    struct troupe_firing *to = troupe_iteration_cell(iteration, mailbox->cell);

    if (mailbox->need == 0) {
        group_send(mailbox, iteration, token, ready);
        return;
    }
    firing_put(to, mailbox->to_port, token, token == &troupe_payload_dead);
    if (count_near_arrival(&to->missing, mailbox->need, ready->alone))
        ready_add(ready, to);
}

/* Ends a firing whose outputs are set: releases the inputs, makes the cell ready for its next
 * iteration, sends. Not to be touched afterwards: the cell, nor (for a sink) the stage. Returns a
 * frame's firing that this one has ended. */
static inline __attribute__((always_inline)) struct troupe_firing *
firing_end(struct troupe_firing *firing, const struct troupe_actor *actor,
           struct troupe_iteration *iteration, bool failed, struct troupe_ready *ready)
{
    struct troupe_payload **outputs = troupe_firing_outputs(firing);
    const struct troupe_mailbox *mailbox = actor->mailboxes;
    const struct troupe_mailbox *end = mailbox + actor->mailbox_count;
    bool is_sink = actor->is_sink, dead = firing_settle_outputs(firing, failed);

    firing_release_inputs(firing);
    /* Relaxed: the sends below publish them to whoever uses the cell next; `fired` is read by
     * describe_stall only, as a hint. */
    atomic_store_explicit(&firing->missing, actor->need, memory_order_relaxed);
    atomic_store_explicit(&firing->dead, false, memory_order_relaxed);
    atomic_store_explicit(&firing->fired, (uint16_t)(iteration->number + 1), memory_order_relaxed);
    if (actor->has_far_mailboxes)
        far_send_all(iteration, actor, outputs, dead, ready);
    for (; mailbox < end; mailbox++)
        near_send(mailbox, iteration, port_token(outputs, mailbox->from_port, dead), ready);
    /* Acquire and release: the last sink publishes what all firings of the iteration did. */
    if (is_sink && atomic_fetch_sub_explicit(&iteration->sinks_left, 1, memory_order_acq_rel) == 1)
        return troupe_iteration_finish(iteration, ready);
    return NULL;
}

void troupe_firing_finish(struct troupe_firing *firing, bool failed, struct troupe_ready *ready)
{
    /* A loop, not a recursion: functions that call themselves return one after another here. */
    for (; firing != NULL; failed = false)
        firing = firing_end(firing, firing->actor, troupe_firing_record(firing), failed, ready);
}

static __attribute__((noinline)) void prefetch_consumers(const struct troupe_actor *actor,
                                                         struct troupe_iteration *iteration)
{
    int count = actor->mailbox_count < PREFETCH_LIMIT ? actor->mailbox_count : PREFETCH_LIMIT;

    for (int i = 0; i < count; i++)
        __builtin_prefetch(troupe_iteration_cell(iteration, actor->mailboxes[i].cell), 1);
}

static void firing_fire(struct troupe_firing *firing, struct troupe_ready *ready)
{
    const struct troupe_actor *actor = firing->actor;
    struct troupe_payload **outputs = troupe_firing_outputs(firing);
    enum troupe_status status = TROUPE_OK;
    struct troupe_iteration *iteration = troupe_firing_record(firing);
    struct troupe_firing *caller;
    bool deferred = false;

    if (actor->mailbox_count > 1)
        prefetch_consumers(actor, iteration);
    if (actor->output_count == 1)
        outputs[0] = NULL;
    else if (actor->output_count > 1)
        memset(outputs, 0, (size_t)actor->output_count * sizeof *outputs);
    /* Relaxed: the first is acquired with the last arrival; draining may start a firing later, what
     * failed reaches its consumers as dead. */
    firing->is_dead = atomic_load_explicit(&firing->dead, memory_order_relaxed) ||
                      atomic_load_explicit(&iteration->drains, memory_order_relaxed);
    if (firing->is_dead && !actor->takes_dead) {
        troupe_firing_finish(firing, true, ready);
        return;
    }
    firing->task.flag = &deferred;
    status = actor->behave(actor->context, firing);
    if (status != TROUPE_OK)
        troupe_firing_fail(firing, status, troupe_status_message());
    else if (deferred)
        return; /* perhaps complete already: the cell is no longer ours */
    caller = firing_end(firing, actor, iteration, status != TROUPE_OK, ready);
    if (caller != NULL)
        troupe_firing_finish(caller, false, ready);
}

void troupe_firing_run(struct troupe_task *task, struct troupe_worker *worker)
{
    struct troupe_ready ready;
    bool polls = troupe_worker_polls(worker);

    ready.worker = worker;
    ready.pool = troupe_worker_pool(worker);
    ready.alone = troupe_pool_workers(ready.pool) == 1;
    ready.count = 0;
    for (int i = 0; i < INLINE_LIMIT; i++) {
        firing_fire(firing_of_task(task), &ready);
        if (polls)
            troupe_worker_poll(worker);
        if (ready.count > 0) {
            /* The best is fired here, the others may be stolen meanwhile. */
            task = ready.tasks[--ready.count];
            troupe_ready_flush(&ready);
            continue;
        }
        task = troupe_worker_take(worker);
        if (task == NULL)
            return;
        if (task->run != troupe_firing_run)
            break;
    }
    troupe_pool_push(ready.pool, worker, task);
}

/* Ends a deferred firing on a worker: nobody else may count arrivals of a pool that has one. */
static void completion_run(struct troupe_task *task, struct troupe_worker *worker)
{
    struct troupe_firing *firing = firing_of_task(task);
    struct troupe_ready ready;

    (void)worker;
    troupe_ready_init(&ready, troupe_firing_record(firing)->instance->stage->pool);
    task->run = troupe_firing_run;
    troupe_firing_finish(firing, firing->has_failed, &ready);
    troupe_ready_flush(&ready);
}

void troupe_firing_complete(struct troupe_firing *deferred, enum troupe_status status,
                            const char *message, struct troupe_payload **outputs)
{
    struct troupe_pool *pool = troupe_firing_record(deferred)->instance->stage->pool;
    struct troupe_ready ready;

    troupe_ready_init(&ready, pool);
    if (status != TROUPE_OK)
        troupe_firing_fail(deferred, status, message != NULL ? message : "");
    else if (outputs != NULL)
        for (int port = 0; port < deferred->actor->output_count; port++)
            troupe_firing_outputs(deferred)[port] = outputs[port];
    if (ready.worker == NULL && troupe_pool_workers(pool) == 1) {
        deferred->has_failed = status != TROUPE_OK;
        deferred->task.run = completion_run;
        troupe_pool_push(pool, NULL, &deferred->task);
        return;
    }
    troupe_firing_finish(deferred, status != TROUPE_OK, &ready);
    troupe_ready_flush(&ready);
}
