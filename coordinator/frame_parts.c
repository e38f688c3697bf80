/* What loops have beside the nodes' kernels: the head of a loop variable, and the actor that asks
 * for another iteration. */
#include <stdlib.h>

#include "base/memory.h"
#include "coordinator/plan.h"
#include "ops/tensor.h"

struct head_part {
    struct troupe_plan_part part;
    bool uses_index; /* somebody wants to know where the value comes from */
    int32_t first_index, next_index;
};

static enum troupe_status head_behave(void *context, struct troupe_firing *firing)
{
    const struct head_part *self = context;
    if (self->uses_index) {
        bool is_first = troupe_firing_iteration(firing) == 0;
        struct troupe_tensor *index;
        enum troupe_status status = troupe_tensor_create(TROUPE_INT32, 0, NULL, &index);
        if (status != TROUPE_OK)
            return status;
        *(int32_t *)troupe_tensor_data_mutable(index) =
            is_first ? self->first_index : self->next_index;
        troupe_firing_outputs(firing)[1] = troupe_tensor_payload(index);
    }
    troupe_firing_outputs(firing)[0] = troupe_firing_take_input(firing, 0);
    return TROUPE_OK;
}

static void part_destroy(struct troupe_plan_part *part)
{
    free(part);
}

enum troupe_status troupe_head_part_create(struct troupe_plan *plan,
                                           const struct troupe_loop_merge *merge, bool uses_index,
                                           struct troupe_plan_part **out,
                                           struct troupe_actor_spec *spec)
{
    struct head_part *self = troupe_calloc(1, sizeof(*self));
    if (!self)
        return TROUPE_RESOURCE_EXHAUSTED;
    self->part =
        (struct troupe_plan_part){.plan = plan, .node = merge->node, .destroy = part_destroy};
    self->uses_index = uses_index;
    self->first_index = merge->enter_input;
    self->next_index = merge->next_input;
    spec->name = plan->session->graph->nodes[merge->node].name;
    spec->behave = head_behave;
    spec->context = self;
    spec->input_count = 1;
    spec->output_count = 2;
    *out = &self->part;
    return TROUPE_OK;
}

/* What all ranks of the frame do by the same token, whatever has failed on this one: so each rank
 * has as many iterations as every other. */
static enum troupe_status goes_on_behave(void *context, struct troupe_firing *firing)
{
    (void)context;
    const struct troupe_payload *token = troupe_firing_inputs(firing)[0];
    if (token == &troupe_payload_dead)
        return TROUPE_OK;
    const struct troupe_tensor *value = troupe_tensor_of_payload(troupe_firing_inputs(firing)[0]);
    if (value && *(const bool *)troupe_tensor_data(value))
        troupe_firing_continue(firing);
    return TROUPE_OK;
}

enum troupe_status troupe_goes_on_part_create(struct troupe_plan *plan, int loop_cond,
                                              struct troupe_plan_part **out,
                                              struct troupe_actor_spec *spec)
{
    struct troupe_plan_part *self = troupe_calloc(1, sizeof(*self));
    if (!self)
        return TROUPE_RESOURCE_EXHAUSTED;
    *self = (struct troupe_plan_part){.plan = plan, .node = loop_cond, .destroy = part_destroy};
    spec->name = plan->session->graph->nodes[loop_cond].name;
    spec->behave = goes_on_behave;
    spec->context = self;
    spec->takes_dead = true;
    spec->input_count = 1;
    *out = self;
    return TROUPE_OK;
}

/* Stands for a frame in messages. */
enum troupe_status troupe_frame_part_create(struct troupe_plan *plan, int loop_cond,
                                            struct troupe_plan_part **out)
{
    struct troupe_plan_part *self = troupe_calloc(1, sizeof(*self));
    if (!self)
        return TROUPE_RESOURCE_EXHAUSTED;
    *self = (struct troupe_plan_part){.plan = plan, .node = loop_cond, .destroy = part_destroy};
    *out = self;
    return TROUPE_OK;
}
