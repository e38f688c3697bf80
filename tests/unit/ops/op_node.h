/* One op, run alone: a graph of its inputs and itself, inferred, and its kernel called. */
#ifndef TROUPE_TESTS_OP_NODE_H
#define TROUPE_TESTS_OP_NODE_H

#include "graph/graph.h"
#include "ops/kernel.h"

#define OP_INPUTS_MAX  10
#define OP_OUTPUTS_MAX 8

/* What is known of the inputs before the run. */
enum op_known {
    OP_KNOWS_VALUES, /* they are Consts */
    OP_KNOWS_SHAPES, /* Placeholders with their shapes */
    OP_KNOWS_RANKS,  /* every size is unknown */
    OP_KNOWS_NOTHING,
    OP_KNOWN_COUNT
};

struct op_node {
    struct troupe_graph *graph;
    const struct troupe_node *node;
    int input_count;
    struct troupe_tensor *inputs[OP_INPUTS_MAX];
    enum troupe_dtype input_dtypes[OP_INPUTS_MAX];
    struct troupe_resource *states[OP_INPUTS_MAX];
    struct troupe_resource *own;
    struct troupe_tensor *outputs[OP_OUTPUTS_MAX]; /* of the last call */
    struct troupe_parallel *parallel;
    uint64_t seed, stream;
};

/* A tensor from "float32 [[1, 2], [3, 4]]". */
struct troupe_tensor *op_tensor(const char *text);
/* Fails the test unless dtype, dims and elements (floats to within `tolerance`) agree. */
void op_expect(const struct troupe_tensor *got, const char *text, double tolerance,
               const char *what);

/* Makes node "z" with the given inputs (texts as for op_tensor, up to a NULL; "ref float32 [1]" is
 * a variable with that value, in `states`) and members of its attr object. Returns what inference
 * returns; the message stays. */
enum troupe_status op_node_init(struct op_node *self, const char *op, const char *const *inputs,
                                const char *attr, enum op_known known);
/* Calls the kernel as of step `step`. */
enum troupe_status op_node_call(struct op_node *self, uint64_t step);
void op_node_fini(struct op_node *self);

/* Splits every loop into pieces of the grain, and runs them last to first. */
extern struct troupe_parallel op_backwards;

#endif
