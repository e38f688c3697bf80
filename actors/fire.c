/* Firing and sending: the hot path. Invariant: a firing touches its cell for the last time before
 * its last send over an edge of distance 0 (or, for a sink, before it counts as fired), because
 * from then on the iteration may complete, and the cell serve another one. For that reason
 * edges with a distance are served first. */
#include <stddef.h>

#include "actors/stage.h"

/* So many firings follow each other inside one task before the pool is asked again. */
#define INLINE_LIMIT 64

static struct troupe_firing *firing_of_task(struct troupe_task *task)
{
    return (struct troupe_firing *)((char *)task - offsetof(struct troupe_firing, task));
}

struct troupe_firing *troupe_actor_cell(const struct troupe_actor *actor, uint64_t iteration)
{
    return (void *)(actor->cells + (size_t)(iteration % actor->slots) * actor->stride);
}

uint64_t troupe_firing_iteration(const struct troupe_firing *firing)
{
    return firing->iteration;
}

struct troupe_payload *const *troupe_firing_inputs(const struct troupe_firing *firing)
{
    return firing->tokens;
}

struct troupe_payload **troupe_firing_outputs(struct troupe_firing *firing)
{
    return firing->tokens + firing->actor->input_count;
}

bool troupe_firing_is_dead(const struct troupe_firing *firing)
{
    return firing->is_dead;
}

struct troupe_firing *troupe_firing_defer(struct troupe_firing *firing)
{
    *firing->deferred = true;
    return firing;
}

/* Consumers are sent to by rising priority: the last of equals is the best so far. */
static void ready_add(struct troupe_ready *ready, struct troupe_firing *firing)
{
    struct troupe_firing *other = ready->best;

    if (other != NULL) {
        if (firing->actor->priority < other->actor->priority) {
            other = firing;
            firing = ready->best;
        }
        troupe_pool_push(other->actor->stage->pool, ready->worker, &other->task);
    }
    ready->best = firing;
}

void troupe_ready_flush(struct troupe_ready *ready, struct troupe_pool *pool)
{
    if (ready->best != NULL)
        troupe_pool_push(pool, ready->worker, &ready->best->task);
    ready->best = NULL;
}

/* Counts one arrival for `iteration`. */
static void firing_arrive(struct troupe_firing *firing, int32_t need, uint64_t iteration,
                          struct troupe_ready *ready)
{
    /* Release: publishes the token to whoever sees the last arrival, which acquires. */
    if (need != 1 && atomic_fetch_sub_explicit(&firing->missing, 1, memory_order_acq_rel) != 1)
        return;
    firing->iteration = iteration;
    ready_add(ready, firing);
}

void troupe_actor_admit(struct troupe_actor *actor, uint64_t iteration, struct troupe_ready *ready)
{
    firing_arrive(troupe_actor_cell(actor, iteration), actor->need, iteration, ready);
}

struct sender {
    struct troupe_ready *ready;
    uint64_t iteration;
    uint32_t slot, slots; /* of the sending cell */
    bool dead;
};

static void mailbox_send(const struct troupe_mailbox *mailbox, const struct sender *sender,
                         struct troupe_payload *token)
{
    uint64_t iteration = sender->iteration + mailbox->distance;
    /* Equal numbers of slots mean equal slots: no division for most edges. */
    size_t slot = mailbox->distance == 0 && mailbox->slots == sender->slots
                      ? sender->slot
                      : iteration % mailbox->slots;
    struct troupe_firing *to = (void *)(mailbox->cells + slot * mailbox->stride);
    bool dead = mailbox->from_port >= 0 ? token == &troupe_payload_dead : sender->dead;

    if (mailbox->distance != 0 && (mailbox->from_port < 0 || mailbox->to_port < 0))
        dead = false;
    if (mailbox->to_port >= 0)
        to->tokens[mailbox->to_port] =
            mailbox->from_port >= 0 ? token : (dead ? &troupe_payload_dead : NULL);
    /* Relaxed: published by the arrival. */
    if (dead)
        atomic_store_explicit(&to->dead, true, memory_order_relaxed);
    firing_arrive(to, mailbox->need, iteration, sender->ready);
}

/* Gives each output's token as many references as it has consumers, and returns whether the
 * firing counts as dead: it was told to, or it has outputs and all are dead. */
static bool firing_settle_outputs(struct troupe_firing *firing, bool failed)
{
    const struct troupe_actor *actor = firing->actor;
    struct troupe_payload **outputs = troupe_firing_outputs(firing);
    bool all_dead = true;

    for (int port = 0; port < actor->output_count; port++) {
        int consumers = actor->consumers[port];

        if (failed) {
            troupe_payload_unref(outputs[port]);
            outputs[port] = &troupe_payload_dead;
            continue;
        }
        if (outputs[port] != &troupe_payload_dead)
            all_dead = false;
        if (consumers > 1)
            troupe_payload_ref(outputs[port], (uint32_t)(consumers - 1));
        else if (consumers == 0)
            troupe_payload_unref(outputs[port]);
    }
    return failed || (actor->output_count > 0 ? all_dead : firing->is_dead);
}

