/* Gradients of reductions. In each comment x is the input, z the output and dz what flows into it.
 * Invariant: the gradient's shape is known before the run whenever the input's is. */
#include "ops/gradient.h"
#include "ops/reduce.h"

static struct troupe_value with_bool(struct troupe_gradient *gradient, const char *op,
                                     struct troupe_value a, struct troupe_value b, bool keeps)
{
    char name[] = "keep_dims";
    struct troupe_named_attr attrs[] = {{name, troupe_attr_bool(keeps)}};
    struct troupe_value inputs[] = {a, b};
    return troupe_gradient_add(gradient, op, inputs, 2, attrs, 1);
}

static struct troupe_value cast_to(struct troupe_gradient *gradient, struct troupe_value value,
                                   enum troupe_dtype dtype)
{
    char name[] = "DstT";
    struct troupe_named_attr attrs[] = {{name, troupe_attr_type(dtype)}};
    return troupe_gradient_add(gradient, "Cast", &value, 1, attrs, 1);
}

static bool keeps_dims(const struct troupe_gradient *gradient)
{
    return troupe_attr_find(gradient->attrs, gradient->attr_count, "keep_dims")->value.b;
}

/* Fills `kept` with x's shape in which the reduced axes are 1, when the set `axes` can have led
 * to z's shape. */
static bool shape_kept(const struct troupe_shape *x, const struct troupe_shape *z, unsigned axes,
                       int32_t *kept)
{
    int at = 0;
    for (int i = 0; i < x->rank; i++) {
        bool is_reduced = (axes & (1U << i)) != 0;
        if (x->dims[i] > INT32_MAX ||
            (!is_reduced && (at == z->rank || z->dims[at++] != x->dims[i])))
            return false;
        kept[i] = is_reduced ? 1 : (int32_t)x->dims[i];
    }
    return at == z->rank;
}

/* What z's shape would have been with keep_dims, when the two shapes alone can tell: of all sets
 * of axes those that lead to z's shape agree on it. */
static bool kept_by_shapes(const struct troupe_gradient *gradient, int32_t *kept)
{
    const struct troupe_shape *x = &gradient->input_shapes[0], *z = &gradient->output_shapes[0];
    int32_t other[TROUPE_RANK_MAX];
    bool found = false;
    if (!troupe_shape_is_known(x) || !troupe_shape_is_known(z))
        return false;
    for (unsigned axes = 0; axes < (1U << x->rank); axes++) {
        if (!shape_kept(x, z, axes, found ? other : kept))
            continue;
        for (int i = 0; found && i < x->rank; i++)
            if (other[i] != kept[i])
                return false;
        found = true;
    }
    return found;
}

/* The same in the run: hits has 1 for each reduced axis, kept is shape * (1 - hits) + hits. */
static struct troupe_value kept_by_axes(struct troupe_gradient *gradient)
{
    int32_t minus_one = -1;
    struct troupe_value shape = troupe_gradient_unary(gradient, "Shape", gradient->inputs[0]);
    struct troupe_value rank = troupe_gradient_unary(gradient, "Rank", gradient->inputs[0]);
    struct troupe_value one = troupe_gradient_scalar(gradient, TROUPE_INT32, 1);
    struct troupe_value zero = troupe_gradient_scalar(gradient, TROUPE_INT32, 0);
    struct troupe_value axes = gradient->inputs[1];
    if (gradient->input_dtypes[1] != TROUPE_INT32)
        axes = cast_to(gradient, axes, TROUPE_INT32);
    axes = troupe_gradient_binary(gradient, "Reshape", axes,
                                  troupe_gradient_ints(gradient, &minus_one, 1));
    /* A scalar x has no axes: modulo 1 then, which no axis is there to see. */
    struct troupe_value turn = troupe_gradient_binary(gradient, "Maximum", rank, one);
    axes = troupe_gradient_binary(gradient, "FloorMod", axes, turn);
    struct troupe_value inputs[] = {axes, rank, one, zero};
    struct troupe_value hits = with_bool(
        gradient, "Sum", troupe_gradient_add(gradient, "OneHot", inputs, 4, NULL, 0), zero, false);
    struct troupe_value left = troupe_gradient_binary(
        gradient, "Mul", shape, troupe_gradient_binary(gradient, "Sub", one, hits));
    return troupe_gradient_binary(gradient, "Add", left, hits);
}

/* z or dz with the reduced axes back, of size 1, so that it broadcasts against x. */
static struct troupe_value kept(struct troupe_gradient *gradient, struct troupe_value value)
{
    int32_t dims[TROUPE_RANK_MAX];
    if (keeps_dims(gradient) || gradient->output_shapes[0].rank == 0)
        return value;
    struct troupe_value shape =
        kept_by_shapes(gradient, dims)
            ? troupe_gradient_ints(gradient, dims, gradient->input_shapes[0].rank)
            : kept_by_axes(gradient);
    return troupe_gradient_binary(gradient, "Reshape", value, shape);
}

/* A value repeated to x's shape. */
static struct troupe_value spread(struct troupe_gradient *gradient, struct troupe_value value)
{
    return troupe_gradient_binary(gradient, "BroadcastTo", kept(gradient, value),
                                  troupe_gradient_shape(gradient, gradient->inputs[0]));
}

/* dx = dz, repeated. */
enum troupe_status troupe_gradient_of_sum(struct troupe_gradient *gradient)
{
    gradient->input_gradients[0] = spread(gradient, gradient->output_gradients[0]);
    return gradient->status;
}

/* How many elements of x are in one of z, as a scalar of their dtype. */
static struct troupe_value elements_each(struct troupe_gradient *gradient)
{
    enum troupe_dtype dtype = gradient->output_dtypes[0];
    int64_t from = troupe_shape_elements(&gradient->input_shapes[0]);
    int64_t to = troupe_shape_elements(&gradient->output_shapes[0]);
    if (from >= 0 && to > 0)
        return troupe_gradient_scalar(gradient, dtype, (double)from / (double)to);
    struct troupe_value all =
        cast_to(gradient, troupe_gradient_unary(gradient, "Size", gradient->inputs[0]), dtype);
    struct troupe_value left =
        cast_to(gradient, troupe_gradient_unary(gradient, "Size", gradient->outputs[0]), dtype);
    return troupe_gradient_binary(gradient, "RealDiv", all, left);
}

/* dx = dz / n, repeated. */
enum troupe_status troupe_gradient_of_mean(struct troupe_gradient *gradient)
{
    struct troupe_value share = troupe_gradient_binary(
        gradient, "RealDiv", gradient->output_gradients[0], elements_each(gradient));
    gradient->input_gradients[0] = spread(gradient, share);
    return gradient->status;
}

/* dx = dz / n where x is the extreme, n elements being so, else 0. */
enum troupe_status troupe_gradient_of_extreme(struct troupe_gradient *gradient)
{
    struct troupe_value x = gradient->inputs[0], z = kept(gradient, gradient->outputs[0]);
    struct troupe_value is_extreme = cast_to(
        gradient, troupe_gradient_binary(gradient, "Equal", x, z), gradient->output_dtypes[0]);
    struct troupe_value count = with_bool(gradient, "Sum", is_extreme, gradient->inputs[1], true);
    struct troupe_value share = troupe_gradient_binary(
        gradient, "RealDiv", kept(gradient, gradient->output_gradients[0]), count);
    gradient->input_gradients[0] = troupe_gradient_binary(gradient, "Mul", is_extreme, share);
    return gradient->status;
}
