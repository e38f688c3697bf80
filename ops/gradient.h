/* How an op's gradient writes itself as graph nodes. graph/ implements the builder. */
#ifndef TROUPE_OPS_GRADIENT_H
#define TROUPE_OPS_GRADIENT_H

#include <stdbool.h>
#include <stdint.h>

#include "ops/op.h"

/* Output `port` of node number `node`; node -1: no value (a zero gradient, or none at all). */
struct troupe_value {
    int node;
    int port;
};
#define TROUPE_VALUE_NONE ((struct troupe_value){-1, 0})
bool troupe_value_is_none(struct troupe_value value);

struct troupe_gradient {
    /* The node that is differentiated. */
    const struct troupe_op_schema *schema;
    const struct troupe_named_attr *attrs;
    int attr_count;
    int input_count;
    const struct troupe_value *inputs;
    const enum troupe_dtype *input_dtypes;
    const struct troupe_shape *input_shapes;
    int output_count;
    const struct troupe_value *outputs;
    const enum troupe_dtype *output_dtypes;
    const struct troupe_shape *output_shapes;
    /* The loss's gradient with respect to each output; NONE where nothing flows. */
    const struct troupe_value *output_gradients;
    /* To be set: the loss's gradient with respect to each input; they start as NONE. */
    struct troupe_value *input_gradients;
    /* The first failure of troupe_gradient_add; later additions do nothing. */
    enum troupe_status status;
    /* Required; of graph/: adds a node, infers its dtypes and shapes, returns its output 0. */
    struct troupe_value (*add)(struct troupe_gradient *self, const char *op,
                               const struct troupe_value *inputs, int input_count,
                               struct troupe_named_attr *attrs, int attr_count);
    /* Required; of graph/: the dtype and shape of any value, new ones included. */
    enum troupe_dtype (*dtype_of)(const struct troupe_gradient *self, struct troupe_value value);
    struct troupe_shape (*shape_of)(const struct troupe_gradient *self, struct troupe_value value);
    void *context; /* of graph/ */
};

/* Adds a node. The attrs' values are moved into it (names are copied). Output n > 0 of the new
 * node is {result.node, n}. */
struct troupe_value troupe_gradient_add(struct troupe_gradient *gradient, const char *op,
                                        const struct troupe_value *inputs, int input_count,
                                        struct troupe_named_attr *attrs, int attr_count);

/* Shorthands over troupe_gradient_add (ops/gradient.c). */
struct troupe_value troupe_gradient_unary(struct troupe_gradient *gradient, const char *op,
                                          struct troupe_value x);
struct troupe_value troupe_gradient_binary(struct troupe_gradient *gradient, const char *op,
                                           struct troupe_value a, struct troupe_value b);
/* A Const: a scalar of the given dtype, or an int32 vector. */
struct troupe_value troupe_gradient_scalar(struct troupe_gradient *gradient,
                                           enum troupe_dtype dtype, double value);
struct troupe_value troupe_gradient_ints(struct troupe_gradient *gradient, const int32_t *values,
                                         int count);
/* Shape of a value as an int32 vector: a Const where it is known, else a Shape node. */
struct troupe_value troupe_gradient_shape(struct troupe_gradient *gradient,
                                          struct troupe_value value);
/* Sums `gradient_value` over the axes along which `input` was broadcast and reshapes it to
 * input's shape: BroadcastGradientArgs where the shapes are not known. `peer` is the other
 * input of the broadcasting op. */
struct troupe_value troupe_gradient_unbroadcast(struct troupe_gradient *gradient,
                                                struct troupe_value gradient_value,
                                                struct troupe_value input,
                                                struct troupe_value peer);

#endif
