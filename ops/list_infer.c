/* Shape functions of ops on lists and on arrays of tensors. What a list holds is known only in a
 * run: before it there is what the op itself says. Invariant: a kernel runs its shape function
 * first, so that what is checked here is not checked again. */
#include <string.h>

#include "ops/kernels/infer_inputs.h"
#include "ops/kernels/shapes.h"
#include "ops/list.h"

int troupe_op_input_find(const struct troupe_op_schema *schema, const char *name)
{
    for (int i = 0; i < schema->input_count; i++)
        if (strcmp(schema->inputs[i].name, name) == 0)
            return i;
    return -1;
}

enum troupe_status troupe_element_shape_read(const struct troupe_tensor *tensor,
                                             struct troupe_shape *out)
{
    struct troupe_shape shape = troupe_shape_unknown();
    int64_t sizes[TROUPE_RANK_MAX];
    int count;
    enum troupe_status status = troupe_tensor_ints(tensor, "element_shape", sizes, &count);
    if (status != TROUPE_OK)
        return status;
    if (troupe_tensor_rank(tensor) == 0 && sizes[0] != -1)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "\"element_shape\" is %lld: wants a vector of sizes, or -1 when "
                                  "the rank is not known",
                                  (long long)sizes[0]);
    if (troupe_tensor_rank(tensor) > 0)
        shape = troupe_shape_make(count, sizes);
    for (int i = 0; i < shape.rank; i++)
        if (shape.dims[i] < -1)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "\"element_shape\" has %lld at %d: wants 0 or more, or -1 "
                                      "when it is not known",
                                      (long long)shape.dims[i], i);
    *out = shape;
    return TROUPE_OK;
}

/* The ranks of the inputs that tell an op what to do; others carry elements. */
static const struct {
    const char *name;
    int least, most;
} ranks[] = {
    {"input_handle", 0, 0}, {"handle", 0, 0},        {"flow_in", 0, 0},
    {"index", 0, 0},        {"size", 0, 0},          {"num_elements", 0, 0},
    {"indices", 1, 1},      {"lengths", 1, 1},       {"max_num_elements", 0, 0},
    {"leading_dims", 1, 1}, {"element_shape", 0, 1},
};

static enum troupe_status check_input(const struct troupe_infer *infer, int input)
{
    const char *name = infer->schema->inputs[input].name;
    int rank = infer->input_shapes[input].rank;
    char text[TROUPE_SHAPE_TEXT_MAX];
    for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
        if (strcmp(ranks[i].name, name) != 0 || rank < 0 ||
            (rank >= ranks[i].least && rank <= ranks[i].most))
            continue;
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "\"%s\" wants a %s, got shape %s", name,
                                  ranks[i].most == 0 ? "scalar" : "vector",
                                  troupe_shape_print(&infer->input_shapes[input], text));
    }
    return TROUPE_OK;
}

/* Checks the inputs and reads the one named "element_shape", where it is known; unknown without. */
static enum troupe_status check_inputs(const struct troupe_infer *infer, struct troupe_shape *shape)
{
    enum troupe_status status = TROUPE_OK;
    *shape = troupe_shape_unknown();
    for (int i = 0; i < infer->input_count && status == TROUPE_OK; i++)
        status = check_input(infer, i);
    int at = troupe_op_input_find(infer->schema, "element_shape");
    if (status == TROUPE_OK && at >= 0 && infer->input_values[at])
        status = troupe_element_shape_read(infer->input_values[at], shape);
    else if (status == TROUPE_OK && at >= 0 && infer->input_shapes[at].rank == 1 &&
             infer->input_shapes[at].dims[0] <= TROUPE_RANK_MAX)
        *shape = troupe_shape_of_rank((int)infer->input_shapes[at].dims[0]);
    return status;
}

/* Handles, flows and counts are scalars. */
static void scalar_outputs(struct troupe_infer *infer)
{
    for (int i = 0; i < infer->output_count; i++)
        infer->output_shapes[i] = troupe_shape_scalar();
}

enum troupe_status troupe_infer_list(struct troupe_infer *infer)
{
    struct troupe_shape shape;
    scalar_outputs(infer);
    return check_inputs(infer, &shape);
}

