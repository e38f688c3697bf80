/* Kernels whose values do not depend on their input's. Invariant: a one is a one in every dtype,
 * the 16-bit formats included. */
#include <string.h>

#include "ops/cast.h"
#include "ops/kernels/math.h"
#include "ops/kernels/region.h"

enum troupe_status troupe_kernel_zeros_like(struct troupe_kernel_call *call)
{
    struct troupe_tensor *out;
    enum troupe_status status = troupe_call_output_like(call, 0, 0, &out);
    /* All bits of a zero are 0, in every dtype. */
    if (status == TROUPE_OK && out->elements > 0)
        memset(troupe_tensor_data_mutable(out), 0, troupe_tensor_bytes(out));
    return status;
}

enum troupe_status troupe_kernel_ones_like(struct troupe_kernel_call *call)
{
    static const float one_float32 = 1;
    static const double one_float64 = 1;
    static const int64_t one_int64 = 1;
    static const int32_t one_int32 = 1;
    static const uint8_t one_byte = 1;
    const uint16_t one_float16 = troupe_float16_from_float(1);
    const uint16_t one_bfloat16 = troupe_bfloat16_from_float(1);
    const void *const ones[TROUPE_DTYPE_COUNT] = {
        [TROUPE_FLOAT32] = &one_float32, [TROUPE_FLOAT64] = &one_float64,
        [TROUPE_INT32] = &one_int32,     [TROUPE_INT64] = &one_int64,
        [TROUPE_UINT8] = &one_byte,      [TROUPE_BOOL] = &one_byte,
        [TROUPE_FLOAT16] = &one_float16, [TROUPE_BFLOAT16] = &one_bfloat16,
    };
    struct troupe_tensor *out;
    enum troupe_status status = troupe_call_output_like(call, 0, 0, &out);
    if (status == TROUPE_OK && out->elements > 0)
        troupe_region_fill(call->parallel, out->elements, troupe_dtype_size(out->dtype),
                           troupe_tensor_data_mutable(out), ones[out->dtype]);
    return status;
}
