/* The primitives of control flow: TensorFlow's Switch, Merge, Enter, Exit, NextIteration, LoopCond.
 *
 * Invariant: these kernels only pass tensors on, or a dead token; which iteration of which frame a
 * value belongs to is the engine's affair (graph/frames.h). */
#include "ops/families.h"
#include "ops/gradient.h"
#include "ops/kernel.h"
#include "ops/tensor.h"

static enum troupe_status compute_pass(struct troupe_kernel_call *call)
{
    call->outputs[0] = troupe_tensor_ref(call->inputs[0]);
    return TROUPE_OK;
}

static enum troupe_status compute_pass_all(struct troupe_kernel_call *call)
{
    for (int i = 0; i < call->kernel->output_count; i++)
        call->outputs[i] = troupe_tensor_ref(call->inputs[i]);
    return TROUPE_OK;
}

static enum troupe_status infer_pass_all(struct troupe_infer *infer)
{
    for (int i = 0; i < infer->output_count; i++)
        infer->output_shapes[i] = infer->input_shapes[i];
    return TROUPE_OK;
}

static enum troupe_status gradient_pass_all(struct troupe_gradient *gradient)
{
    for (int i = 0; i < gradient->input_count; i++)
        gradient->input_gradients[i] = gradient->output_gradients[i];
    return TROUPE_OK;
}

static enum troupe_status scalar_wrong(const char *name, const struct troupe_shape *shape)
{
    char given[TROUPE_SHAPE_TEXT_MAX];
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "input \"%s\" wants a scalar, got shape %s",
                              name, troupe_shape_print(shape, given));
}

/* Reads a bool that has to be a scalar. */
static enum troupe_status read_bool(const struct troupe_tensor *tensor, const char *name, bool *out)
{
    struct troupe_shape shape = troupe_shape_of(tensor);
    if (shape.rank != 0)
        return scalar_wrong(name, &shape);
    *out = *(const bool *)troupe_tensor_data(tensor);
    return TROUPE_OK;
}

static enum troupe_status compute_switch(struct troupe_kernel_call *call)
{
    bool taken = false;
    enum troupe_status status = read_bool(call->inputs[1], "pred", &taken);
    if (status != TROUPE_OK)
        return status;
    call->outputs[taken] = troupe_tensor_ref(call->inputs[0]);
    call->outputs[!taken] = troupe_tensor_dead();
    return TROUPE_OK;
}

/* The first input that is alive; of a graph that is right there is no other. */
static enum troupe_status compute_merge(struct troupe_kernel_call *call)
{
    struct troupe_tensor *index;
    int live = 0;
    while (live < call->kernel->input_count && troupe_tensor_is_dead(call->inputs[live]))
        live++;
    if (live == call->kernel->input_count) {
        call->outputs[0] = call->outputs[1] = troupe_tensor_dead();
        return TROUPE_OK;
    }
    enum troupe_status status = troupe_call_output(call, 1, 0, NULL, &index);
    if (status != TROUPE_OK)
        return status;
    *(int32_t *)troupe_tensor_data_mutable(index) = live;
    call->outputs[0] = troupe_tensor_ref(call->inputs[live]);
    return TROUPE_OK;
}

static enum troupe_status compute_loop_cond(struct troupe_kernel_call *call)
{
    bool goes_on;
    enum troupe_status status = read_bool(call->inputs[0], "input", &goes_on);
    if (status == TROUPE_OK)
        call->outputs[0] = troupe_tensor_ref(call->inputs[0]);
    return status;
}

static enum troupe_status infer_switch(struct troupe_infer *infer)
{
    if (infer->input_shapes[1].rank > 0)
        return scalar_wrong("pred", &infer->input_shapes[1]);
    infer->output_shapes[0] = infer->output_shapes[1] = infer->input_shapes[0];
    return TROUPE_OK;
}

/* What is common to all inputs. */
static enum troupe_status infer_merge(struct troupe_infer *infer)
{
    struct troupe_shape shape = infer->input_shapes[0];
    for (int i = 1; i < infer->input_count; i++)
        shape = troupe_shape_widen(&shape, &infer->input_shapes[i]);
    infer->output_shapes[0] = shape;
    infer->output_shapes[1] = troupe_shape_scalar();
    return TROUPE_OK;
}

static enum troupe_status infer_loop_cond(struct troupe_infer *infer)
{
    if (infer->input_shapes[0].rank > 0)
        return scalar_wrong("input", &infer->input_shapes[0]);
    infer->output_shapes[0] = troupe_shape_scalar();
    return TROUPE_OK;
}

static const struct troupe_kernel_row pass_kernels[] = {{.device = "CPU", .compute = compute_pass}};
static const struct troupe_kernel_row pass_all_kernels[] = {
    {.device = "CPU", .compute = compute_pass_all}};
