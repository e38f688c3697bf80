/* Feeds and fetches: the actors at the ends of a plan, on rank 0. */
#include <stdlib.h>

#include "base/memory.h"
#include "coordinator/run.h"
#include "ops/tensor.h"

struct feed_part {
    struct troupe_plan_part part;
    int feed;
};

static enum troupe_status feed_behave(void *context, struct troupe_firing *firing)
{
    struct feed_part *self = context;
    struct troupe_tensor *value = self->part.plan->feed_values[self->feed];
    troupe_firing_outputs(firing)[0] = troupe_tensor_payload(troupe_tensor_ref(value));
    return TROUPE_OK;
}

static void feed_part_destroy(struct troupe_plan_part *part)
{
    free(part);
}

enum troupe_status troupe_feed_part_create(struct troupe_plan *plan, int feed,
                                           struct troupe_plan_part **out,
                                           struct troupe_actor_spec *spec)
{
    struct feed_part *self = troupe_calloc(1, sizeof(*self));
    if (!self)
        return TROUPE_RESOURCE_EXHAUSTED;
    int node = plan->signature.feeds[feed].node;
    self->part =
        (struct troupe_plan_part){.plan = plan, .node = node, .destroy = feed_part_destroy};
    self->feed = feed;
    spec->name = plan->session->graph->nodes[node].name;
    spec->behave = feed_behave;
    spec->context = self;
    *out = &self->part;
    return TROUPE_OK;
}

static void fetch_part_destroy(struct troupe_plan_part *part)
{
    free(part);
}

/* Ends the run when the last fetch says so. */
static enum troupe_status look_at_until(struct troupe_plan *plan)
{
    const struct troupe_tensor *value = plan->last[plan->signature.fetch_count - 1];
    if (troupe_tensor_elements(value) != 1)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "until wants a scalar, got %lld values",
                                  (long long)troupe_tensor_elements(value));
    if (*(const bool *)troupe_tensor_data(value))
        troupe_request_end(plan->request, TROUPE_OK, "");
    return TROUPE_OK;
}

/* Notes the first step in which a fetched value is dead: because of a branch not taken, unless the
 * step turns out to have failed. */
static void fetch_note_dead(struct troupe_plan *plan, const struct troupe_firing *firing)
{
    struct troupe_payload *const *tokens = troupe_firing_inputs(firing);
    for (int i = 0; i < plan->signature.fetch_count && plan->dead_fetch < 0; i++) {
        if (tokens[i] != &troupe_payload_dead)
            continue;
        plan->dead_step = (int64_t)(troupe_firing_iteration(firing) - plan->first_iteration);
        plan->dead_fetch = i;
    }
}

/* The fetched values of a live iteration become the plan's last ones. An edge of distance 1 from
 * the actor to itself keeps iterations in order. */
static enum troupe_status fetch_behave(void *context, struct troupe_firing *firing)
{
    struct troupe_plan_part *self = context;
    struct troupe_plan *plan = self->plan;
    struct troupe_payload *const *tokens = troupe_firing_inputs(firing);
    if (troupe_firing_is_dead(firing)) {
        fetch_note_dead(plan, firing);
        return TROUPE_OK;
    }
    for (int i = 0; i < plan->signature.fetch_count; i++) {
        troupe_tensor_unref(plan->last[i]);
        plan->last[i] = troupe_tensor_ref(troupe_tensor_of_payload(tokens[i]));
    }
    if (plan->on_step)
        plan->on_step(plan->on_step_context,
                      (int64_t)(troupe_firing_iteration(firing) - plan->first_iteration),
                      plan->last);
    return plan->has_until ? look_at_until(plan) : TROUPE_OK;
}

enum troupe_status troupe_fetch_part_create(struct troupe_plan *plan, struct troupe_plan_part **out,
                                            struct troupe_actor_spec *spec)
{
    struct troupe_plan_part *self = troupe_calloc(1, sizeof(*self));
    if (!self)
        return TROUPE_RESOURCE_EXHAUSTED;
    *self = (struct troupe_plan_part){.plan = plan, .node = -1, .destroy = fetch_part_destroy};
    spec->name = "fetch";
    spec->behave = fetch_behave;
    spec->takes_dead = true;
    spec->context = self;
    *out = self;
    return TROUPE_OK;
}