/* The shape with `size` before it; unknown when the rank is, or when it is too high. */
static struct troupe_shape behind(int64_t size, const struct troupe_shape *shape)
{
    if (shape->rank < 0 || shape->rank >= TROUPE_RANK_MAX)
        return troupe_shape_unknown();
    struct troupe_shape whole = {.rank = shape->rank + 1, .dims = {size}};
    memcpy(whole.dims + 1, shape->dims, sizeof(int64_t) * (size_t)shape->rank);
    return whole;
}

/* Checks that an input is no scalar and, when `count_input` is a vector whose length is known, that
 * it has a row for each entry. */
static enum troupe_status check_rows(const struct troupe_infer *infer, int input, int count_input)
{
    const struct troupe_shape *rows = &infer->input_shapes[input];
    const char *name = infer->schema->inputs[input].name;
    if (rows->rank == 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "\"%s\" is a scalar: wants a tensor with rows", name);
    if (rows->rank < 0 || rows->dims[0] < 0 || count_input < 0)
        return TROUPE_OK;
    const struct troupe_shape *count = &infer->input_shapes[count_input];
    if (count->rank == 1 && count->dims[0] >= 0 && count->dims[0] != rows->dims[0])
        return troupe_status_fail(
            TROUPE_INVALID_ARGUMENT, "\"%s\" has %lld rows and \"%s\" %lld entries: wants as many",
            name, (long long)rows->dims[0], infer->schema->inputs[count_input].name,
            (long long)count->dims[0]);
    return TROUPE_OK;
}

enum troupe_status troupe_infer_list_rows(struct troupe_infer *infer)
{
    struct troupe_shape shape, merged;
    int tensor = troupe_op_input_find(infer->schema, "tensor");
    scalar_outputs(infer);
    enum troupe_status status = check_inputs(infer, &shape);
    if (status == TROUPE_OK)
        status = check_rows(infer, tensor, troupe_op_input_find(infer->schema, "indices"));
    if (status != TROUPE_OK || infer->input_shapes[tensor].rank < 0)
        return status;
    struct troupe_shape row = infer->input_shapes[tensor];
    row.rank--;
    memmove(row.dims, row.dims + 1, sizeof(int64_t) * (size_t)row.rank);
    if (troupe_shape_merge(&shape, &row, &merged) == TROUPE_OK)
        return TROUPE_OK;
    char wanted[TROUPE_SHAPE_TEXT_MAX], given[TROUPE_SHAPE_TEXT_MAX];
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                              "the rows of \"tensor\" have shape %s: \"element_shape\" wants %s",
                              troupe_shape_print(&row, given), troupe_shape_print(&shape, wanted));
}

/* Checks that lengths, where they are known, are 0 or more and sum to the rows of an input. */
static enum troupe_status check_lengths(const struct troupe_infer *infer, int input, int lengths)
{
    const struct troupe_tensor *value = infer->input_values[lengths];
    const struct troupe_shape *rows = &infer->input_shapes[input];
    int64_t sum = 0;
    for (int64_t i = 0; value && i < troupe_tensor_elements(value); i++) {
        int64_t length = troupe_tensor_int(value, i);
        if (length < 0)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "\"lengths\" has %lld at %lld: wants 0 or more",
                                      (long long)length, (long long)i);
        if (__builtin_add_overflow(sum, length, &sum))
            sum = INT64_MAX;
    }
    if (value && rows->rank > 0 && rows->dims[0] >= 0 && sum != rows->dims[0])
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "\"lengths\" sum to %lld: \"%s\" has %lld rows", (long long)sum,
                                  infer->schema->inputs[input].name, (long long)rows->dims[0]);
    return TROUPE_OK;
}

enum troupe_status troupe_infer_list_split(struct troupe_infer *infer)
{
    struct troupe_shape shape;
    int tensor = troupe_op_input_find(infer->schema, "tensor");
    scalar_outputs(infer);
    enum troupe_status status = check_inputs(infer, &shape);
    if (status == TROUPE_OK)
        status = check_rows(infer, tensor, -1);
    if (status == TROUPE_OK)
        status = check_lengths(infer, tensor, troupe_op_input_find(infer->schema, "lengths"));
    return status;
}

