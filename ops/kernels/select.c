/* Choices between two tensors, element by element. Elements are moved, not looked at, and so are of
 * any dtype. Invariant: a string that is chosen is counted once more. */
#include "ops/kernels/elementwise.h"
#include "ops/kernels/math.h"
#include "ops/kernels/shapes.h"
#include "ops/tensor.h"

#define TYPE       uint8_t
#define NAME(stem) stem##_1
#include "ops/kernels/select.inc.h"
#undef TYPE
#undef NAME
#define TYPE       uint16_t
#define NAME(stem) stem##_2
#include "ops/kernels/select.inc.h"
#undef TYPE
#undef NAME
#define TYPE       uint32_t
#define NAME(stem) stem##_4
#include "ops/kernels/select.inc.h"
#undef TYPE
#undef NAME
#define TYPE       uint64_t
#define NAME(stem) stem##_8
#include "ops/kernels/select.inc.h"
#undef TYPE
#undef NAME

static troupe_run_fn *select_of(size_t size)
{
    switch (size) {
    case 1:
        return select_1;
    case 2:
        return select_2;
    case 4:
        return select_4;
    default:
        return select_8;
    }
}

static enum troupe_status choose(struct troupe_kernel_call *call, const struct troupe_shape *shapes)
{
    const struct troupe_tensor *inputs[] = {call->inputs[0], call->inputs[1], call->inputs[2]};
    enum troupe_status status = troupe_call_outputs(call);
    if (status != TROUPE_OK)
        return status;
    struct troupe_tensor *out = call->outputs[0];
    troupe_elementwise_apply(call->parallel, select_of(troupe_dtype_size(out->dtype)), TROUPE_GRAIN,
                             out, &(struct troupe_operands){3, inputs, shapes});
    troupe_tensor_share_elements(out);
    return TROUPE_OK;
}

/* A vector of conditions chooses rows. */
enum troupe_status troupe_kernel_select(struct troupe_kernel_call *call)
{
    struct troupe_shape shapes[3];
    for (int i = 0; i < 3; i++)
        shapes[i] = troupe_shape_of(call->inputs[i]);
    int rank = shapes[1].rank;
    if (shapes[0].rank == 1 && rank > 1) {
        shapes[0].rank = rank;
        for (int i = 1; i < rank; i++)
            shapes[0].dims[i] = 1;
    }
    return choose(call, shapes);
}

enum troupe_status troupe_kernel_select_v2(struct troupe_kernel_call *call)
{
    return choose(call, NULL);
}
