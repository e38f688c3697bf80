/* Variables, the outputs of kernels and the shared shape functions. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <string.h>

#include "base/memory.h"
#include "ops/kernel.h"
#include "ops/tensor.h"

static struct troupe_tensor *floats(int64_t count, float value)
{
    struct troupe_tensor *tensor;
    cr_assert_eq(troupe_tensor_create(TROUPE_FLOAT32, 1, &count, &tensor), 0);
    float *data = troupe_tensor_data_mutable(tensor);
    for (int64_t i = 0; i < count; i++)
        data[i] = value;
    return tensor;
}

static float first(const struct troupe_tensor *tensor)
{
    return *(const float *)troupe_tensor_data(tensor);
}

static struct troupe_variable *variable_create(void)
{
    struct troupe_shape shape = troupe_shape_unknown();
    struct troupe_variable *variable;
    cr_assert_eq(troupe_variable_create(TROUPE_FLOAT32, &shape, &variable), 0);
    cr_assert_eq(troupe_variable_of(&variable->resource), variable);
    return variable;
}

Test(variable, wants_a_value_first)
{
    struct troupe_variable *variable = variable_create();
    struct troupe_tensor *out = NULL;
    cr_assert_eq(troupe_variable_read(variable, "w", &out), TROUPE_FAILED_PRECONDITION);
    cr_assert(strstr(troupe_status_message(), "variable \"w\" is not initialised"));
    cr_assert_eq(troupe_variable_begin_update(variable, "w", &out), TROUPE_FAILED_PRECONDITION);
    cr_assert_null(out);
    /* The lock is free again. */
    struct troupe_tensor *value = floats(2, 1);
    troupe_variable_set(variable, value);
    troupe_tensor_unref(value);
    cr_assert_eq(troupe_variable_read(variable, "w", &out), TROUPE_OK);
    cr_assert_eq(out, value);
    troupe_tensor_unref(out);
    variable->resource.destroy(&variable->resource);
}

Test(variable, copies_on_write_only_when_read)
{
    struct troupe_memory_usage before, after;
    troupe_memory_usage_get(&before);
    struct troupe_variable *variable = variable_create();
    struct troupe_tensor *value = floats(1000, 1), *snapshot, *updated;
    troupe_variable_set(variable, value);
    troupe_tensor_unref(value);

    cr_assert_eq(troupe_variable_begin_update(variable, "w", &updated), 0);
    cr_assert_eq(updated, value, "in place when nobody else holds it");
    *(float *)troupe_tensor_data_mutable(updated) = 2;
    troupe_variable_end_update(variable, updated);

    cr_assert_eq(troupe_variable_read(variable, "w", &snapshot), 0);
    cr_assert_eq(troupe_variable_begin_update(variable, "w", &updated), 0);
    cr_assert_neq(updated, snapshot);
    cr_assert_eq(first(updated), 2.0f, "the copy starts from the value");
    *(float *)troupe_tensor_data_mutable(updated) = 3;
    troupe_variable_end_update(variable, updated);
    cr_assert_eq(first(snapshot), 2.0f, "a snapshot does not change");
    cr_assert_eq(first(variable->value), 3.0f);
    troupe_tensor_unref(snapshot);

    /* A view of the buffer is a reader too. */
    struct troupe_tensor *view;
    cr_assert_eq(troupe_tensor_reshape(variable->value, 2, (int64_t[]){10, 100}, &view), 0);
    cr_assert_eq(troupe_variable_begin_update(variable, "w", &updated), 0);
    *(float *)troupe_tensor_data_mutable(updated) = 4;
    troupe_variable_end_update(variable, updated);
    cr_assert_eq(first(view), 3.0f);
    troupe_tensor_unref(view);

    variable->resource.destroy(&variable->resource);
    troupe_memory_usage_get(&after);
    cr_assert_eq(after.live_bytes, before.live_bytes);
}

static void *update_often(void *pointer)
{
    struct troupe_variable *variable = pointer;
    for (int i = 0; i < 20000; i++) {
        struct troupe_tensor *value;
        if (troupe_variable_begin_update(variable, "w", &value) != TROUPE_OK)
            return pointer;
        float *data = troupe_tensor_data_mutable(value);
        for (int64_t j = 0; j < troupe_tensor_elements(value); j++)
            data[j] += 1;
        troupe_variable_end_update(variable, value);
    }
    return NULL;
}

Test(variable, reads_are_never_torn)
{
    struct troupe_variable *variable = variable_create();
    struct troupe_tensor *value = floats(64, 0);
    troupe_variable_set(variable, value);
    troupe_tensor_unref(value);
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        cr_assert_eq(pthread_create(&threads[i], NULL, update_often, variable), 0);
    for (int i = 0; i < 20000; i++) {
        struct troupe_tensor *read;
        cr_assert_eq(troupe_variable_read(variable, "w", &read), 0);
        const float *data = troupe_tensor_data(read);
        for (int j = 1; j < 64; j++)
            cr_assert_eq(data[j], data[0], "torn");
        troupe_tensor_unref(read);
    }
    for (int i = 0; i < 2; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        cr_assert_null(failed);
    }
    cr_assert_eq(first(variable->value), 40000.0f, "no update is lost");
    variable->resource.destroy(&variable->resource);
}

