/* Frames: describing them, entering and leaving. Invariant: an instance is either in its stage's
 * list of free ones, as new, or serves the one deferred firing that is its caller. */
#include <stdlib.h>

#include "actors/stage.h"
#include "base/memory.h"

/* Contexts of the actors that this file makes. */
struct frame {
    struct troupe_stage *body;
    void *context;
    int ticket;
};

struct frame_port {
    int number;
};

enum troupe_status troupe_stage_create_frame(int window, int argument_count, int result_count,
                                             struct troupe_stage **out)
{
    struct troupe_stage *stage;
    enum troupe_status status;

    if (argument_count < 0 || argument_count > TROUPE_STAGE_MAX_PORTS || result_count < 0 ||
        result_count > TROUPE_STAGE_MAX_PORTS)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "a frame has 0 to %d arguments and results, not %d and %d",
                                  TROUPE_STAGE_MAX_PORTS, argument_count, result_count);
    status = troupe_stage_create(window, &stage);
    if (status != TROUPE_OK)
        return status;
    stage->is_frame = true;
    stage->argument_count = argument_count;
    stage->result_count = result_count;
    *out = stage;
    return TROUPE_OK;
}

/* Adds an actor with a context of its own, which this takes. */
static enum troupe_status add_with_context(struct troupe_stage *stage,
                                           const struct troupe_actor_spec *spec, int *out)
{
    enum troupe_status status = troupe_stage_add(stage, spec, out);

    if (status == TROUPE_OK)
        stage->plans[*out].own_context = spec->context;
    else
        free(spec->context);
    return status;
}

static enum troupe_status frame_behave(void *context, struct troupe_firing *firing);

enum troupe_status troupe_stage_add_frame(struct troupe_stage *parent,
                                          const struct troupe_frame_spec *frame_spec, int *out)
{
    struct troupe_stage *body = frame_spec->body;
    struct troupe_actor_spec spec = {.name = frame_spec->name,
                                     .input_count = body->argument_count,
                                     .output_count = body->result_count,
                                     .behave = frame_behave,
                                     .takes_dead = frame_spec->ticket >= 0,
                                     .priority = frame_spec->priority};
    struct frame *frame;
    enum troupe_status status;

    if (!body->is_frame)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "frame \"%s\": its body must be made by "
                                  "troupe_stage_create_frame",
                                  spec.name);
    if (frame_spec->ticket < -1 || frame_spec->ticket >= body->argument_count)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "frame \"%s\" has %d arguments: %d cannot be its ticket",
                                  spec.name, body->argument_count, frame_spec->ticket);
    frame = troupe_calloc(1, sizeof *frame);
    if (frame == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    *frame =
        (struct frame){.body = body, .context = frame_spec->context, .ticket = frame_spec->ticket};
    spec.context = frame;
    status = add_with_context(parent, &spec, out);
    if (status == TROUPE_OK)
        parent->plans[*out].body = body;
    return status;
}

void *troupe_actor_context(const struct troupe_actor *actor)
{
    return actor->behave == frame_behave ? ((const struct frame *)actor->context)->context
                                         : actor->context;
}

static enum troupe_status frame_add_port(struct troupe_stage *frame, struct troupe_actor_spec *spec,
                                         int number, int count, const char *what, int *out)
{
    struct frame_port *port;

    if (number < 0 || number >= count)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "a frame with %d %ss has no %s %d",
                                  count, what, what, number);
    port = troupe_calloc(1, sizeof *port);
    if (port == NULL)
        return TROUPE_RESOURCE_EXHAUSTED;
    port->number = number;
    spec->context = port;
    return add_with_context(frame, spec, out);
}

static enum troupe_status argument_behave(void *context, struct troupe_firing *firing)
{
    const struct frame_port *port = context;
    struct troupe_payload *token =
        troupe_firing_record(firing)->instance->caller->tokens[port->number];

    /* The caller's firing holds its inputs until the frame has returned. */
    troupe_payload_ref(token, 1);
    troupe_firing_outputs(firing)[0] = token;
    return TROUPE_OK;
}

