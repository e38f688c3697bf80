/* Actors that copy a value from one memory of this rank to another. Invariant: the firing holds the
 * value that is copied, and the copy has memory of its own, until the device says that it is done.
 */
#include <stdlib.h>

#include "base/memory.h"
#include "coordinator/plan.h"

struct copy_part {
    struct troupe_plan_part part;
    struct troupe_device *from, *to; /* NULL: the host */
    struct troupe_stream *stream;
};

struct job {
    struct troupe_firing *firing;
    struct troupe_tensor *copy;
};

static void job_done(void *context, enum troupe_status status, const char *message)
{
    struct job *job = context;
    struct troupe_payload *token = troupe_tensor_payload(job->copy);
    if (status != TROUPE_OK)
        troupe_tensor_unref(job->copy);
    troupe_firing_complete(job->firing, status, message, status == TROUPE_OK ? &token : NULL);
    troupe_memory_free(job, sizeof(*job));
}

static enum troupe_status make_room(const struct copy_part *self, const struct troupe_tensor *value,
                                    struct troupe_tensor **out)
{
    if (!self->to)
        return troupe_tensor_create(value->dtype, value->rank, value->dims, out);
    enum troupe_status status =
        troupe_device_tensor_create(self->to, value->dtype, value->rank, value->dims, out);
    return status == TROUPE_OK ? status : troupe_status_prefix(status, "copying its output: ");
}

static enum troupe_status copy_behave(void *context, struct troupe_firing *firing)
{
    struct copy_part *self = context;
    const struct troupe_tensor *value = troupe_tensor_of_payload(troupe_firing_inputs(firing)[0]);
    struct job *job = troupe_memory_alloc(sizeof(*job));
    if (!job)
        return TROUPE_RESOURCE_EXHAUSTED;
    enum troupe_status status = make_room(self, value, &job->copy);
    if (status != TROUPE_OK)
        goto free_job;
    struct troupe_copy copy = {.to_device = self->to,
                               .from_device = self->from,
                               .to = troupe_tensor_data_mutable(job->copy),
                               .from = troupe_tensor_data(value),
                               .bytes = troupe_tensor_bytes(value)};
    struct troupe_tensor *made = job->copy;
    job->firing = troupe_firing_defer(firing);
    status = troupe_stream_copy(self->stream, &copy,
                                (struct troupe_completion){.done = job_done, .context = job});
    if (status == TROUPE_OK)
        return TROUPE_OK; /* the job may be gone */
    troupe_tensor_unref(made);

free_job:
    troupe_memory_free(job, sizeof(*job));
    return status;
}

static void copy_part_destroy(struct troupe_plan_part *part)
{
    free(part);
}

static struct troupe_accelerator *accelerator_of(const struct troupe_plan *plan, int accelerator)
{
    return accelerator > 0 ? &plan->session->runtime->accelerators.all[accelerator - 1] : NULL;
}

enum troupe_status troupe_copy_part_create(struct troupe_plan *plan, int node, int from, int to,
                                           struct troupe_plan_part **out,
                                           struct troupe_actor_spec *spec)
{
    struct copy_part *self = troupe_calloc(1, sizeof(*self));
    if (!self)
        return TROUPE_RESOURCE_EXHAUSTED;
    const struct troupe_accelerator *source = accelerator_of(plan, from);
    const struct troupe_accelerator *target = accelerator_of(plan, to);
    self->part =
        (struct troupe_plan_part){.plan = plan, .node = node, .destroy = copy_part_destroy};
    self->from = source ? source->device : NULL;
    self->to = target ? target->device : NULL;
    self->stream = source ? source->out : target->in;
    *spec = (struct troupe_actor_spec){.name = plan->session->graph->nodes[node].name,
                                       .input_count = 1,
                                       .output_count = 1,
                                       .behave = copy_behave,
                                       .context = self};
    *out = &self->part;
    return TROUPE_OK;
}
