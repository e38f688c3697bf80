/* Ops that call functions of the graph file's library.
 *
 * Invariant: none has a kernel. What is loaded is lowered onto the primitives of ops/flow.c
 * (graph/lower.h); only a call of a function that calls itself stays, and the engine makes a
 * frame of it. */
#include "ops/families.h"

/* The shapes that the signature of the function says. */
static enum troupe_status infer_call(struct troupe_infer *infer)
{
    const struct troupe_attr *shapes = troupe_infer_attr(infer, "output_shapes");
    for (int i = 0; i < infer->output_count && (size_t)i < shapes->count; i++)
        infer->output_shapes[i] = shapes->value.list_shape[i];
    return TROUPE_OK;
}

static enum troupe_status infer_arg(struct troupe_infer *infer)
{
    infer->output_shapes[0] = troupe_infer_attr(infer, "shape")->value.shape;
    return TROUPE_OK;
}

#define NO_GRADIENT "gradients do not go through control flow"
#define SHAPES      "output_shapes: list(shape) = []"
/* What exporters write and nothing here needs. */
#define CONFIG "config: string = ''; config_proto: string = ''; executor_type: string = ''"

#define WHILE_ROW(op_name)                                                                         \
    {                                                                                              \
        .name = op_name,                                                                           \
        .doc = "Repeats output = body(output), from input on, for as long as cond(output) is "     \
               "true.",                                                                            \
        .inputs = "input: T", .outputs = "output: T",                                              \
        .attrs =                                                                                   \
            "cond: func; body: func; T: list(type); parallel_iterations: int >= 1 = 10; " SHAPES,  \
        .flags = TROUPE_OP_RUNTIME | TROUPE_OP_STATEFUL, .flow = TROUPE_FLOW_WHILE,                \
        .infer = infer_call, .no_gradient = NO_GRADIENT                                            \
    }
#define IF_ROW(op_name)                                                                            \
    {                                                                                              \
        .name = op_name, .doc = "Calls then_branch when cond is true, else else_branch.",          \
        .inputs = "cond: bool, input: Tin", .outputs = "output: Tout",                             \
        .attrs = "then_branch: func; else_branch: func; Tcond: type = bool; Tin: list(type); "     \
                 "Tout: list(type); " SHAPES,                                                      \
        .flags = TROUPE_OP_RUNTIME | TROUPE_OP_STATEFUL, .flow = TROUPE_FLOW_IF,                   \
        .infer = infer_call, .no_gradient = NO_GRADIENT                                            \
    }
#define CASE_ROW(op_name)                                                                          \
    {                                                                                              \
        .name = op_name,                                                                           \
        .doc = "Calls the branch that branch_index names, the last one where there is none.",      \
        .inputs = "branch_index: int32, input: Tin", .outputs = "output: Tout",                    \
        .attrs = "branches: list(string) >= 1; Tin: list(type); Tout: list(type); " SHAPES,        \
        .flags = TROUPE_OP_RUNTIME | TROUPE_OP_STATEFUL, .flow = TROUPE_FLOW_CASE,                 \
        .infer = infer_call, .no_gradient = NO_GRADIENT                                            \
    }
#define CALL_ROW(op_name)                                                                          \
    {                                                                                              \
        .name = op_name, .doc = "Calls function f, which may call itself.", .inputs = "args: Tin", \
        .outputs = "output: Tout",                                                                 \
        .attrs = "f: func; Tin: list(type); Tout: list(type); " CONFIG "; " SHAPES,                \
        .flags = TROUPE_OP_RUNTIME | TROUPE_OP_STATEFUL, .flow = TROUPE_FLOW_CALL,                 \
        .infer = infer_call, .no_gradient = NO_GRADIENT                                            \
    }

const struct troupe_op troupe_ops_functions[] = {
    WHILE_ROW("While"),
    WHILE_ROW("StatelessWhile"),
    IF_ROW("If"),
    IF_ROW("StatelessIf"),
    CASE_ROW("Case"),
    CASE_ROW("StatelessCase"),
    CALL_ROW("Call"),
    CALL_ROW("PartitionedCall"),
    CALL_ROW("StatefulPartitionedCall"),
    {.name = "_Arg",
     .doc = "An input of a function; the reader makes it.",
     .inputs = "",
     .outputs = "output: T",
     .attrs = "T: type; index: int >= 0; shape: shape = ?",
     .flags = TROUPE_OP_RUNTIME,
     .flow = TROUPE_FLOW_ARG,
     .infer = infer_arg,
     .no_gradient = "it has no inputs"},
};
const size_t troupe_ops_functions_count =
    sizeof(troupe_ops_functions) / sizeof(troupe_ops_functions[0]);