static const struct troupe_kernel_row switch_kernels[] = {
    {.device = "CPU", .compute = compute_switch}};
static const struct troupe_kernel_row merge_kernels[] = {
    {.device = "CPU", .compute = compute_merge}};
static const struct troupe_kernel_row loop_cond_kernels[] = {
    {.device = "CPU", .compute = compute_loop_cond}};

#define NO_GRADIENT "gradients do not go through control flow"

/* An op, and its form for a variable, which reads it. */
#define SWITCH_ROW(op_name)                                                                        \
    {                                                                                              \
        .name = op_name,                                                                           \
        .doc = "Passes data on to output_true or output_false, as pred says; the other output is " \
               "dead.",                                                                            \
        .inputs = "data: T, pred: bool", .outputs = "output_false: T, output_true: T",             \
        .attrs = "T: type", .flow = TROUPE_FLOW_SWITCH, .infer = infer_switch,                     \
        .no_gradient = NO_GRADIENT, .kernels = switch_kernels, .kernel_count = 1                   \
    }
#define MERGE_ROW(op_name)                                                                         \
    {                                                                                              \
        .name = op_name,                                                                           \
        .doc = "Passes on the one input that is alive, and its index; at a loop's head, the "      \
               "Enter's value first and the NextIteration's afterwards.",                          \
        .inputs = "inputs: N * T", .outputs = "output: T, value_index: int32",                     \
        .attrs = "T: type; N: int >= 1", .flags = TROUPE_OP_TAKES_DEAD, .flow = TROUPE_FLOW_MERGE, \
        .infer = infer_merge, .no_gradient = NO_GRADIENT, .kernels = merge_kernels,                \
        .kernel_count = 1                                                                          \
    }
#define ENTER_ROW(op_name)                                                                         \
    {                                                                                              \
        .name = op_name,                                                                           \
        .doc = "Passes data into the first iteration of the frame (every iteration when "          \
               "is_constant), of which parallel_iterations are in flight at most.",                \
        .inputs = "data: T", .outputs = "output: T",                                               \
        .attrs = "T: type; frame_name: string; is_constant: bool = false; "                        \
                 "parallel_iterations: int >= 1 = 10",                                             \
        .flow = TROUPE_FLOW_ENTER, .infer = troupe_infer_unchanged, .no_gradient = NO_GRADIENT,    \
        .kernels = pass_kernels, .kernel_count = 1                                                 \
    }
#define EXIT_ROW(op_name)                                                                          \
    {                                                                                              \
        .name = op_name,                                                                           \
        .doc = "Passes the value of a frame's last iteration out to the frame around it.",         \
        .inputs = "data: T", .outputs = "output: T", .attrs = "T: type", .flow = TROUPE_FLOW_EXIT, \
        .infer = troupe_infer_unchanged, .no_gradient = NO_GRADIENT, .kernels = pass_kernels,      \
        .kernel_count = 1                                                                          \
    }
#define NEXT_ITERATION_ROW(op_name)                                                                \
    {                                                                                              \
        .name = op_name, .doc = "Passes data on to a Merge in the next iteration of its frame.",   \
        .inputs = "data: T", .outputs = "output: T", .attrs = "T: type",                           \
        .flow = TROUPE_FLOW_NEXT_ITERATION, .infer = troupe_infer_unchanged,                       \
        .no_gradient = NO_GRADIENT, .kernels = pass_kernels, .kernel_count = 1                     \
    }

const struct troupe_op troupe_ops_flow[] = {
    SWITCH_ROW("Switch"),
    SWITCH_ROW("RefSwitch"),
    MERGE_ROW("Merge"),
    MERGE_ROW("RefMerge"),
    ENTER_ROW("Enter"),
    ENTER_ROW("RefEnter"),
    EXIT_ROW("Exit"),
    EXIT_ROW("RefExit"),
    NEXT_ITERATION_ROW("NextIteration"),
    NEXT_ITERATION_ROW("RefNextIteration"),
    {.name = "LoopCond",
     .doc = "Says whether its frame has another iteration.",
     .inputs = "input: bool",
     .outputs = "output: bool",
     .attrs = "",
     .flow = TROUPE_FLOW_LOOP_COND,
     .infer = infer_loop_cond,
     .no_gradient = "it is a bool",
     .kernels = loop_cond_kernels,
     .kernel_count = 1},
    {.name = "IdentityN",
     .doc = "Passes all of its inputs on, once all are there.",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: list(type)",
     .infer = infer_pass_all,
     .gradient = gradient_pass_all,
     .kernels = pass_all_kernels,
     .kernel_count = 1},
};
const size_t troupe_ops_flow_count = sizeof(troupe_ops_flow) / sizeof(troupe_ops_flow[0]);
