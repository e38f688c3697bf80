/* Actors that compute on a simulated accelerator. A firing is deferred; the host's kernel runs in
 * the thread of the device's compute stream, on views of the device's memory; its outputs go into
 * device memory.
 *
 * Invariant: a view never leaves the launch. The kernel may share an input's buffer with an
 * output, which then shares the input's device memory, but never writes an input in place. */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "coordinator/plan.h"

struct sim_part {
    struct troupe_plan_part part;
    struct troupe_plan_part *host; /* the same node as an actor of the CPU */
    struct troupe_kernel *kernel;  /* of it */
    struct troupe_accelerator *on;
};

/* One firing. `tensors` are the views of the inputs, then the outputs. */
struct job {
    struct sim_part *self;
    struct troupe_firing *firing;
    uint64_t step, path;
    struct troupe_payload **results;
    struct troupe_tensor *tensors[];
};

static size_t job_bytes(const struct troupe_kernel *kernel)
{
    size_t count = (size_t)kernel->input_count + 2 * (size_t)kernel->output_count;
    return sizeof(struct job) + count * sizeof(struct troupe_tensor *);
}

static void keep_memory(void *context, void *data, size_t bytes)
{
    (void)context;
    (void)data;
    (void)bytes;
}

/* The tensor as the device's threads reach it. */
static enum troupe_status view_create(struct troupe_device *device,
                                      const struct troupe_tensor *tensor,
                                      struct troupe_tensor **out)
{
    static _Alignas(TROUPE_MEMORY_ALIGNMENT) char nothing[TROUPE_MEMORY_ALIGNMENT];
    void *inside = nothing;
    size_t bytes = troupe_tensor_bytes(tensor);
    struct troupe_buffer *buffer;
    enum troupe_status status = TROUPE_OK;
    if (bytes > 0)
        status = troupe_device_reach(device, troupe_tensor_data(tensor), bytes, &inside);
    if (status == TROUPE_OK)
        status = troupe_buffer_wrap(inside, bytes, keep_memory, NULL, &buffer);
    if (status != TROUPE_OK)
        return status;
    status = troupe_tensor_view(tensor->dtype, tensor->rank, tensor->dims, buffer, 0, out);
    troupe_buffer_unref(buffer);
    return status;
}

/* Moves what the kernel made on the host into device memory. */
static enum troupe_status move_in(struct troupe_device *device, const struct troupe_tensor *made,
                                  struct troupe_tensor **out)
{
    struct troupe_tensor *tensor;
    enum troupe_status status =
        troupe_device_tensor_create(device, made->dtype, made->rank, made->dims, &tensor);
    if (status != TROUPE_OK || troupe_tensor_bytes(made) == 0) {
        if (status == TROUPE_OK)
            *out = tensor;
        return status;
    }
    void *inside;
    status =
        troupe_device_reach(device, troupe_tensor_data(tensor), troupe_tensor_bytes(made), &inside);
    if (status != TROUPE_OK) {
        troupe_tensor_unref(tensor);
        return status;
    }
    memcpy(inside, troupe_tensor_data(made), troupe_tensor_bytes(made));
    *out = tensor;
    return TROUPE_OK;
}

/* What is sent for an output of the kernel. */
static enum troupe_status output_settle(struct job *job, const struct troupe_tensor *made,
                                        struct troupe_tensor **out)
{
    const struct troupe_kernel *kernel = job->self->kernel;
    struct troupe_payload *const *tokens = troupe_firing_inputs(job->firing);
    for (int i = 0; i < kernel->input_count; i++) {
        if (job->tensors[i]->buffer != made->buffer)
            continue;
        const struct troupe_tensor *input = troupe_tensor_of_payload(tokens[i]);
        return troupe_tensor_view(made->dtype, made->rank, made->dims, input->buffer,
                                  input->offset + made->offset, out);
    }
    return move_in(job->self->on->device, made, out);
}

