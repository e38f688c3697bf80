/* Placeholders, variables and Assign; updates are in update.c. */
#include "ops/kernels/state.h"

#include "ops/tensor.h"

enum troupe_status troupe_kernel_placeholder(struct troupe_kernel_call *call)
{
    return troupe_status_fail(TROUPE_FAILED_PRECONDITION,
                              "placeholder \"%s\" needs a value: feed it with --feed %s=...",
                              call->kernel->name, call->kernel->name);
}

enum troupe_status troupe_kernel_variable(struct troupe_kernel_call *call)
{
    return troupe_variable_read(troupe_variable_of(call->kernel->own_resource), call->kernel->name,
                                &call->outputs[0]);
}

enum troupe_status troupe_kernel_assign(struct troupe_kernel_call *call)
{
    struct troupe_variable *variable = troupe_variable_of(call->kernel->input_resources[0]);
    struct troupe_tensor *value = call->inputs[1];
    struct troupe_shape given = troupe_shape_of(value), merged;
    if (troupe_shape_merge(&variable->shape, &given, &merged) != TROUPE_OK) {
        char wanted[TROUPE_SHAPE_TEXT_MAX], got[TROUPE_SHAPE_TEXT_MAX];
        return troupe_status_fail(
            TROUPE_INVALID_ARGUMENT, "the variable wants a value of shape %s, got %s",
            troupe_shape_print(&variable->shape, wanted), troupe_shape_print(&given, got));
    }
    troupe_variable_set(variable, value);
    call->outputs[0] = troupe_tensor_ref(value);
    return TROUPE_OK;
}
