/* Ops between ranks. They have no kernels: the runtime does them. A graph seldom names Send and
 * Recv: the partitioner makes such pairs where an edge crosses between ranks. */
#include "ops/families.h"
#include "ops/gradient.h"

static enum troupe_status infer_each(struct troupe_infer *infer)
{
    for (int i = 0; i < infer->output_count; i++)
        infer->output_shapes[i] = infer->input_shapes[i];
    return TROUPE_OK;
}

const struct troupe_op troupe_ops_collective[] = {
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