static enum troupe_status settle_outputs(struct job *job)
{
    const struct troupe_kernel *kernel = job->self->kernel;
    struct troupe_tensor **made = job->tensors + kernel->input_count;
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < kernel->output_count && status == TROUPE_OK; i++) {
        struct troupe_tensor *settled;
        status = output_settle(job, made[i], &settled);
        if (status == TROUPE_OK)
            job->results[i] = troupe_tensor_payload(settled);
    }
    for (int i = 0; i < kernel->output_count; i++)
        troupe_tensor_unref(made[i]);
    for (int i = 0; status != TROUPE_OK && i < kernel->output_count; i++)
        troupe_payload_unref(job->results[i]);
    return status;
}

static enum troupe_status make_views(struct job *job)
{
    struct troupe_payload *const *tokens = troupe_firing_inputs(job->firing);
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < job->self->kernel->input_count && status == TROUPE_OK; i++) {
        status = view_create(job->self->on->device, troupe_tensor_of_payload(tokens[i]),
                             &job->tensors[i]);
        /* Two references, so that no kernel finds it its own to write into. */
        if (status == TROUPE_OK)
            troupe_tensor_ref(job->tensors[i]);
    }
    return status;
}

/* In the stream's thread. */
static enum troupe_status job_launch(void *context, struct troupe_stream *stream)
{
    struct job *job = context;
    struct troupe_kernel *kernel = job->self->kernel;
    struct troupe_kernel_call call = {
        .kernel = kernel,
        .inputs = job->tensors,
        .outputs = job->tensors + kernel->input_count,
        .step = job->step,
        .path = job->path,
    };
    (void)stream;
    enum troupe_status status = make_views(job);
    if (status == TROUPE_OK)
        status = troupe_call_compute(&call);
    if (status == TROUPE_OK)
        status = settle_outputs(job);
    for (int i = 0; i < kernel->input_count && job->tensors[i]; i++) {
        troupe_tensor_unref(job->tensors[i]);
        troupe_tensor_unref(job->tensors[i]);
    }
    return status;
}

static void job_done(void *context, enum troupe_status status, const char *message)
{
    struct job *job = context;
    size_t bytes = job_bytes(job->self->kernel); /* the part may be gone with the firing */
    troupe_firing_complete(job->firing, status, message, status == TROUPE_OK ? job->results : NULL);
    troupe_memory_free(job, bytes);
}

static enum troupe_status sim_behave(void *context, struct troupe_firing *firing)
{
    struct sim_part *self = context;
    const struct troupe_plan *plan = self->part.plan;
    size_t bytes = job_bytes(self->kernel);
    struct job *job = troupe_memory_alloc(bytes);
    if (!job)
        return TROUPE_RESOURCE_EXHAUSTED;
    memset(job, 0, bytes);
    job->self = self;
    job->step = plan->first_step + troupe_firing_step(firing) - plan->first_iteration;
    job->path = troupe_firing_path(firing);
    job->results = (void *)(job->tensors + self->kernel->input_count + self->kernel->output_count);
    job->firing = troupe_firing_defer(firing);
    enum troupe_status status =
        troupe_stream_launch(self->on->compute, job_launch, job,
                             (struct troupe_completion){.done = job_done, .context = job});
    if (status != TROUPE_OK)
        troupe_memory_free(job, bytes);
    return status;
}

static void sim_part_destroy(struct troupe_plan_part *part)
{
    struct sim_part *self = (struct sim_part *)(void *)part;
    self->host->destroy(self->host);
    free(self);
}

enum troupe_status troupe_sim_part_create(struct troupe_plan *plan, int number,
                                          struct troupe_plan_part **out,
                                          struct troupe_actor_spec *spec)
{
    struct sim_part *self = troupe_calloc(1, sizeof(*self));
    if (!self)
        return TROUPE_RESOURCE_EXHAUSTED;
    enum troupe_status status = troupe_kernel_part_create(plan, number, &self->host, spec);
    if (status != TROUPE_OK) {
        free(self);
        return status;
    }
    int accelerator = plan->session->graph->nodes[number].accelerator;
    self->part =
        (struct troupe_plan_part){.plan = plan, .node = number, .destroy = sim_part_destroy};
    self->kernel = troupe_kernel_part_kernel(self->host);
    self->on = &plan->session->runtime->accelerators.all[accelerator - 1];
    spec->behave = sim_behave;
    spec->context = self;
    *out = &self->part;
    return TROUPE_OK;
}
