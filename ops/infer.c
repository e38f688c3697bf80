/* Shape functions that many ops share, and reads of attrs. Invariant: an attr that the schema
 * declares is there when a shape function runs; one that is not is a defect, and ends the run. */
#include <stdlib.h>

#include "ops/op.h"
#include "troupe/log.h"

const struct troupe_attr *troupe_infer_attr(const struct troupe_infer *infer, const char *name)
{
    const struct troupe_attr *attr = troupe_attr_find(infer->attrs, infer->attr_count, name);
    if (!attr) {
        troupe_log(TROUPE_LOG_ERROR,
                   "op %s: the shape function wants an attr \"%s\" that is not there",
                   infer->schema ? infer->schema->op->name : "?", name);
        abort();
    }
    return attr;
}

int64_t troupe_infer_int(const struct troupe_infer *infer, const char *name)
{
    return troupe_infer_attr(infer, name)->value.i;
}

bool troupe_infer_bool(const struct troupe_infer *infer, const char *name)
{
    return troupe_infer_attr(infer, name)->value.b;
}

enum troupe_status troupe_infer_unchanged(struct troupe_infer *infer)
{
    for (int i = 0; i < infer->output_count; i++)
        infer->output_shapes[i] = infer->input_shapes[0];
    return TROUPE_OK;
}

enum troupe_status troupe_infer_broadcast(struct troupe_infer *infer)
{
    struct troupe_shape shape;
    enum troupe_status status =
        troupe_shape_broadcast(&infer->input_shapes[0], &infer->input_shapes[1], &shape);
    for (int i = 0; status == TROUPE_OK && i < infer->output_count; i++)
        infer->output_shapes[i] = shape;
    return status;
}

enum troupe_status troupe_infer_scalar(struct troupe_infer *infer)
{
    for (int i = 0; i < infer->output_count; i++)
        infer->output_shapes[i] = troupe_shape_scalar();
    return TROUPE_OK;
}

enum troupe_status troupe_infer_unknown(struct troupe_infer *infer)
{
    for (int i = 0; i < infer->output_count; i++)
        infer->output_shapes[i] = troupe_shape_unknown();
    return TROUPE_OK;
}

enum troupe_status troupe_infer_none(struct troupe_infer *infer)
{
    if (infer->output_count != 0)
        return troupe_status_fail(TROUPE_INTERNAL, "an op with outputs needs a shape function");
    return TROUPE_OK;
}
