/* Updates of variables, element by element, from a template for each dtype. Invariant: every buffer
 * that a template writes is held for update, so that no reader sees half of it. */
#include "ops/kernels/state.h"

#include <math.h>
#include <string.h>

#include "ops/tensor.h"

/* What an element-wise update works on: up to three variables, a tensor, and scalars as doubles. */
struct update {
    void *state[3];
    const void *value;
    double scalars[8];
    bool nesterov;
};

typedef void update_fn(const struct update *update, int64_t begin, int64_t end);

#define TYPE       int32_t
#define NAME(stem) stem##_int32
#include "ops/kernels/update_add.inc.h"
#undef TYPE
#undef NAME
#define TYPE       int64_t
#define NAME(stem) stem##_int64
#include "ops/kernels/update_add.inc.h"
#undef TYPE
#undef NAME
#define TYPE       uint8_t
#define NAME(stem) stem##_uint8
#include "ops/kernels/update_add.inc.h"
#undef TYPE
#undef NAME
#define TYPE       float
#define NAME(stem) stem##_float32
#define ROOT       sqrtf
#include "ops/kernels/update_add.inc.h"
#include "ops/kernels/update_optimizer.inc.h"
#undef ROOT
#undef TYPE
#undef NAME
#define TYPE       double
#define NAME(stem) stem##_float64
#define ROOT       sqrt
#include "ops/kernels/update_add.inc.h"
#include "ops/kernels/update_optimizer.inc.h"
#undef ROOT
#undef TYPE
#undef NAME

struct parallel_update {
    update_fn *apply;
    const struct update *update;
};

static void apply_range(void *context, int64_t begin, int64_t end)
{
    const struct parallel_update *work = context;
    work->apply(work->update, begin, end);
}

/* Elements that one worker takes at least. */
#define TROUPE_UPDATE_GRAIN 16384

static enum troupe_status check_value(const struct troupe_tensor *state,
                                      const struct troupe_tensor *value, const char *what)
{
    struct troupe_shape wanted = troupe_shape_of(state), given = troupe_shape_of(value);
    char wanted_text[TROUPE_SHAPE_TEXT_MAX], given_text[TROUPE_SHAPE_TEXT_MAX];
    if (troupe_shape_equal(&wanted, &given))
        return TROUPE_OK;
    return troupe_status_fail(
        TROUPE_INVALID_ARGUMENT, "input \"%s\" wants the variable's shape %s, got %s", what,
        troupe_shape_print(&wanted, wanted_text), troupe_shape_print(&given, given_text));
}

static double scalar_of(const struct troupe_tensor *tensor)
{
    if (troupe_tensor_dtype(tensor) == TROUPE_FLOAT32)
        return (double)*(const float *)troupe_tensor_data(tensor);
    return *(const double *)troupe_tensor_data(tensor);
}

/* The inputs that are no variables and not the value are scalars. The locks of variables are taken
 * one by one, so that the same variable twice would wait for itself. */
static enum troupe_status check_inputs(const struct troupe_kernel_call *call, int states, int value)
{
    const struct troupe_kernel *kernel = call->kernel;
    for (int i = 0; i < states; i++) {
        for (int j = 0; j < i; j++) {
            if (kernel->input_resources[i] == kernel->input_resources[j])
                return troupe_status_fail(
                    TROUPE_INVALID_ARGUMENT,
                    "inputs \"%s\" and \"%s\" are the same variable: wants one for each",
                    kernel->schema->inputs[j].name, kernel->schema->inputs[i].name);
        }
    }
    for (int i = states; i < kernel->input_count; i++) {
        struct troupe_shape given = troupe_shape_of(call->inputs[i]);
        char text[TROUPE_SHAPE_TEXT_MAX];
        if (i != value && given.rank != 0)
            return troupe_status_fail(
                TROUPE_INVALID_ARGUMENT, "input \"%s\" wants a scalar, got shape %s",
                kernel->schema->inputs[i].name, troupe_shape_print(&given, text));
    }
    return TROUPE_OK;
}

