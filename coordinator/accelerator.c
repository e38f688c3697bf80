/* Accelerators: their streams, their tensors, and which nodes may be on them. Invariant: a tensor
 * on an accelerator has elements that are not counted, in one allocation of its device. */
#include "coordinator/accelerator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "coordinator/partition.h"
#include "devices/device.h"
#include "devices/sim.h"

enum troupe_status troupe_accelerators_open(struct troupe_accelerators *accelerators)
{
    int count = accelerators->table.count;
    accelerators->all = troupe_calloc((size_t)count + 1, sizeof(*accelerators->all));
    if (!accelerators->all)
        return TROUPE_RESOURCE_EXHAUSTED;
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < count && status == TROUPE_OK; i++) {
        struct troupe_accelerator *accelerator = &accelerators->all[i];
        accelerator->device = accelerators->table.devices[i];
        status = troupe_stream_create(accelerator->device, &accelerator->in);
        if (status == TROUPE_OK)
            status = troupe_stream_create(accelerator->device, &accelerator->out);
        if (status == TROUPE_OK)
            status = troupe_stream_create(accelerator->device, &accelerator->compute);
    }
    return status;
}

void troupe_accelerators_fini(struct troupe_accelerators *accelerators)
{
    for (int i = 0; accelerators->all && i < accelerators->table.count; i++) {
        troupe_stream_destroy(accelerators->all[i].in);
        troupe_stream_destroy(accelerators->all[i].out);
        troupe_stream_destroy(accelerators->all[i].compute);
    }
    free(accelerators->all);
    accelerators->all = NULL;
    troupe_device_table_fini(&accelerators->table);
}

/* ---- Placement ---- */

static bool has_counted_value(const struct troupe_graph *graph, const struct troupe_node *node)
{
    for (int i = 0; i < node->input_count; i++) {
        struct troupe_value value = node->inputs[i];
        if (troupe_dtype_is_counted(graph->nodes[value.node].output_dtypes[value.port]))
            return true;
    }
    for (int i = 0; i < node->output_count; i++)
        if (troupe_dtype_is_counted(node->output_dtypes[i]))
            return true;
    return false;
}

static bool has_state(const struct troupe_node *node)
{
    bool has = node->schema->op->resource_create != NULL;
    for (int i = 0; i < node->input_count; i++)
        has |= troupe_node_input_is_ref(node, i);
    for (int i = 0; i < node->schema->output_count; i++)
        has |= node->schema->outputs[i].is_ref;
    return has;
}

/* NULL: the op can run on an accelerator. */
static const char *refusal(const struct troupe_graph *graph, const struct troupe_node *node)
{
    if (node->schema->op->flags & TROUPE_OP_RUNTIME)
        return "the runtime itself does this op, on CPU:0";
    if (has_state(node))
        return "state and the ops that use it are on CPU:0";
    if (has_counted_value(graph, node))
        return "strings, lists and resources are on CPU:0";
    return NULL;
}

static void explain_missing(const struct troupe_device_spec *spec,
                            const struct troupe_device_table *table, char *why, size_t size)
{
    int last = -1;
    for (int i = 0; table && i < table->count; i++)
        if (strcmp(table->devices[i]->ops->type, spec->type) == 0)
            last = table->devices[i]->index;
    if (strcmp(spec->type, "CPU") == 0)
        snprintf(why, size, "every rank has CPU:0 alone");
    else if (last < 0 && table)
        snprintf(why, size, "every rank has CPU:0 and no %s", spec->type);
    else if (last < 0)
        snprintf(why, size, "a rank has CPU:0 and at most SIM:0 to SIM:%d", TROUPE_SIM_MAX - 1);
    else if (last == 0)
        snprintf(why, size, "every rank has %s:0 alone", spec->type);
    else
        snprintf(why, size, "every rank has %s:0 to %s:%d", spec->type, spec->type, last);
}

static int find_accelerator(const struct troupe_device_spec *spec,
                            const struct troupe_device_table *table)
{
    int index = spec->index < 0 ? 0 : spec->index;
    if (table)
        return troupe_device_table_find(table, spec->type, index);
    return strcmp(spec->type, "SIM") == 0 && index < TROUPE_SIM_MAX ? index : -1;
}

bool troupe_node_accelerate(struct troupe_graph *graph, int number,
                            const struct troupe_device_spec *spec,
                            const struct troupe_device_table *table, char *why, size_t why_size)
{
    struct troupe_node *node = &graph->nodes[number];
    node->accelerator = 0;
    if (!spec->type[0] || (strcmp(spec->type, "CPU") == 0 && spec->index <= 0))
        return true;
    int found = find_accelerator(spec, table);
    if (found < 0) {
        explain_missing(spec, table, why, why_size);
        return false;
    }
    if (node->schema->op->flow != TROUPE_FLOW_NONE)
        return true;
    const char *refused = refusal(graph, node);
    if (refused)
        snprintf(why, why_size, "%s", refused);
    else
        node->accelerator = found + 1;
    return !refused;
}

const char *troupe_node_device_name(const struct troupe_node *node, char *out, size_t size)
{
    if (node->accelerator > 0)
        snprintf(out, size, "SIM:%d", node->accelerator - 1);
    else
        snprintf(out, size, "CPU:0");
    return out;
}

/* ---- Tensors ---- */

static void device_release(void *context, void *data, size_t bytes)
{
    (void)bytes;
    troupe_device_free(context, data);
}

enum troupe_status troupe_device_tensor_create(struct troupe_device *device,
                                               enum troupe_dtype dtype, int rank,
                                               const int64_t *dims, struct troupe_tensor **out)
{
    size_t bytes = troupe_dtype_size(dtype);
    for (int i = 0; i < rank; i++) /* of a tensor that is there: no overflow */
        bytes *= (size_t)dims[i];
    void *address;
    struct troupe_buffer *buffer;
    enum troupe_status status = troupe_device_alloc(device, bytes, &address);
    if (status != TROUPE_OK)
        return status;
    status = troupe_buffer_wrap(address, bytes, device_release, device, &buffer);
    if (status != TROUPE_OK) {
        troupe_device_free(device, address);
        return status;
    }
    status = troupe_tensor_view(dtype, rank, dims, buffer, 0, out);
    troupe_buffer_unref(buffer);
    return status;
}
