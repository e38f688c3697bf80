/* Actors that compute: one per graph node of this rank. Invariant: a firing touches only its own
 * inputs and outputs, and state that the kernel's resources guard. */
#include <stdlib.h>

#include "base/hash.h"
#include "base/memory.h"
#include "coordinator/plan.h"
#include "ops/tensor.h"

/* The most inputs or outputs that a firing keeps on the stack. */
#define TROUPE_KERNEL_INLINE 16

struct kernel_part {
    struct troupe_plan_part part;
    struct troupe_kernel kernel;
    int *token_of_input; /* input port of the actor for each input; -1: a ref */
    enum troupe_dtype *input_dtypes;
    struct troupe_resource **input_resources;
};

static struct troupe_tensor *tensor_of(struct troupe_payload *payload)
{
    return payload ? troupe_tensor_of_payload(payload) : NULL;
}

static void defer(void *firing)
{
    (void)troupe_firing_defer(firing);
}

static void complete(void *firing, enum troupe_status status, const char *message,
                     struct troupe_tensor **outputs)
{
    const struct kernel_part *self = troupe_firing_context(firing);
    struct troupe_payload **sent = troupe_firing_outputs(firing);
    for (int i = 0; status == TROUPE_OK && i < self->kernel.output_count; i++)
        sent[i] = troupe_tensor_payload(outputs[i]);
    troupe_firing_complete(firing, status, message, NULL);
}

static enum troupe_status compute(struct kernel_part *self, struct troupe_firing *firing,
                                  struct troupe_tensor **inputs, struct troupe_tensor **outputs)
{
    struct troupe_plan *plan = self->part.plan;
    struct troupe_payload *const *tokens = troupe_firing_inputs(firing);
    for (int i = 0; i < self->kernel.input_count; i++) {
        int port = self->token_of_input[i];
        inputs[i] = port < 0 ? NULL : tensor_of(tokens[port]);
    }
    struct troupe_kernel_call call = {
        .kernel = &self->kernel,
        .inputs = inputs,
        .outputs = outputs,
        .step = plan->first_step + troupe_firing_step(firing) - plan->first_iteration,
        .path = troupe_firing_path(firing),
        .parallel = &plan->parallel,
        .later = {.kernel = &self->kernel,
                  .iteration = troupe_firing_step(firing),
                  .firing = firing,
                  .complete = complete},
        .defer = defer,
    };
    enum troupe_status status = troupe_call_compute(&call);
    if (status != TROUPE_OK || call.is_deferred)
        return status;
    struct troupe_payload **sent = troupe_firing_outputs(firing);
    for (int i = 0; i < self->kernel.output_count; i++)
        sent[i] = troupe_tensor_payload(outputs[i]);
    return TROUPE_OK;
}

static enum troupe_status behave_few(void *context, struct troupe_firing *firing)
{
    struct troupe_tensor *inputs[TROUPE_KERNEL_INLINE], *outputs[TROUPE_KERNEL_INLINE];
    return compute(context, firing, inputs, outputs);
}

static enum troupe_status behave_many(void *context, struct troupe_firing *firing)
{
    struct kernel_part *self = context;
    size_t count = (size_t)self->kernel.input_count + (size_t)self->kernel.output_count;
    struct troupe_tensor **tensors = troupe_memory_alloc(count * sizeof(struct troupe_tensor *));
    if (!tensors)
        return TROUPE_RESOURCE_EXHAUSTED;
    enum troupe_status status = compute(self, firing, tensors, tensors + self->kernel.input_count);
    troupe_memory_free(tensors, count * sizeof(struct troupe_tensor *));
    return status;
}

static void kernel_part_release(struct troupe_plan_part *part, uint64_t first)
{
    struct kernel_part *self = (struct kernel_part *)(void *)part;
    self->kernel.row->release(&self->kernel, first);
}

static void kernel_part_destroy(struct troupe_plan_part *part)
{
    struct kernel_part *self = (struct kernel_part *)(void *)part;
    if (self->kernel.row && self->kernel.row->fini)
        self->kernel.row->fini(&self->kernel);
    free(self->token_of_input);
    free(self->input_dtypes);
    free(self->input_resources);
    free(self);
}

struct troupe_kernel *troupe_kernel_part_kernel(struct troupe_plan_part *part)
{
    struct kernel_part *self = (struct kernel_part *)(void *)part;
    return &self->kernel;
}