static void firing_release_inputs(struct troupe_firing *firing)
{
    for (int port = 0; port < firing->actor->input_count; port++) {
        struct troupe_payload *token = firing->tokens[port];

        firing->tokens[port] = NULL;
        troupe_payload_unref(token);
    }
}

/* Ends a firing whose outputs are set: releases the inputs, makes the cell ready for its next
 * iteration, sends. Not to be touched afterwards: the cell, nor (for a sink) the stage. */
static void firing_finish(struct troupe_firing *firing, bool failed, struct troupe_ready *ready)
{
    struct troupe_actor *actor = firing->actor;
    struct troupe_stage *stage = actor->stage;
    struct sender sender = {.ready = ready,
                            .iteration = firing->iteration,
                            .slot = firing->slot,
                            .slots = actor->slots};
    struct troupe_payload **outputs = troupe_firing_outputs(firing);
    const struct troupe_mailbox *mailbox = actor->mailboxes;
    const struct troupe_mailbox *end = mailbox + actor->mailbox_count;
    bool is_sink = actor->is_sink;

    sender.dead = firing_settle_outputs(firing, failed);
    firing_release_inputs(firing);
    /* Relaxed: the sends below publish them to whoever uses the cell next; `finished` is read by
     * describe_stall only, as a hint. */
    atomic_store_explicit(&firing->missing, actor->need, memory_order_relaxed);
    atomic_store_explicit(&firing->dead, false, memory_order_relaxed);
    atomic_store_explicit(&firing->finished, sender.iteration + 1, memory_order_relaxed);
    for (; mailbox < end; mailbox++)
        mailbox_send(mailbox, &sender,
                     mailbox->from_port >= 0 ? outputs[mailbox->from_port] : NULL);
    if (!is_sink)
        return;
    /* Acquire and release: the last sink publishes what all firings of the iteration did. */
    if (atomic_fetch_sub_explicit(&stage->iterations[sender.iteration % stage->window].sinks_left,
                                  1, memory_order_acq_rel) == 1)
        troupe_stage_finish_iteration(stage, sender.iteration, ready);
}

/* Whether the iteration is drained as dead. */
static bool firing_must_drain(const struct troupe_firing *firing)
{
    struct troupe_stage *stage = firing->actor->stage;

    /* Relaxed: draining may start a firing later; what failed reaches its consumers as dead. */
    if (firing->iteration >= atomic_load_explicit(&stage->poison, memory_order_relaxed))
        return true;
    return atomic_load_explicit(&stage->failed_iterations, memory_order_relaxed) != 0 &&
           atomic_load_explicit(&stage->iterations[firing->iteration % stage->window].failed,
                                memory_order_relaxed);
}

static void firing_fire(struct troupe_firing *firing, struct troupe_ready *ready)
{
    struct troupe_actor *actor = firing->actor;
    struct troupe_payload **outputs = troupe_firing_outputs(firing);
    enum troupe_status status = TROUPE_OK;
    bool deferred = false;

    for (int port = 0; port < actor->output_count; port++)
        outputs[port] = NULL;
    /* Relaxed: acquired with the last arrival. */
    firing->is_dead =
        atomic_load_explicit(&firing->dead, memory_order_relaxed) || firing_must_drain(firing);
    if (firing->is_dead && !actor->takes_dead) {
        firing_finish(firing, true, ready);
        return;
    }
    firing->deferred = &deferred;
    status = actor->behave(actor->context, firing);
    if (status != TROUPE_OK)
        troupe_stage_fail(actor->stage, actor, firing->iteration, status, troupe_status_message());
    else if (deferred)
        return; /* perhaps complete already: the cell is no longer ours */
    firing_finish(firing, status != TROUPE_OK, ready);
}

void troupe_firing_run(struct troupe_task *task, struct troupe_worker *worker)
{
    struct troupe_ready ready = {.worker = worker, .best = firing_of_task(task)};

    for (int i = 0; i < INLINE_LIMIT && ready.best != NULL; i++) {
        struct troupe_firing *firing = ready.best;

        ready.best = NULL;
        firing_fire(firing, &ready);
        troupe_worker_poll(worker);
    }
    troupe_ready_flush(&ready, troupe_worker_pool(worker));
}

void troupe_firing_complete(struct troupe_firing *deferred, enum troupe_status status,
                            const char *message, struct troupe_payload **outputs)
{
    struct troupe_actor *actor = deferred->actor;
    struct troupe_pool *pool = actor->stage->pool;
    struct troupe_worker *worker = troupe_worker_current();
    struct troupe_ready ready = {0};

    if (worker != NULL && troupe_worker_pool(worker) == pool)
        ready.worker = worker;
    if (status != TROUPE_OK)
        troupe_stage_fail(actor->stage, actor, deferred->iteration, status,
                          message != NULL ? message : "");
    else if (outputs != NULL)
        for (int port = 0; port < actor->output_count; port++)
            troupe_firing_outputs(deferred)[port] = outputs[port];
    firing_finish(deferred, status != TROUPE_OK, &ready);
    troupe_ready_flush(&ready, pool);
}
