/* Shape functions of the family "list", and what they share with the family "tensor_array". Private
 * to ops/. */
#ifndef TROUPE_OPS_LIST_H
#define TROUPE_OPS_LIST_H

#include "ops/op.h"

/* The dtypes of elements: all but resource, so that no state can come to hold itself. */
#define TROUPE_ELEMENT_DTYPES                                                                      \
    "{float32, float64, int32, uint8, string, int64, bool, bfloat16, float16, variant}"

troupe_infer_fn troupe_infer_list;          /* handles, flows and counts alone */
troupe_infer_fn troupe_infer_list_rows;     /* handles, from the rows of "tensor" */
troupe_infer_fn troupe_infer_list_split;    /* handles, from parts of "tensor" */
troupe_infer_fn troupe_infer_list_item;     /* the last output is an element */
troupe_infer_fn troupe_infer_list_stack;    /* "num_elements" elements */
troupe_infer_fn troupe_infer_list_gather;   /* "indices" elements */
troupe_infer_fn troupe_infer_list_concat;   /* the elements' rows, and how many each has */
troupe_infer_fn troupe_infer_list_shape;    /* an element shape as a tensor */
troupe_infer_fn troupe_infer_array_read;    /* one element */
troupe_infer_fn troupe_infer_array_gather;  /* "indices" elements */
troupe_infer_fn troupe_infer_array_scatter; /* "value" has a row for each of "indices" */
troupe_infer_fn troupe_infer_array_concat;  /* the elements' rows, and how many each has */
troupe_infer_fn troupe_infer_array_split;   /* "value" has as many rows as "lengths" say */

/* Reads an element shape from a tensor of int32 or int64: a vector of sizes, -1 where one is not
 * known, or the scalar -1 when nothing is. INVALID_ARGUMENT says what is wrong. */
TROUPE_MUST_USE enum troupe_status troupe_element_shape_read(const struct troupe_tensor *tensor,
                                                             struct troupe_shape *out);
/* The number of an input by its name, -1 when the op has none of that name. */
int troupe_op_input_find(const struct troupe_op_schema *schema, const char *name);

#endif
