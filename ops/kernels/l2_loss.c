/* Half a sum of squares. Invariant: the tensor is cut into parts that depend on its size alone,
 * each is summed in order and so are the parts, so that the result does not depend on the workers.
 */
#include "ops/kernels/elementwise.h"
#include "ops/kernels/math.h"

#define PARTS_MAX 64
#define PART_MIN  16384

struct squaring {
    const void *in;
    enum troupe_dtype dtype;
    int64_t elements, part;
    double sums[PARTS_MAX];
};

static void square_parts(void *context, int64_t begin, int64_t end)
{
    struct squaring *squaring = context;
    for (int64_t part = begin; part < end; part++) {
        int64_t first = part * squaring->part, last = first + squaring->part;
        const float *singles = squaring->in;
        const double *doubles = squaring->in;
        double sum = 0;
        if (last > squaring->elements)
            last = squaring->elements;
        for (int64_t i = first; i < last; i++) {
            double x = squaring->dtype == TROUPE_FLOAT32 ? (double)singles[i] : doubles[i];
            sum += x * x;
        }
        squaring->sums[part] = sum;
    }
}

enum troupe_status troupe_kernel_l2_loss(struct troupe_kernel_call *call)
{
    const struct troupe_tensor *in = call->inputs[0];
    struct troupe_tensor *out;
    enum troupe_status status = troupe_call_output(call, 0, 0, NULL, &out);
    if (status != TROUPE_OK)
        return status;
    struct squaring squaring = {.in = troupe_tensor_data(in),
                                .dtype = in->dtype,
                                .elements = in->elements,
                                .part = in->elements / PARTS_MAX + 1};
    if (squaring.part < PART_MIN)
        squaring.part = PART_MIN;
    int64_t parts = (in->elements + squaring.part - 1) / squaring.part;
    troupe_parallel_for(call->parallel, parts, 1, square_parts, &squaring);
    double sum = 0;
    for (int64_t i = 0; i < parts; i++)
        sum += squaring.sums[i];
    if (in->dtype == TROUPE_FLOAT32)
        *(float *)troupe_tensor_data_mutable(out) = (float)(sum / 2);
    else
        *(double *)troupe_tensor_data_mutable(out) = sum / 2;
    return TROUPE_OK;
}
