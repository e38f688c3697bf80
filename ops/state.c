/* Placeholders, variables, and what updates them. An update fires after the reads of its step and
 * before those of the next; it writes in place when nobody else holds the value. */
#include "ops/kernels/state.h"

#include <string.h>

#include "ops/families.h"

#define TROUPE_NUMERIC "{float32, float64, int32, int64, uint8}"

static enum troupe_status infer_declared(struct troupe_infer *infer)
{
    infer->output_shapes[0] = troupe_infer_attr(infer, "shape")->value.shape;
    return TROUPE_OK;
}

/* Checks an input that has the variable's shape, and learns from it. */
static enum troupe_status merge_into(struct troupe_infer *infer, int input)
{
    struct troupe_shape merged;
    const struct troupe_shape *variable = &infer->output_shapes[0];
    if (troupe_shape_merge(variable, &infer->input_shapes[input], &merged) != TROUPE_OK) {
        char wanted[TROUPE_SHAPE_TEXT_MAX], given[TROUPE_SHAPE_TEXT_MAX];
        return troupe_status_fail(
            TROUPE_INVALID_ARGUMENT, "input \"%s\" wants the variable's shape %s, got %s",
            infer->schema->inputs[input].name, troupe_shape_print(variable, wanted),
            troupe_shape_print(&infer->input_shapes[input], given));
    }
    infer->output_shapes[0] = merged;
    return TROUPE_OK;
}

static enum troupe_status want_scalar(const struct troupe_infer *infer, int input)
{
    char given[TROUPE_SHAPE_TEXT_MAX];
    if (infer->input_shapes[input].rank <= 0)
        return TROUPE_OK;
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "input \"%s\" wants a scalar, got shape %s",
                              infer->schema->inputs[input].name,
                              troupe_shape_print(&infer->input_shapes[input], given));
}

static bool is_whole(const struct troupe_op_arg *input)
{
    return input->is_ref || strcmp(input->name, "value") == 0 ||
           strcmp(input->name, "delta") == 0 || strcmp(input->name, "grad") == 0;
}

/* Input 0 is the variable; refs and gradients have its shape, the other inputs are scalars. */
static enum troupe_status infer_update(struct troupe_infer *infer)
{
    infer->output_shapes[0] = infer->input_shapes[0];
    enum troupe_status status = TROUPE_OK;
    for (int i = 1; i < infer->input_count && status == TROUPE_OK; i++) {
        const struct troupe_op_arg *input = &infer->schema->inputs[i];
        status = is_whole(input) ? merge_into(infer, i) : want_scalar(infer, i);
    }
    return status;
}

static enum troupe_status variable_resource(const struct troupe_kernel *kernel,
                                            struct troupe_resource **out)
{
    struct troupe_variable *variable;
    const struct troupe_attr *shape = troupe_kernel_attr(kernel, "shape");
    enum troupe_status status =
        troupe_variable_create(troupe_kernel_type(kernel, "dtype"), &shape->value.shape, &variable);
    if (status == TROUPE_OK)
        *out = &variable->resource;
    return status;
}

#define TROUPE_FLOATS (TROUPE_DTYPE_BIT(TROUPE_FLOAT32) | TROUPE_DTYPE_BIT(TROUPE_FLOAT64))
#define TROUPE_NUMBERS                                                                             \
    (TROUPE_FLOATS | TROUPE_DTYPE_BIT(TROUPE_INT32) | TROUPE_DTYPE_BIT(TROUPE_INT64) |             \
     TROUPE_DTYPE_BIT(TROUPE_UINT8))

static const struct troupe_kernel_row placeholder_kernels[] = {
    {.device = "CPU", .compute = troupe_kernel_placeholder}};
static const struct troupe_kernel_row variable_kernels[] = {
    {.device = "CPU", .compute = troupe_kernel_variable}};
static const struct troupe_kernel_row assign_kernels[] = {
    {.device = "CPU", .compute = troupe_kernel_assign}};
static const struct troupe_kernel_row assign_add_kernels[] = {
    {.device = "CPU",
     .type_attr = "T",
     .dtypes = TROUPE_NUMBERS,
     .compute = troupe_kernel_assign_add}};
static const struct troupe_kernel_row assign_sub_kernels[] = {
    {.device = "CPU",
     .type_attr = "T",
     .dtypes = TROUPE_NUMBERS,
     .compute = troupe_kernel_assign_sub}};
static const struct troupe_kernel_row descent_kernels[] = {
    {.device = "CPU",
     .type_attr = "T",
     .dtypes = TROUPE_FLOATS,
     .compute = troupe_kernel_apply_gradient_descent}};
static const struct troupe_kernel_row momentum_kernels[] = {
    {.device = "CPU",
     .type_attr = "T",
     .dtypes = TROUPE_FLOATS,
     .compute = troupe_kernel_apply_momentum}};
static const struct troupe_kernel_row adam_kernels[] = {{.device = "CPU",
                                                         .type_attr = "T",
                                                         .dtypes = TROUPE_FLOATS,
                                                         .compute = troupe_kernel_apply_adam}};

