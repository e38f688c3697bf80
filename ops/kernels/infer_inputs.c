/* Inputs that say shapes and axes. Invariant: what is not known before a run is left open, never
 * guessed; in a run everything is known. */
#include "ops/kernels/infer_inputs.h"

#include "ops/kernels/shapes.h"

enum troupe_status troupe_infer_read_ints(const struct troupe_infer *infer, int input,
                                          const char *name, struct troupe_infer_ints *out)
{
    const struct troupe_shape *shape = &infer->input_shapes[input];
    const struct troupe_tensor *value = infer->input_values[input];
    char text[TROUPE_SHAPE_TEXT_MAX];
    struct troupe_infer_ints ints = {.count = -1};
    if (shape->rank >= 0 && shape->rank != 1)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "\"%s\" wants a vector, got shape %s",
                                  name, troupe_shape_print(shape, text));
    if (shape->rank == 1 && shape->dims[0] > TROUPE_RANK_MAX)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "\"%s\" has %lld entries: wants at most %d", name,
                                  (long long)shape->dims[0], TROUPE_RANK_MAX);
    if (shape->rank == 1 && shape->dims[0] >= 0)
        ints.count = (int)shape->dims[0];
    if (value) {
        enum troupe_status status = troupe_tensor_ints(value, name, ints.values, &ints.count);
        if (status != TROUPE_OK)
            return status;
        ints.known = true;
    }
    *out = ints;
    return TROUPE_OK;
}

enum troupe_status troupe_infer_want_scalar(const struct troupe_infer *infer, int input,
                                            const char *name)
{
    const struct troupe_shape *shape = &infer->input_shapes[input];
    char text[TROUPE_SHAPE_TEXT_MAX];
    if (shape->rank <= 0)
        return TROUPE_OK;
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "\"%s\" wants a scalar, got shape %s", name,
                              troupe_shape_print(shape, text));
}

enum troupe_status troupe_infer_read_int(const struct troupe_infer *infer, int input,
                                         const char *name, int64_t *value, bool *known)
{
    const struct troupe_shape *shape = &infer->input_shapes[input];
    const struct troupe_tensor *tensor = infer->input_values[input];
    char text[TROUPE_SHAPE_TEXT_MAX];
    /* A vector of one entry counts, as it does in TensorFlow. */
    if (shape->rank > 1 || (shape->rank == 1 && shape->dims[0] >= 0 && shape->dims[0] != 1))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "\"%s\" wants one number, got shape %s",
                                  name, troupe_shape_print(shape, text));
    *known = tensor != NULL;
    *value = tensor ? troupe_tensor_int(tensor, 0) : 0;
    return TROUPE_OK;
}

struct troupe_shape troupe_shape_of_rank(int rank)
{
    struct troupe_shape shape = troupe_shape_unknown();
    if (rank < 0)
        return shape;
    shape.rank = rank;
    for (int i = 0; i < rank; i++)
        shape.dims[i] = TROUPE_DIM_UNKNOWN;
    return shape;
}