void troupe_kernel_describe(const struct troupe_graph *graph, int number,
                            struct troupe_kernel *kernel)
{
    const struct troupe_node *node = &graph->nodes[number];
    kernel->name = node->name;
    kernel->origin = node->origin;
    kernel->schema = node->schema;
    kernel->attrs = node->attrs;
    kernel->attr_count = node->attr_count;
    kernel->input_count = node->input_count;
    kernel->output_count = node->output_count;
    kernel->output_dtypes = node->output_dtypes;
    kernel->output_shapes = node->output_shapes;
    kernel->seed = graph->seed;
    /* Replicas share the numbers of what they have in common, an initial value, by sharing the
     * origin. */
    kernel->stream = troupe_hash_string(TROUPE_HASH_START, node->origin);
}

static enum troupe_status bind_inputs(struct kernel_part *self, const struct troupe_node *node)
{
    struct troupe_session *session = self->part.plan->session;
    size_t count = (size_t)node->input_count + 1;
    self->token_of_input = troupe_calloc(count, sizeof(int));
    self->input_dtypes = troupe_calloc(count, sizeof(*self->input_dtypes));
    self->input_resources = troupe_calloc(count, sizeof(*self->input_resources));
    if (!self->token_of_input || !self->input_dtypes || !self->input_resources)
        return TROUPE_RESOURCE_EXHAUSTED;
    int ports = 0;
    for (int i = 0; i < node->input_count; i++) {
        struct troupe_value value = node->inputs[i];
        self->input_dtypes[i] = session->graph->nodes[value.node].output_dtypes[value.port];
        if (!troupe_node_input_is_ref(node, i)) {
            self->token_of_input[i] = ports++;
            continue;
        }
        self->token_of_input[i] = -1;
        enum troupe_status status = troupe_session_resource(
            session, troupe_node_ref_owner(session->graph, self->part.node, i),
            &self->input_resources[i]);
        if (status != TROUPE_OK)
            return status;
    }
    self->kernel.input_dtypes = self->input_dtypes;
    self->kernel.input_resources = self->input_resources;
    return TROUPE_OK;
}

enum troupe_status troupe_kernel_part_create(struct troupe_plan *plan, int number,
                                             struct troupe_plan_part **out,
                                             struct troupe_actor_spec *spec)
{
    const struct troupe_graph *graph = plan->session->graph;
    const struct troupe_node *node = &graph->nodes[number];
    struct kernel_part *self = troupe_calloc(1, sizeof(*self));
    if (!self)
        return TROUPE_RESOURCE_EXHAUSTED;
    self->part =
        (struct troupe_plan_part){.plan = plan, .node = number, .destroy = kernel_part_destroy};
    troupe_kernel_describe(graph, number, &self->kernel);
    enum troupe_status status = bind_inputs(self, node);
    if (status != TROUPE_OK)
        goto destroy;
    if (node->schema->op->resource_create) {
        status = troupe_session_resource(plan->session, number, &self->kernel.own_resource);
        if (status != TROUPE_OK) { /* the message names the node already */
            kernel_part_destroy(&self->part);
            return status;
        }
    }
    const struct troupe_kernel_row *row =
        troupe_kernel_row_find(node->schema, "CPU", node->attrs, node->attr_count);
    status = row ? TROUPE_OK : TROUPE_UNIMPLEMENTED;
    if (row && row->init) {
        self->kernel.row = NULL;
        status = row->init(&self->kernel);
    }
    if (status != TROUPE_OK)
        goto destroy;
    self->kernel.row = row;
    self->part.blocks = row->release != NULL;
    self->part.release = row->release ? kernel_part_release : NULL;
    bool few =
        node->input_count <= TROUPE_KERNEL_INLINE && node->output_count <= TROUPE_KERNEL_INLINE;
    spec->name = node->name;
    spec->behave = few ? behave_few : behave_many;
    spec->context = self;
    spec->takes_dead = (node->schema->op->flags & TROUPE_OP_TAKES_DEAD) != 0;
    *out = &self->part;
    return TROUPE_OK;

destroy:
    kernel_part_destroy(&self->part);
    char text[TROUPE_NODE_TEXT_MAX];
    return troupe_status_prefix(status, "%s: ", troupe_node_describe(graph, number, text));
}