#define TROUPE_UPDATES_STATE "it updates state in place, and is no function of its inputs"
#define TROUPE_VARIABLE_ATTRS                                                                      \
    "shape: shape; dtype: type; container: string = ''; shared_name: string = ''; "                \
    "initializer: string = ''; trainable: bool = true"

const struct troupe_op troupe_ops_state[] = {
    {.name = "Placeholder",
     .doc = "A value that is fed: running it without a feed is an error.",
     .inputs = "",
     .outputs = "output: dtype",
     .attrs = "dtype: type; shape: shape = ?",
     .infer = infer_declared,
     .no_gradient = "it has no inputs",
     .kernels = placeholder_kernels,
     .kernel_count = 1},
    {.name = "Variable",
     .doc = "State that outlives steps; its output is a snapshot of the value.",
     .inputs = "",
     .outputs = "ref: Ref(dtype)",
     .attrs = TROUPE_VARIABLE_ATTRS,
     .flags = TROUPE_OP_STATEFUL,
     .infer = infer_declared,
     .no_gradient = "it has no inputs",
     .kernels = variable_kernels,
     .kernel_count = 1,
     .resource_create = variable_resource},
    {.name = "VariableV2",
     .doc = "As Variable, under the name that exported graphs use.",
     .inputs = "",
     .outputs = "ref: Ref(dtype)",
     .attrs = TROUPE_VARIABLE_ATTRS,
     .flags = TROUPE_OP_STATEFUL,
     .infer = infer_declared,
     .no_gradient = "it has no inputs",
     .kernels = variable_kernels,
     .kernel_count = 1,
     .resource_create = variable_resource},
    {.name = "Assign",
     .doc = "Sets a variable to a value; the output is the new value.",
     .inputs = "ref: Ref(T), value: T",
     .outputs = "output_ref: Ref(T)",
     .attrs = "T: type; validate_shape: bool = true; use_locking: bool = true",
     .flags = TROUPE_OP_STATEFUL,
     .infer = infer_update,
     .no_gradient = TROUPE_UPDATES_STATE,
     .kernels = assign_kernels,
     .kernel_count = 1},
    {.name = "AssignAdd",
     .doc = "Adds a value to a variable; the output is the new value.",
     .inputs = "ref: Ref(T), value: T",
     .outputs = "output_ref: Ref(T)",
     .attrs = "T: " TROUPE_NUMERIC "; use_locking: bool = false",
     .flags = TROUPE_OP_STATEFUL,
     .infer = infer_update,
     .no_gradient = TROUPE_UPDATES_STATE,
     .kernels = assign_add_kernels,
     .kernel_count = 1},
    {.name = "AssignSub",
     .doc = "Subtracts a value from a variable; the output is the new value.",
     .inputs = "ref: Ref(T), value: T",
     .outputs = "output_ref: Ref(T)",
     .attrs = "T: " TROUPE_NUMERIC "; use_locking: bool = false",
     .flags = TROUPE_OP_STATEFUL,
     .infer = infer_update,
     .no_gradient = TROUPE_UPDATES_STATE,
     .kernels = assign_sub_kernels,
     .kernel_count = 1},
    {.name = "ApplyGradientDescent",
     .doc = "var -= alpha * delta.",
     .inputs = "var: Ref(T), alpha: T, delta: T",
     .outputs = "out: Ref(T)",
     .attrs = "T: {float32, float64}; use_locking: bool = false",
     .flags = TROUPE_OP_STATEFUL,
     .infer = infer_update,
     .no_gradient = TROUPE_UPDATES_STATE,
     .kernels = descent_kernels,
     .kernel_count = 1},
    {.name = "ApplyMomentum",
     .doc = "accum = momentum * accum + grad; var -= lr * accum, or with use_nesterov "
            "var -= lr * (grad + momentum * accum).",
     .inputs = "var: Ref(T), accum: Ref(T), lr: T, grad: T, momentum: T",
     .outputs = "out: Ref(T)",
     .attrs = "T: {float32, float64}; use_locking: bool = false; use_nesterov: bool = false",
     .flags = TROUPE_OP_STATEFUL,
     .infer = infer_update,
     .no_gradient = TROUPE_UPDATES_STATE,
     .kernels = momentum_kernels,
     .kernel_count = 1},
    {.name = "ApplyAdam",
     .doc = "Adam (Kingma and Ba, 2014): moments m and v, step "
            "lr * sqrt(1 - beta2_power) / (1 - beta1_power) * m / (sqrt(v) + epsilon).",
     .inputs = "var: Ref(T), m: Ref(T), v: Ref(T), beta1_power: T, beta2_power: T, lr: T, "
               "beta1: T, beta2: T, epsilon: T, grad: T",
     .outputs = "out: Ref(T)",
     .attrs = "T: {float32, float64}; use_locking: bool = false; use_nesterov: bool = false",
     .flags = TROUPE_OP_STATEFUL,
     .infer = infer_update,
     .no_gradient = TROUPE_UPDATES_STATE,
     .kernels = adam_kernels,
     .kernel_count = 1},
};
const size_t troupe_ops_state_count = sizeof(troupe_ops_state) / sizeof(troupe_ops_state[0]);
