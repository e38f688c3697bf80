/* Reductions along axes. */
#include "ops/reduce.h"

#include "ops/families.h"
#include "ops/kernels/reduce.h"

#define TROUPE_FLOATS (TROUPE_DTYPE_BIT(TROUPE_FLOAT32) | TROUPE_DTYPE_BIT(TROUPE_FLOAT64))
#define TROUPE_SIGNED                                                                              \
    (TROUPE_FLOATS | TROUPE_DTYPE_BIT(TROUPE_INT32) | TROUPE_DTYPE_BIT(TROUPE_INT64))
#define TROUPE_NUMBERS (TROUPE_SIGNED | TROUPE_DTYPE_BIT(TROUPE_UINT8))

static const struct troupe_kernel_row sum_row = {
    .device = "CPU", .type_attr = "T", .dtypes = TROUPE_NUMBERS, .compute = troupe_kernel_sum};
static const struct troupe_kernel_row mean_row = {
    .device = "CPU", .type_attr = "T", .dtypes = TROUPE_SIGNED, .compute = troupe_kernel_mean};
static const struct troupe_kernel_row prod_row = {
    .device = "CPU", .type_attr = "T", .dtypes = TROUPE_NUMBERS, .compute = troupe_kernel_prod};
static const struct troupe_kernel_row max_row = {
    .device = "CPU", .type_attr = "T", .dtypes = TROUPE_NUMBERS, .compute = troupe_kernel_max};
static const struct troupe_kernel_row min_row = {
    .device = "CPU", .type_attr = "T", .dtypes = TROUPE_NUMBERS, .compute = troupe_kernel_min};
static const struct troupe_kernel_row arg_max_row = {
    .device = "CPU", .type_attr = "T", .dtypes = TROUPE_NUMBERS, .compute = troupe_kernel_arg_max};
static const struct troupe_kernel_row arg_min_row = {
    .device = "CPU", .type_attr = "T", .dtypes = TROUPE_NUMBERS, .compute = troupe_kernel_arg_min};
static const struct troupe_kernel_row all_row = {.device = "CPU", .compute = troupe_kernel_all};
static const struct troupe_kernel_row any_row = {.device = "CPU", .compute = troupe_kernel_any};

/* The fields that reductions of numbers, of bools, and searches have in common. */
#define TROUPE_AXES "keep_dims: bool = false; Tidx: {int32, int64} = int32"
#define TROUPE_REDUCES(row)                                                                        \
    .inputs = "input: T, reduction_indices: Tidx", .outputs = "output: T",                         \
    .infer = troupe_infer_reduce, .kernels = &row, .kernel_count = 1
#define TROUPE_REDUCES_BOOLS(row)                                                                  \
    .inputs = "input: bool, reduction_indices: Tidx", .outputs = "output: bool",                   \
    .attrs = TROUPE_AXES, .infer = troupe_infer_reduce, .kernels = &row, .kernel_count = 1,        \
    .no_gradient = "a bool has no gradient"
#define TROUPE_SEARCHES(row)                                                                       \
    .inputs = "input: T, dimension: Tidx", .outputs = "output: output_type",                       \
    .attrs = "T: {float32, float64, int32, int64, uint8}; Tidx: {int32, int64} = int32; "          \
             "output_type: {int32, int64} = int64",                                                \
    .infer = troupe_infer_arg, .kernels = &row, .kernel_count = 1,                                 \
    .no_gradient = "an index does not change smoothly"

const struct troupe_op troupe_ops_reduce[] = {
    {.name = "Sum",
     .doc = "The sum along the given axes; 0 of no elements.",
     .attrs = "T: {float32, float64, int32, int64, uint8}; " TROUPE_AXES,
     .gradient = troupe_gradient_of_sum,
     TROUPE_REDUCES(sum_row)},
    {.name = "Mean",
     .doc = "The mean along the given axes, rounded towards 0 for integers; NaN of no floats.",
     .attrs = "T: {float32, float64, int32, int64}; " TROUPE_AXES,
     .gradient = troupe_gradient_of_mean,
     TROUPE_REDUCES(mean_row)},
    {.name = "Prod",
     .doc = "The product along the given axes; 1 of no elements.",
     .attrs = "T: {float32, float64, int32, int64, uint8}; " TROUPE_AXES,
     .no_gradient = "products have none yet: Exp of the Sum of Log has, for positive numbers",
     TROUPE_REDUCES(prod_row)},
    {.name = "Max",
     .doc = "The largest element along the given axes, NaN if there is one; the least number of "
            "no elements.",
     .attrs = "T: {float32, float64, int32, int64, uint8}; " TROUPE_AXES,
     .gradient = troupe_gradient_of_extreme,
     TROUPE_REDUCES(max_row)},
    {.name = "Min",
     .doc = "The least element along the given axes, NaN if there is one; the largest number of "
            "no elements.",
     .attrs = "T: {float32, float64, int32, int64, uint8}; " TROUPE_AXES,
     .gradient = troupe_gradient_of_extreme,
     TROUPE_REDUCES(min_row)},
    {.name = "All",
     .doc = "Whether all elements along the given axes are true.",
     TROUPE_REDUCES_BOOLS(all_row)},
    {.name = "Any",
     .doc = "Whether any element along the given axes is true.",
     TROUPE_REDUCES_BOOLS(any_row)},
    {.name = "ArgMax",
     .doc = "Where along a dimension the largest element is, the first of equal ones.",
     TROUPE_SEARCHES(arg_max_row)},
    {.name = "ArgMin",
     .doc = "Where along a dimension the least element is, the first of equal ones.",
     TROUPE_SEARCHES(arg_min_row)},
};
const size_t troupe_ops_reduce_count = sizeof(troupe_ops_reduce) / sizeof(troupe_ops_reduce[0]);