enum troupe_status troupe_stage_add_argument(struct troupe_stage *frame, const char *name,
                                             int argument, int *out)
{
    struct troupe_actor_spec spec = {.name = name, .output_count = 1, .behave = argument_behave};

    return frame_add_port(frame, &spec, argument, frame->argument_count, "argument", out);
}

static enum troupe_status result_behave(void *context, struct troupe_firing *firing)
{
    const struct frame_port *port = context;
    struct troupe_iteration *iteration = troupe_firing_record(firing);
    struct troupe_instance *instance = iteration->instance;
    struct troupe_result *result = &instance->results[port->number];
    struct troupe_payload *token = troupe_firing_take_input(firing, 0);

    /* Iterations in flight come in any order. */
    pthread_mutex_lock(&instance->lock);
    if (result->token == &troupe_payload_dead || result->number < iteration->number) {
        struct troupe_payload *older = result->token;

        *result = (struct troupe_result){.token = token, .number = iteration->number};
        token = older;
    }
    pthread_mutex_unlock(&instance->lock);
    troupe_payload_unref(token);
    return TROUPE_OK;
}

enum troupe_status troupe_stage_add_result(struct troupe_stage *frame, const char *name, int result,
                                           int *out)
{
    struct troupe_actor_spec spec = {.name = name, .input_count = 1, .behave = result_behave};

    return frame_add_port(frame, &spec, result, frame->result_count, "result", out);
}

