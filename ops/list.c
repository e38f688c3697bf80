/* Ops on lists of tensors, which are values: an op that changes a list makes another. Shape
 * functions are in list_infer.c. */
#include "ops/list.h"

#include "ops/families.h"
#include "ops/kernels/list.h"

#define TROUPE_SHAPE_TYPE  "shape_type: {int32, int64}"
#define TROUPE_NO_GRADIENT "gradients do not flow through lists of tensors"

#define TROUPE_LIST_KERNELS(X)                                                                     \
    X(empty)                                                                                       \
    X(reserve)                                                                                     \
    X(set_item)                                                                                    \
    X(get_item)                                                                                    \
    X(push_back)                                                                                   \
    X(pop_back)                                                                                    \
    X(length)                                                                                      \
    X(resize)                                                                                      \
    X(element_shape)                                                                               \
    X(stack)                                                                                       \
    X(gather)                                                                                      \
    X(concat)                                                                                      \
    X(from_tensor)                                                                                 \
    X(scatter)                                                                                     \
    X(scatter_into)                                                                                \
    X(split)

enum {
#define TROUPE_ROW(stem) KERNEL_##stem,
    TROUPE_LIST_KERNELS(TROUPE_ROW)
#undef TROUPE_ROW
};

static const struct troupe_kernel_row kernels[] = {
#define TROUPE_ROW(stem) [KERNEL_##stem] = {.device = "CPU", .compute = troupe_kernel_list_##stem},
    TROUPE_LIST_KERNELS(TROUPE_ROW)
#undef TROUPE_ROW
};

/* The fields of an op whose shape function and kernel are known by these names. */
#define TROUPE_DOES(shapes, stem)                                                                  \
    .infer = troupe_infer_##shapes, .kernels = &kernels[KERNEL_##stem], .kernel_count = 1

