/* Ops that act on the run, not on values. */
#include <stdio.h>

#include "base/text.h"
#include "ops/families.h"
#include "ops/gradient.h"
#include "ops/kernel.h"
#include "ops/tensor.h"

static enum troupe_status compute_nothing(struct troupe_kernel_call *call)
{
    (void)call;
    return TROUPE_OK;
}

/* Adds "name = [1, 2, ...]", at most `limit` elements of each tensor from input `first` on. */
static void print_inputs(const struct troupe_kernel_call *call, int first, int64_t limit,
                         struct troupe_text *out)
{
    for (int i = first; i < call->kernel->input_count; i++) {
        struct troupe_attr value = troupe_attr_tensor(call->inputs[i]);
        const struct troupe_tensor *tensor = call->inputs[i];
        troupe_text_add(out, i > first ? ", " : "");
        if (troupe_tensor_elements(tensor) <= limit) {
            troupe_attr_print(&value, out);
        } else {
            struct troupe_shape shape = troupe_shape_of(tensor);
            char text[TROUPE_SHAPE_TEXT_MAX];
            troupe_text_addf(out, "%s%s", troupe_dtype_name(troupe_tensor_dtype(tensor)),
                             troupe_shape_print(&shape, text));
        }
        troupe_attr_fini(&value);
    }
}

static enum troupe_status compute_print(struct troupe_kernel_call *call)
{
    int64_t first_n = troupe_kernel_int(call->kernel, "first_n");
    if (first_n < 0 || call->step < (uint64_t)first_n) {
        struct troupe_text text;
        troupe_text_init(&text);
        troupe_text_addf(&text, "%s", troupe_kernel_attr(call->kernel, "message")->value.s);
        print_inputs(call, 1, troupe_kernel_int(call->kernel, "summarize"), &text);
        fprintf(stderr, "%s\n", text.data ? text.data : "");
        troupe_text_fini(&text);
    }
    call->outputs[0] = troupe_tensor_ref(call->inputs[0]);
    return TROUPE_OK;
}

static enum troupe_status compute_assert(struct troupe_kernel_call *call)
{
    struct troupe_shape shape = troupe_shape_of(call->inputs[0]);
    char given[TROUPE_SHAPE_TEXT_MAX];
    if (shape.rank != 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "input \"condition\" wants a scalar, got shape %s",
                                  troupe_shape_print(&shape, given));
    if (*(const bool *)troupe_tensor_data(call->inputs[0]))
        return TROUPE_OK;
    struct troupe_text text;
    troupe_text_init(&text);
    print_inputs(call, 1, troupe_kernel_int(call->kernel, "summarize"), &text);
    enum troupe_status status = troupe_status_fail(
        TROUPE_FAILED_PRECONDITION, "assertion failed: %s", text.data ? text.data : "(no data)");
    troupe_text_fini(&text);
    return status;
}

static enum troupe_status infer_assert(struct troupe_infer *infer)
{
    if (infer->input_shapes[0].rank <= 0)
        return TROUPE_OK;
    char text[TROUPE_SHAPE_TEXT_MAX];
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                              "input \"condition\" wants a scalar, got shape %s",
                              troupe_shape_print(&infer->input_shapes[0], text));
}

static enum troupe_status gradient_print(struct troupe_gradient *gradient)
{
    gradient->input_gradients[0] = gradient->output_gradients[0];
    return TROUPE_OK;
}

static const struct troupe_kernel_row nothing_kernels[] = {
    {.device = "CPU", .compute = compute_nothing}};
static const struct troupe_kernel_row print_kernels[] = {
    {.device = "CPU", .compute = compute_print}};
static const struct troupe_kernel_row assert_kernels[] = {
    {.device = "CPU", .compute = compute_assert}};

const struct troupe_op troupe_ops_control[] = {
    {.name = "NoOp",
     .doc = "Does nothing: stands for the control inputs that it waits for.",
     .inputs = "",
     .outputs = "",
     .attrs = "",
     .infer = troupe_infer_none,
     .no_gradient = "it has no outputs",
     .kernels = nothing_kernels,
     .kernel_count = 1},
    {.name = "Print",
     .doc = "Passes its input on and prints the data to standard error, in the first first_n steps "
            "(-1: all).",
     .inputs = "input: T, data: U",
     .outputs = "output: T",
     .attrs = "T: type; U: list(type); message: string = ''; first_n: int = -1; "
              "summarize: int = 3",
     .flags = TROUPE_OP_STATEFUL,
     .infer = troupe_infer_unchanged,
     .gradient = gradient_print,
     .kernels = print_kernels,
     .kernel_count = 1},
    {.name = "Assert",
     .doc = "Fails the step, with the data in the message, unless the condition is true.",
     .inputs = "condition: bool, data: T",
     .outputs = "",
     .attrs = "T: list(type); summarize: int = 3",
     .flags = TROUPE_OP_STATEFUL,
     .infer = infer_assert,
     .no_gradient = "it has no outputs",
     .kernels = assert_kernels,
     .kernel_count = 1},
};
const size_t troupe_ops_control_count = sizeof(troupe_ops_control) / sizeof(troupe_ops_control[0]);
