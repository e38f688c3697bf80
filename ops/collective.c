/* Ops between ranks. They have no kernels: the runtime does them. A graph does not name Send and
 * Recv: the partitioner makes such pairs where an edge crosses between ranks. */
#include "ops/families.h"
#include "ops/gradient.h"

static enum troupe_status infer_each(struct troupe_infer *infer)
{
    for (int i = 0; i < infer->output_count; i++)
        infer->output_shapes[i] = infer->input_shapes[i];
    return TROUPE_OK;
}

/* A pair in a graph file could wait for a peer that is on no other rank. */
static enum troupe_status infer_made_by_runtime(struct troupe_infer *infer)
{
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                              "%s is made by the runtime where an edge crosses between ranks: put "
                              "the nodes on their devices and connect them instead",
                              infer->schema->op->name);
}

const struct troupe_op troupe_ops_collective[] = {
    {.name = "Send",
     .doc = "Sends a value to another rank, for the Recv with the same key. Made by the runtime "
            "where an edge crosses between ranks; no graph names it.",
     .inputs = "tensor: T",
     .outputs = "",
     .attrs = "T: type; key: string; recv_rank: int >= 0",
     .flags = TROUPE_OP_RUNTIME | TROUPE_OP_STATEFUL,
     .infer = infer_made_by_runtime,
     .no_gradient = "it is made behind the gradients, when the graph is cut into ranks"},
    {.name = "Recv",
     .doc = "Receives a value from another rank, of the Send with the same key. Made by the "
            "runtime where an edge crosses between ranks; no graph names it.",
     .inputs = "",
     .outputs = "tensor: T",
     .attrs = "T: type; key: string; send_rank: int >= 0",
     .flags = TROUPE_OP_RUNTIME | TROUPE_OP_STATEFUL,
     .infer = infer_made_by_runtime,
     .no_gradient = "it is made behind the gradients, when the graph is cut into ranks"},
    {.name = "AllReduce",
     .doc = "Replaces each value by its sum or mean over the ranks of the group, each of which has "
            "one such node with the same key.",
     .inputs = "values: N * T",
     .outputs = "results: N * T",
     .attrs = "N: int >= 1; T: {float32, float64}; group: list(int); "
              "reduction: {'sum', 'mean'} = 'sum'; key: string",
     .flags = TROUPE_OP_RUNTIME | TROUPE_OP_STATEFUL,
     .infer = infer_each,
     .no_gradient = "strategies place it behind the gradients"},
};
const size_t troupe_ops_collective_count =
    sizeof(troupe_ops_collective) / sizeof(troupe_ops_collective[0]);