const struct troupe_op troupe_ops_list[] = {
    {.name = "EmptyTensorList",
     .doc = "A list without elements, to which max_num_elements (-1: any number) may be added.",
     .inputs = "element_shape: shape_type, max_num_elements: int32",
     .outputs = "handle: variant",
     .attrs = "element_dtype: " TROUPE_ELEMENT_DTYPES "; " TROUPE_SHAPE_TYPE,
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(list, empty)},
    {.name = "TensorListReserve",
     .doc = "A list of num_elements elements that are not set: one reads as zeros once its shape "
            "is known.",
     .inputs = "element_shape: shape_type, num_elements: int32",
     .outputs = "handle: variant",
     .attrs = "element_dtype: " TROUPE_ELEMENT_DTYPES "; " TROUPE_SHAPE_TYPE,
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(list, reserve)},
    {.name = "TensorListSetItem",
     .doc = "The list with another element at index.",
     .inputs = "input_handle: variant, index: int32, item: element_dtype",
     .outputs = "output_handle: variant",
     .attrs =
         "element_dtype: " TROUPE_ELEMENT_DTYPES "; resize_if_index_out_of_bounds: bool = false",
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(list, set_item)},
    {.name = "TensorListGetItem",
     .doc = "The element at index.",
     .inputs = "input_handle: variant, index: int32, element_shape: int32",
     .outputs = "item: element_dtype",
     .attrs = "element_dtype: " TROUPE_ELEMENT_DTYPES,
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(list_item, get_item)},
    {.name = "TensorListPushBack",
     .doc = "The list with one more element at its end.",
     .inputs = "input_handle: variant, tensor: element_dtype",
     .outputs = "output_handle: variant",
     .attrs = "element_dtype: " TROUPE_ELEMENT_DTYPES,
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(list, push_back)},
    {.name = "TensorListPopBack",
     .doc = "The list without its last element, and that element.",
     .inputs = "input_handle: variant, element_shape: int32",
     .outputs = "output_handle: variant, tensor: element_dtype",
     .attrs = "element_dtype: " TROUPE_ELEMENT_DTYPES,
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(list_item, pop_back)},
    {.name = "TensorListLength",
     .doc = "How many elements the list has.",
     .inputs = "input_handle: variant",
     .outputs = "length: int32",
     .attrs = "",
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(list, length)},
    {.name = "TensorListResize",
     .doc = "The list cut to size elements, or with elements added that are not set.",
     .inputs = "input_handle: variant, size: int32",
     .outputs = "output_handle: variant",
     .attrs = "",
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(list, resize)},
    {.name = "TensorListElementShape",
     .doc = "What the list knows of its elements' shape: sizes, -1 for an unknown one, or the "
            "scalar -1.",
     .inputs = "input_handle: variant",
     .outputs = "element_shape: shape_type",
     .attrs = TROUPE_SHAPE_TYPE,
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(list_shape, element_shape)},
    {.name = "TensorListStack",
     .doc = "The elements one behind the other along a new first dimension; zeros for those that "
            "are not set.",
     .inputs = "input_handle: variant, element_shape: int32",
     .outputs = "tensor: element_dtype",
     .attrs = "element_dtype: " TROUPE_ELEMENT_DTYPES "; num_elements: int >= -1 = -1",
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(list_stack, stack)},
    {.name = "TensorListGather",
     .doc = "The elements at the indices, stacked.",
     .inputs = "input_handle: variant, indices: int32, element_shape: int32",
     .outputs = "values: element_dtype",
     .attrs = "element_dtype: " TROUPE_ELEMENT_DTYPES,
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(list_gather, gather)},
    {.name = "TensorListConcatV2",
     .doc = "The elements one behind the other along their first dimension, and its size in each; "
            "leading_dims are the sizes of those that are not set.",
     .inputs = "input_handle: variant, element_shape: shape_type, leading_dims: int64",
     .outputs = "tensor: element_dtype, lengths: int64",
     .attrs = "element_dtype: " TROUPE_ELEMENT_DTYPES "; " TROUPE_SHAPE_TYPE,
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(list_concat, concat)},
    {.name = "TensorListFromTensor",
     .doc = "A list of the tensor's rows.",
     .inputs = "tensor: element_dtype, element_shape: shape_type",
     .outputs = "output_handle: variant",
     .attrs = "element_dtype: " TROUPE_ELEMENT_DTYPES "; " TROUPE_SHAPE_TYPE,
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(list_rows, from_tensor)},
    {.name = "TensorListScatterV2",
     .doc = "A list of num_elements elements (-1: as many as the indices want) with the tensor's "
            "rows at the indices.",
     .inputs =
         "tensor: element_dtype, indices: int32, element_shape: shape_type, num_elements: int32",
     .outputs = "output_handle: variant",
     .attrs = "element_dtype: " TROUPE_ELEMENT_DTYPES "; " TROUPE_SHAPE_TYPE,
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(list_rows, scatter)},
    {.name = "TensorListScatterIntoExistingList",
     .doc = "The list, longer when an index wants it, with the tensor's rows at the indices.",
     .inputs = "input_handle: variant, tensor: element_dtype, indices: int32",
     .outputs = "output_handle: variant",
     .attrs = "element_dtype: " TROUPE_ELEMENT_DTYPES,
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(list_rows, scatter_into)},
    {.name = "TensorListSplit",
     .doc = "A list of parts of the tensor, which have the given numbers of rows.",
     .inputs = "tensor: element_dtype, element_shape: shape_type, lengths: int64",
     .outputs = "output_handle: variant",
     .attrs = "element_dtype: " TROUPE_ELEMENT_DTYPES "; " TROUPE_SHAPE_TYPE,
     .no_gradient = TROUPE_NO_GRADIENT,
     TROUPE_DOES(list_split, split)},
};
const size_t troupe_ops_list_count = sizeof(troupe_ops_list) / sizeof(troupe_ops_list[0]);