/* Runs `apply` over the variables of inputs 0 to states - 1, which it holds meanwhile. The output
 * is the new value of the first. `value` is the number of the input with the gradient or the
 * addend; inputs between are scalars. */
static enum troupe_status run_update(struct troupe_kernel_call *call, update_fn *apply, int states,
                                     int value)
{
    const struct troupe_kernel *kernel = call->kernel;
    struct update update = {.value = troupe_tensor_data(call->inputs[value])};
    struct troupe_tensor *held[3];
    enum troupe_status status = check_inputs(call, states, value);
    int count = 0;
    for (; count < states && status == TROUPE_OK; count++) {
        struct troupe_variable *variable = troupe_variable_of(kernel->input_resources[count]);
        status = troupe_variable_begin_update(variable, kernel->schema->inputs[count].name,
                                              &held[count]);
        if (status != TROUPE_OK)
            break;
        update.state[count] = troupe_tensor_data_mutable(held[count]);
    }
    for (int i = 0; i < count && status == TROUPE_OK; i++)
        status = check_value(held[i], call->inputs[value], kernel->schema->inputs[value].name);
    for (int i = states, at = 0; i < kernel->input_count && status == TROUPE_OK; i++)
        if (i != value)
            update.scalars[at++] = scalar_of(call->inputs[i]);
    if (status == TROUPE_OK) {
        const struct troupe_attr *nesterov =
            troupe_attr_find(kernel->attrs, kernel->attr_count, "use_nesterov");
        update.nesterov = nesterov && nesterov->value.b;
        struct parallel_update work = {apply, &update};
        troupe_parallel_for(call->parallel, troupe_tensor_elements(held[0]), TROUPE_UPDATE_GRAIN,
                            apply_range, &work);
        call->outputs[0] = troupe_tensor_ref(held[0]);
    }
    while (count-- > 0)
        troupe_variable_end_update(troupe_variable_of(kernel->input_resources[count]), held[count]);
    return status;
}

static update_fn *add_of(enum troupe_dtype dtype)
{
    switch (dtype) {
    case TROUPE_INT32:
        return add_int32;
    case TROUPE_INT64:
        return add_int64;
    case TROUPE_UINT8:
        return add_uint8;
    case TROUPE_FLOAT32:
        return add_float32;
    default:
        return add_float64;
    }
}

static update_fn *subtract_of(enum troupe_dtype dtype)
{
    switch (dtype) {
    case TROUPE_INT32:
        return subtract_int32;
    case TROUPE_INT64:
        return subtract_int64;
    case TROUPE_UINT8:
        return subtract_uint8;
    case TROUPE_FLOAT32:
        return subtract_float32;
    default:
        return subtract_float64;
    }
}

static bool is_single(const struct troupe_kernel_call *call)
{
    return call->kernel->output_dtypes[0] == TROUPE_FLOAT32;
}

enum troupe_status troupe_kernel_assign_add(struct troupe_kernel_call *call)
{
    return run_update(call, add_of(call->kernel->output_dtypes[0]), 1, 1);
}

enum troupe_status troupe_kernel_assign_sub(struct troupe_kernel_call *call)
{
    return run_update(call, subtract_of(call->kernel->output_dtypes[0]), 1, 1);
}

enum troupe_status troupe_kernel_apply_gradient_descent(struct troupe_kernel_call *call)
{
    return run_update(call, is_single(call) ? descend_float32 : descend_float64, 1, 2);
}

enum troupe_status troupe_kernel_apply_momentum(struct troupe_kernel_call *call)
{
    return run_update(call, is_single(call) ? momentum_float32 : momentum_float64, 2, 3);
}

enum troupe_status troupe_kernel_apply_adam(struct troupe_kernel_call *call)
{
    return run_update(call, is_single(call) ? adam_float32 : adam_float64, 3, 9);
}