Test(call, takes_over_an_input_that_nobody_else_holds)
{
    enum troupe_dtype dtypes[] = {TROUPE_FLOAT32, TROUPE_INT32, TROUPE_FLOAT32};
    struct troupe_kernel kernel = {.name = "n", .output_count = 3, .output_dtypes = dtypes};
    struct troupe_tensor *input = floats(8, 1), *outputs[3] = {NULL}, *out;
    struct troupe_kernel_call call = {.kernel = &kernel, .inputs = &input, .outputs = outputs};

    cr_assert_eq(troupe_call_output_like(&call, 0, 0, &out), 0);
    cr_assert(out == input && outputs[0] == input);
    cr_assert_eq(troupe_call_output_like(&call, 2, 0, &out), 0);
    cr_assert_neq(out, input, "two outputs never share");
    cr_assert_eq(troupe_call_output_like(&call, 1, 0, &out), 0);
    cr_assert_neq(out, input, "another dtype");
    cr_assert_eq(troupe_tensor_dtype(out), TROUPE_INT32);
    cr_assert_eq(troupe_tensor_dims(out)[0], 8);
    for (int i = 0; i < 3; i++) {
        troupe_tensor_unref(outputs[i]);
        outputs[i] = NULL;
    }

    troupe_tensor_ref(input);
    cr_assert_eq(troupe_call_output_like(&call, 0, 0, &out), 0);
    cr_assert_neq(out, input, "somebody else holds it");
    troupe_tensor_unref(outputs[0]);
    troupe_tensor_unref(input);
    troupe_tensor_unref(input);
}

static enum troupe_status compute_half(struct troupe_kernel_call *call)
{
    struct troupe_tensor *out;
    enum troupe_status status =
        troupe_call_output(call, 0, 1, (int64_t[]){call->step ? 9 : 5}, &out);
    return status == TROUPE_OK && call->step == 1
               ? troupe_status_fail(TROUPE_OUT_OF_RANGE, "the end")
               : status;
}

Test(call, drops_the_outputs_of_a_failed_kernel)
{
    struct troupe_memory_usage before, after;
    const struct troupe_kernel_row row = {.device = "CPU", .compute = compute_half};
    enum troupe_dtype dtypes[] = {TROUPE_FLOAT32, TROUPE_FLOAT32};
    struct troupe_kernel kernel = {
        .name = "n", .row = &row, .output_count = 2, .output_dtypes = dtypes};
    struct troupe_tensor *outputs[2];
    struct troupe_kernel_call call = {.kernel = &kernel, .outputs = outputs, .step = 1};
    troupe_memory_usage_get(&before);
    cr_assert_eq(troupe_call_compute(&call), TROUPE_OUT_OF_RANGE);
    cr_assert_null(outputs[0]);
    call.step = 2;
    cr_assert_eq(troupe_call_compute(&call), TROUPE_INTERNAL);
    cr_assert_str_eq(troupe_status_message(), "the kernel did not set output 1");
    troupe_memory_usage_get(&after);
    cr_assert_eq(after.live_bytes, before.live_bytes);
    kernel.output_count = 1;
    cr_assert_eq(troupe_call_compute(&call), TROUPE_OK);
    cr_assert_eq(troupe_tensor_dims(outputs[0])[0], 9);
    troupe_tensor_unref(outputs[0]);
}

Test(kernel, reads_attrs)
{
    char names[][8] = {"i", "f", "b", "t"};
    struct troupe_named_attr attrs[] = {{names[0], troupe_attr_int(3)},
                                        {names[1], troupe_attr_float(0.5)},
                                        {names[2], troupe_attr_bool(true)},
                                        {names[3], troupe_attr_type(TROUPE_INT64)}};
    struct troupe_kernel kernel = {.name = "n", .attrs = attrs, .attr_count = 4};
    cr_assert_eq(troupe_kernel_int(&kernel, "i"), 3);
    cr_assert_eq(troupe_kernel_float(&kernel, "f"), 0.5);
    cr_assert(troupe_kernel_bool(&kernel, "b"));
    cr_assert_eq(troupe_kernel_type(&kernel, "t"), TROUPE_INT64);
    cr_assert_null(troupe_kernel_attr(&kernel, "x"));
}

Test(infer, shared_functions)
{
    struct troupe_shape inputs[] = {troupe_shape_make(2, (int64_t[]){4, 1}),
                                    troupe_shape_make(1, (int64_t[]){5})};
    struct troupe_shape outputs[2], wide = troupe_shape_make(2, (int64_t[]){4, 5});
    struct troupe_infer infer = {
        .input_count = 2, .input_shapes = inputs, .output_count = 2, .output_shapes = outputs};
    cr_assert_eq(troupe_infer_broadcast(&infer), TROUPE_OK);
    cr_assert(troupe_shape_equal(&outputs[1], &wide));
    cr_assert_eq(troupe_infer_unchanged(&infer), TROUPE_OK);
    cr_assert(troupe_shape_equal(&outputs[0], &inputs[0]));
    cr_assert_eq(troupe_infer_scalar(&infer), TROUPE_OK);
    cr_assert_eq(outputs[1].rank, 0);
    cr_assert_eq(troupe_infer_unknown(&infer), TROUPE_OK);
    cr_assert_eq(outputs[0].rank, TROUPE_RANK_UNKNOWN);
    cr_assert_eq(troupe_infer_none(&infer), TROUPE_INTERNAL);
    infer.output_count = 0;
    cr_assert_eq(troupe_infer_none(&infer), TROUPE_OK);
    inputs[1] = troupe_shape_make(1, (int64_t[]){3});
    inputs[0] = troupe_shape_make(1, (int64_t[]){4});
    cr_assert_eq(troupe_infer_broadcast(&infer), TROUPE_INVALID_ARGUMENT);
}