enum troupe_status troupe_infer_list_item(struct troupe_infer *infer)
{
    struct troupe_shape shape;
    enum troupe_status status = check_inputs(infer, &shape);
    scalar_outputs(infer);
    infer->output_shapes[infer->output_count - 1] = shape;
    return status;
}

enum troupe_status troupe_infer_list_stack(struct troupe_infer *infer)
{
    struct troupe_shape shape;
    enum troupe_status status = check_inputs(infer, &shape);
    infer->output_shapes[0] = behind(troupe_infer_int(infer, "num_elements"), &shape);
    return status;
}

/* The number of entries of a vector, -1 when it is not known. */
static int64_t vector_length(const struct troupe_infer *infer, const char *name)
{
    const struct troupe_shape *shape =
        &infer->input_shapes[troupe_op_input_find(infer->schema, name)];
    return shape->rank == 1 ? shape->dims[0] : TROUPE_DIM_UNKNOWN;
}

enum troupe_status troupe_infer_list_gather(struct troupe_infer *infer)
{
    struct troupe_shape shape;
    enum troupe_status status = check_inputs(infer, &shape);
    infer->output_shapes[0] = behind(vector_length(infer, "indices"), &shape);
    return status;
}

/* Rows of elements of a shape: their number is open. */
static void concat_outputs(struct troupe_infer *infer, const struct troupe_shape *shape)
{
    infer->output_shapes[0] = *shape;
    if (shape->rank > 0)
        infer->output_shapes[0].dims[0] = TROUPE_DIM_UNKNOWN;
    infer->output_shapes[1] = troupe_shape_of_rank(1);
}

enum troupe_status troupe_infer_list_concat(struct troupe_infer *infer)
{
    struct troupe_shape shape;
    enum troupe_status status = check_inputs(infer, &shape);
    if (status == TROUPE_OK && shape.rank == 0)
        status = troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                    "\"element_shape\" is a scalar's: wants elements with rows");
    concat_outputs(infer, &shape);
    return status;
}

enum troupe_status troupe_infer_list_shape(struct troupe_infer *infer)
{
    struct troupe_shape shape;
    return check_inputs(infer, &shape);
}

enum troupe_status troupe_infer_array_read(struct troupe_infer *infer)
{
    struct troupe_shape shape;
    return check_inputs(infer, &shape);
}

enum troupe_status troupe_infer_array_gather(struct troupe_infer *infer)
{
    struct troupe_shape shape;
    enum troupe_status status = check_inputs(infer, &shape);
    shape = troupe_infer_attr(infer, "element_shape")->value.shape;
    infer->output_shapes[0] = behind(vector_length(infer, "indices"), &shape);
    return status;
}

enum troupe_status troupe_infer_array_scatter(struct troupe_infer *infer)
{
    struct troupe_shape shape;
    enum troupe_status status = check_inputs(infer, &shape);
    scalar_outputs(infer);
    if (status != TROUPE_OK)
        return status;
    return check_rows(infer, troupe_op_input_find(infer->schema, "value"),
                      troupe_op_input_find(infer->schema, "indices"));
}

enum troupe_status troupe_infer_array_concat(struct troupe_infer *infer)
{
    struct troupe_shape shape;
    enum troupe_status status = check_inputs(infer, &shape);
    shape =
        behind(TROUPE_DIM_UNKNOWN, &troupe_infer_attr(infer, "element_shape_except0")->value.shape);
    concat_outputs(infer, &shape);
    return status;
}

enum troupe_status troupe_infer_array_split(struct troupe_infer *infer)
{
    struct troupe_shape shape;
    int value = troupe_op_input_find(infer->schema, "value");
    enum troupe_status status = check_inputs(infer, &shape);
    scalar_outputs(infer);
    if (status == TROUPE_OK)
        status = check_rows(infer, value, -1);
    if (status == TROUPE_OK)
        status = check_lengths(infer, value, troupe_op_input_find(infer->schema, "lengths"));
    return status;
}