/* SplitMix64's finisher, over the way down to a firing. */
static uint64_t path_mix(uint64_t path, uint64_t number)
{
    uint64_t mixed = path + (number + 1) * UINT64_C(0x9e3779b97f4a7c15);

    mixed = (mixed ^ (mixed >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    mixed = (mixed ^ (mixed >> 27)) * UINT64_C(0x94d049bb133111eb);
    return mixed ^ (mixed >> 31);
}

uint64_t troupe_firing_step(const struct troupe_firing *firing)
{
    const struct troupe_iteration *iteration = troupe_firing_record(firing);

    return iteration->instance->caller == NULL ? iteration->number
                                               : iteration->instance->root->number;
}

uint64_t troupe_firing_path(const struct troupe_firing *firing)
{
    const struct troupe_iteration *iteration = troupe_firing_record(firing);

    if (iteration->instance->caller == NULL)
        return 0;
    return path_mix(iteration->instance->path, iteration->number);
}

uint64_t troupe_firing_slot(const struct troupe_firing *firing)
{
    const struct troupe_iteration *iteration = troupe_firing_record(firing);
    uint64_t window = (uint64_t)iteration->instance->stage->window;

    return iteration->instance->slot * window + iteration->number % window;
}

void troupe_firing_continue(struct troupe_firing *firing)
{
    struct troupe_iteration *iteration = troupe_firing_record(firing);
    struct troupe_instance *instance = iteration->instance;
    struct troupe_ready ready;

    troupe_ready_init(&ready, instance->stage->pool);
    /* Cannot end the instance: this iteration has not completed. */
    (void)troupe_instance_admit(instance, iteration->number + 2, &ready);
}

static void used_add_locked(struct troupe_stage *stage, struct troupe_instance *instance)
{
    instance->previous = NULL;
    instance->next = stage->used;
    if (stage->used != NULL)
        stage->used->previous = instance;
    stage->used = instance;
}

static void used_remove_locked(struct troupe_stage *stage, struct troupe_instance *instance)
{
    if (instance->next != NULL)
        instance->next->previous = instance->previous;
    if (instance->previous != NULL)
        instance->previous->next = instance->next;
    else
        stage->used = instance->next;
}

/* An instance for a firing, from the free ones or new. */
static enum troupe_status frame_take(struct troupe_stage *stage, struct troupe_firing *caller,
                                     struct troupe_instance **out)
{
    struct troupe_iteration *iteration = troupe_firing_record(caller);
    struct troupe_instance *instance, *around = iteration->instance;
    enum troupe_status status;

    pthread_mutex_lock(&stage->lock);
    instance = stage->free;
    if (instance != NULL)
        stage->free = instance->next;
    pthread_mutex_unlock(&stage->lock);
    if (instance == NULL) {
        status = troupe_instance_create(stage, &instance);
        if (status != TROUPE_OK)
            return status;
    }
    instance->caller = caller;
    instance->depth = around->depth + 1;
    instance->root = around->caller == NULL ? iteration : around->root;
    instance->path = path_mix(troupe_firing_path(caller), (uint64_t)caller->actor->number);
    instance->slot = troupe_firing_slot(caller);
    instance->drains = troupe_firing_is_dead(caller);
    pthread_mutex_lock(&stage->lock);
    used_add_locked(stage, instance);
    pthread_mutex_unlock(&stage->lock);
    *out = instance;
    return TROUPE_OK;
}

/* Loop variables start as arguments. */
static void frame_give_arguments(struct troupe_instance *instance)
{
    const struct troupe_stage *stage = instance->stage;

    for (int i = 0; i < stage->early_count; i++) {
        const struct troupe_edge *edge = &stage->edges[stage->early_edges[i]];
        struct troupe_payload *token;
        struct troupe_firing *head;

        if (edge->argument < 0)
            continue;
        token = instance->caller->tokens[edge->argument];
        head = troupe_actor_cell(instance, edge->to, 0);
        troupe_payload_ref(token, 1);
        head->tokens[edge->to_port] = token;
        /* Relaxed: published by the admission. */
        if (token == &troupe_payload_dead)
            atomic_store_explicit(&head->dead, true, memory_order_relaxed);
    }
}

static void outputs_die(struct troupe_firing *firing)
{
    for (int port = 0; port < firing->actor->output_count; port++)
        troupe_firing_outputs(firing)[port] = &troupe_payload_dead;
}

static enum troupe_status frame_behave(void *context, struct troupe_firing *firing)
{
    const struct frame *frame = context;
    struct troupe_stage *body = frame->body;
    struct troupe_instance *instance;
    struct troupe_firing *caller;
    struct troupe_ready ready;
    enum troupe_status status;

    if (frame->ticket >= 0 && firing->tokens[frame->ticket] == &troupe_payload_dead) {
        outputs_die(firing);
        return TROUPE_OK;
    }
    if (body->pool == NULL)
        return troupe_status_fail(TROUPE_FAILED_PRECONDITION, "the frame's body was never cast");
    if (troupe_firing_record(firing)->instance->depth >= TROUPE_FRAME_MAX_DEPTH)
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED,
                                  "frames are nested %d deep: does the recursion end?",
                                  TROUPE_FRAME_MAX_DEPTH);
    status = frame_take(body, firing, &instance);
    if (status != TROUPE_OK)
        return status;
    troupe_ready_init(&ready, body->pool);
    frame_give_arguments(instance);
    (void)troupe_firing_defer(firing);
    /* At once only from a body that has no sink: then the firing ends here. */
    caller = troupe_instance_admit(instance, 1, &ready);
    if (caller != NULL)
        troupe_firing_finish(caller, false, &ready);
    troupe_ready_flush(&ready);
    return TROUPE_OK;
}

struct troupe_firing *troupe_frame_return(struct troupe_instance *instance)
{
    struct troupe_stage *stage = instance->stage;
    struct troupe_firing *caller = instance->caller;
    struct troupe_payload **outputs = troupe_firing_outputs(caller);

    for (int i = 0; i < stage->result_count; i++) {
        outputs[i] = instance->results[i].token;
        instance->results[i].token = &troupe_payload_dead;
    }
    troupe_instance_reset(instance);
    pthread_mutex_lock(&stage->lock);
    used_remove_locked(stage, instance);
    instance->next = stage->free;
    stage->free = instance;
    pthread_mutex_unlock(&stage->lock);
    return caller;
}
