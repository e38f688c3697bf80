/* Ops on arrays of tensors: state of one step, which its handle keeps alive. An op that takes
 * "flow_in" comes after the op that made it, and so reads what was written before. Shape functions
 * are in list_infer.c. */
#include "ops/kernels/tensor_array.h"
#include "ops/families.h"
#include "ops/list.h"

#define TROUPE_NO_GRADIENT "gradients do not flow through arrays of tensors"

#define TROUPE_ARRAY_KERNELS(X)                                                                    \
    X(create)                                                                                      \
    X(write)                                                                                       \
    X(read)                                                                                        \
    X(gather)                                                                                      \
    X(scatter)                                                                                     \
    X(concat)                                                                                      \
    X(split)                                                                                       \
    X(size)                                                                                        \
    X(close)

enum {
#define TROUPE_ROW(stem) KERNEL_##stem,
    TROUPE_ARRAY_KERNELS(TROUPE_ROW)
#undef TROUPE_ROW
};

static const struct troupe_kernel_row kernels[] = {
#define TROUPE_ROW(stem) [KERNEL_##stem] = {.device = "CPU", .compute = troupe_kernel_array_##stem},
    TROUPE_ARRAY_KERNELS(TROUPE_ROW)
#undef TROUPE_ROW
};

/* The fields of an op whose shape function and kernel are known by these names. */
#define TROUPE_DOES(shapes, stem)                                                                  \
    .infer = troupe_infer_##shapes, .kernels = &kernels[KERNEL_##stem], .kernel_count = 1

const struct troupe_op troupe_ops_tensor_array[] = {
    {.name = "TensorArrayV3",
     .doc = "An array of size elements that are not set, for this step; flow orders what is done "
            "to it.",
     .inputs = "size: int32",
     .outputs = "handle: resource, flow: float32",
     .attrs = "dtype: " TROUPE_ELEMENT_DTYPES
              "; element_shape: shape = ?; dynamic_size: bool = false; clear_after_read: bool = "
              "true; identical_element_shapes: bool = false; tensor_array_name: string = ''",
     .flags = TROUPE_OP_STATEFUL,
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(list, create)},
    {.name = "TensorArrayWriteV3",
     .doc = "Sets the element at index, once.",
     .inputs = "handle: resource, index: int32, value: T, flow_in: float32",
     .outputs = "flow_out: float32",
     .attrs = "T: " TROUPE_ELEMENT_DTYPES,
     .flags = TROUPE_OP_STATEFUL,
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(list, write)},
    {.name = "TensorArrayReadV3",
     .doc = "The element at index, which is gone afterwards when the array has clear_after_read.",
     .inputs = "handle: resource, index: int32, flow_in: float32",
     .outputs = "value: dtype",
     .attrs = "dtype: " TROUPE_ELEMENT_DTYPES,
     .flags = TROUPE_OP_STATEFUL,
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(array_read, read)},
    {.name = "TensorArrayGatherV3",
     .doc = "Reads the elements at the indices, stacked.",
     .inputs = "handle: resource, indices: int32, flow_in: float32",
     .outputs = "value: dtype",
     .attrs = "dtype: " TROUPE_ELEMENT_DTYPES "; element_shape: shape = ?",
     .flags = TROUPE_OP_STATEFUL,
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(array_gather, gather)},
    {.name = "TensorArrayScatterV3",
     .doc = "Writes the rows of value at the indices.",
     .inputs = "handle: resource, indices: int32, value: T, flow_in: float32",
     .outputs = "flow_out: float32",
     .attrs = "T: " TROUPE_ELEMENT_DTYPES,
     .flags = TROUPE_OP_STATEFUL,
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(array_scatter, scatter)},
    {.name = "TensorArrayConcatV3",
     .doc = "Reads all elements, one behind the other along their first dimension, and its size in "
            "each.",
     .inputs = "handle: resource, flow_in: float32",
     .outputs = "value: dtype, lengths: int64",
     .attrs = "dtype: " TROUPE_ELEMENT_DTYPES "; element_shape_except0: shape = ?",
     .flags = TROUPE_OP_STATEFUL,
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(array_concat, concat)},
    {.name = "TensorArraySplitV3",
     .doc = "Writes parts of value, which have the given numbers of rows, as the elements.",
     .inputs = "handle: resource, value: T, lengths: int64, flow_in: float32",
     .outputs = "flow_out: float32",
     .attrs = "T: " TROUPE_ELEMENT_DTYPES,
     .flags = TROUPE_OP_STATEFUL,
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(array_split, split)},
    {.name = "TensorArraySizeV3",
     .doc = "How many elements the array has.",
     .inputs = "handle: resource, flow_in: float32",
     .outputs = "size: int32",
     .attrs = "",
     .flags = TROUPE_OP_STATEFUL,
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(list, size)},
    {.name = "TensorArrayCloseV3",
     .doc = "Drops the array's elements: any later use is an error.",
     .inputs = "handle: resource",
     .outputs = "",
     .attrs = "",
     .flags = TROUPE_OP_STATEFUL,
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(list, close)},
};
const size_t troupe_ops_tensor_array_count =
    sizeof(troupe_ops_tensor_array) / sizeof(troupe_ops_tensor_array[0]);
