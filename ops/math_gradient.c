/* Gradients of element-wise ops, as nodes. Invariant: what flows to an input has its shape: what
 * was broadcast on the way forward is summed on the way back. */
#include <math.h>

#include "ops/gradient.h"
#include "ops/math.h"

#include "ops/gradient.h"

/* ---- Shorthands ---- */

static struct troupe_value mul(struct troupe_gradient *gradient, struct troupe_value a,
                               struct troupe_value b)
{
    return troupe_gradient_binary(gradient, "Mul", a, b);
}

/* A number of the dtype that flows. */
static struct troupe_value number(struct troupe_gradient *gradient, double value)
{
    return troupe_gradient_scalar(gradient, gradient->output_dtypes[0], value);
}

/* t where the condition holds, else e. */
static struct troupe_value select(struct troupe_gradient *gradient, struct troupe_value condition,
                                  struct troupe_value t, struct troupe_value e)
{
    struct troupe_value inputs[] = {condition, t, e};
    return troupe_gradient_add(gradient, "SelectV2", inputs, 3, NULL, 0);
}

static enum troupe_status flows(struct troupe_gradient *gradient, struct troupe_value to_x)
{
    gradient->input_gradients[0] = to_x;
    return gradient->status;
}

/* To two inputs that were broadcast. */
static enum troupe_status flows_to_both(struct troupe_gradient *gradient, struct troupe_value to_x,
                                        struct troupe_value to_y)
{
    struct troupe_value x = gradient->inputs[0], y = gradient->inputs[1];
    gradient->input_gradients[0] = troupe_gradient_unbroadcast(gradient, to_x, x, y);
    gradient->input_gradients[1] = troupe_gradient_unbroadcast(gradient, to_y, y, x);
    return gradient->status;
}

/* ---- One input: x in, y out, dy flows ---- */

enum troupe_status troupe_gradient_of_neg(struct troupe_gradient *gradient)
{
    return flows(gradient, troupe_gradient_unary(gradient, "Neg", gradient->output_gradients[0]));
}

enum troupe_status troupe_gradient_of_abs(struct troupe_gradient *gradient)
{
    struct troupe_value sign = troupe_gradient_unary(gradient, "Sign", gradient->inputs[0]);
    return flows(gradient, mul(gradient, gradient->output_gradients[0], sign));
}

enum troupe_status troupe_gradient_of_square(struct troupe_gradient *gradient)
{
    struct troupe_value twice = mul(gradient, gradient->inputs[0], number(gradient, 2));
    return flows(gradient, mul(gradient, gradient->output_gradients[0], twice));
}

/* dy / 2y */
enum troupe_status troupe_gradient_of_sqrt(struct troupe_gradient *gradient)
{
    struct troupe_value half = mul(gradient, gradient->output_gradients[0], number(gradient, 0.5));
    return flows(gradient, troupe_gradient_binary(gradient, "RealDiv", half, gradient->outputs[0]));
}

/* -dy / 2 * y^3 */
enum troupe_status troupe_gradient_of_rsqrt(struct troupe_gradient *gradient)
{
    struct troupe_value y = gradient->outputs[0];
    struct troupe_value cube = mul(gradient, troupe_gradient_unary(gradient, "Square", y), y);
    struct troupe_value half = mul(gradient, gradient->output_gradients[0], number(gradient, -0.5));
    return flows(gradient, mul(gradient, half, cube));
}

enum troupe_status troupe_gradient_of_exp(struct troupe_gradient *gradient)
{
    return flows(gradient, mul(gradient, gradient->output_gradients[0], gradient->outputs[0]));
}

enum troupe_status troupe_gradient_of_log(struct troupe_gradient *gradient)
{
    return flows(gradient,
                 troupe_gradient_binary(gradient, "RealDiv", gradient->output_gradients[0],
                                        gradient->inputs[0]));
}

enum troupe_status troupe_gradient_of_log1p(struct troupe_gradient *gradient)
{
    struct troupe_value sum =
        troupe_gradient_binary(gradient, "Add", gradient->inputs[0], number(gradient, 1));
    return flows(gradient,
                 troupe_gradient_binary(gradient, "RealDiv", gradient->output_gradients[0], sum));
}

/* -dy * y^2 */
enum troupe_status troupe_gradient_of_reciprocal(struct troupe_gradient *gradient)
{
    struct troupe_value square = troupe_gradient_unary(gradient, "Square", gradient->outputs[0]);
    struct troupe_value back =
        troupe_gradient_unary(gradient, "Neg", gradient->output_gradients[0]);
    return flows(gradient, mul(gradient, back, square));
}

enum troupe_status troupe_gradient_of_sin(struct troupe_gradient *gradient)
{
    struct troupe_value cosine = troupe_gradient_unary(gradient, "Cos", gradient->inputs[0]);
    return flows(gradient, mul(gradient, gradient->output_gradients[0], cosine));
}

enum troupe_status troupe_gradient_of_cos(struct troupe_gradient *gradient)
{
    struct troupe_value sine = troupe_gradient_unary(gradient, "Sin", gradient->inputs[0]);
    struct troupe_value back =
        troupe_gradient_unary(gradient, "Neg", gradient->output_gradients[0]);
    return flows(gradient, mul(gradient, back, sine));
}

enum troupe_status troupe_gradient_of_tanh(struct troupe_gradient *gradient)
{
    return flows(gradient, troupe_gradient_binary(gradient, "TanhGrad", gradient->outputs[0],
                                                  gradient->output_gradients[0]));
}

enum troupe_status troupe_gradient_of_sigmoid(struct troupe_gradient *gradient)
{
    return flows(gradient, troupe_gradient_binary(gradient, "SigmoidGrad", gradient->outputs[0],
                                                  gradient->output_gradients[0]));
}

/* dy * 2 / sqrt(pi) * exp(-x^2) */
enum troupe_status troupe_gradient_of_erf(struct troupe_gradient *gradient)
{
    struct troupe_value square = troupe_gradient_unary(gradient, "Square", gradient->inputs[0]);
    struct troupe_value bell =
        troupe_gradient_unary(gradient, "Exp", troupe_gradient_unary(gradient, "Neg", square));
    struct troupe_value scaled =
        mul(gradient, gradient->output_gradients[0], number(gradient, M_2_SQRTPI));
    return flows(gradient, mul(gradient, scaled, bell));
}

/* ---- Two inputs: x and y in, z out, dz flows ---- */

enum troupe_status troupe_gradient_of_add(struct troupe_gradient *gradient)
{
    struct troupe_value dz = gradient->output_gradients[0];
    return flows_to_both(gradient, dz, dz);
}

enum troupe_status troupe_gradient_of_sub(struct troupe_gradient *gradient)
{
    struct troupe_value dz = gradient->output_gradients[0];
    return flows_to_both(gradient, dz, troupe_gradient_unary(gradient, "Neg", dz));
}

enum troupe_status troupe_gradient_of_mul(struct troupe_gradient *gradient)
{
    struct troupe_value dz = gradient->output_gradients[0];
    return flows_to_both(gradient, mul(gradient, dz, gradient->inputs[1]),
                         mul(gradient, dz, gradient->inputs[0]));
}

/* dx = dz / y, dy = -dx * z: of floats, Div is RealDiv. */
enum troupe_status troupe_gradient_of_real_div(struct troupe_gradient *gradient)
{
    struct troupe_value to_x = troupe_gradient_binary(
        gradient, "RealDiv", gradient->output_gradients[0], gradient->inputs[1]);
    struct troupe_value to_y =
        mul(gradient, troupe_gradient_unary(gradient, "Neg", to_x), gradient->outputs[0]);
    return flows_to_both(gradient, to_x, to_y);
}

/* z = x - y * floor(x / y), and the floor is flat. */
enum troupe_status troupe_gradient_of_floor_mod(struct troupe_gradient *gradient)
{
    struct troupe_value dz = gradient->output_gradients[0];
    struct troupe_value floor =
        troupe_gradient_binary(gradient, "FloorDiv", gradient->inputs[0], gradient->inputs[1]);
    struct troupe_value back = troupe_gradient_unary(gradient, "Neg", dz);
    return flows_to_both(gradient, dz, mul(gradient, back, floor));
}

/* All flows to x where the comparison holds, equality included, else to y. */
static enum troupe_status flows_where(struct troupe_gradient *gradient, const char *comparison)
{
    struct troupe_value dz = gradient->output_gradients[0], zero = number(gradient, 0);
    struct troupe_value wins =
        troupe_gradient_binary(gradient, comparison, gradient->inputs[0], gradient->inputs[1]);
    return flows_to_both(gradient, select(gradient, wins, dz, zero),
                         select(gradient, wins, zero, dz));
}

enum troupe_status troupe_gradient_of_maximum(struct troupe_gradient *gradient)
{
    return flows_where(gradient, "GreaterEqual");
}

enum troupe_status troupe_gradient_of_minimum(struct troupe_gradient *gradient)
{
    return flows_where(gradient, "LessEqual");
}

/* dx = dz * y * x^(y - 1); dy = dz * z * log(x), and 0 where x has no logarithm. */
enum troupe_status troupe_gradient_of_pow(struct troupe_gradient *gradient)
{
    struct troupe_value x = gradient->inputs[0], y = gradient->inputs[1];
    struct troupe_value dz = gradient->output_gradients[0];
    struct troupe_value zero = number(gradient, 0), one = number(gradient, 1);
    struct troupe_value power =
        troupe_gradient_binary(gradient, "Pow", x, troupe_gradient_binary(gradient, "Sub", y, one));
    struct troupe_value to_x = mul(gradient, mul(gradient, dz, y), power);
    struct troupe_value is_positive = troupe_gradient_binary(gradient, "Greater", x, zero);
    struct troupe_value log =
        troupe_gradient_unary(gradient, "Log", select(gradient, is_positive, x, one));
    struct troupe_value to_y = mul(gradient, mul(gradient, dz, gradient->outputs[0]), log);
    return flows_to_both(gradient, to_x, to_y);
}

enum troupe_status troupe_gradient_of_squared_difference(struct troupe_gradient *gradient)
{
    struct troupe_value difference =
        troupe_gradient_binary(gradient, "Sub", gradient->inputs[0], gradient->inputs[1]);
    struct troupe_value twice = mul(gradient, gradient->output_gradients[0], number(gradient, 2));
    struct troupe_value to_x = mul(gradient, twice, difference);
    return flows_to_both(gradient, to_x, troupe_gradient_unary(gradient, "Neg", to_x));
}

/* z = dy * (1 - y^2) */
enum troupe_status troupe_gradient_of_tanh_grad(struct troupe_gradient *gradient)
{
    struct troupe_value y = gradient->inputs[0], dy = gradient->inputs[1];
    struct troupe_value dz = gradient->output_gradients[0];
    struct troupe_value twice = mul(gradient, mul(gradient, dz, dy), number(gradient, -2));
    gradient->input_gradients[0] = mul(gradient, twice, y);
    gradient->input_gradients[1] = troupe_gradient_binary(gradient, "TanhGrad", y, dz);
    return gradient->status;
}

/* z = dy * (y - y^2) */
enum troupe_status troupe_gradient_of_sigmoid_grad(struct troupe_gradient *gradient)
{
    struct troupe_value y = gradient->inputs[0], dy = gradient->inputs[1];
    struct troupe_value dz = gradient->output_gradients[0];
    struct troupe_value slope = troupe_gradient_binary(gradient, "Sub", number(gradient, 1),
                                                       mul(gradient, y, number(gradient, 2)));
    gradient->input_gradients[0] = mul(gradient, mul(gradient, dz, dy), slope);
    gradient->input_gradients[1] = troupe_gradient_binary(gradient, "SigmoidGrad", y, dz);
    return gradient->status;
}

/* ---- Others ---- */

enum troupe_status troupe_gradient_of_add_n(struct troupe_gradient *gradient)
{
    for (int i = 0; i < gradient->input_count; i++)
        gradient->input_gradients[i] = gradient->output_gradients[0];
    return TROUPE_OK;
}

enum troupe_status troupe_gradient_of_select(struct troupe_gradient *gradient)
{
    struct troupe_value flow = gradient->output_gradients[0];
    struct troupe_value zeros = troupe_gradient_unary(gradient, "ZerosLike", flow);
    struct troupe_value to_t[] = {gradient->inputs[0], flow, zeros};
    struct troupe_value to_e[] = {gradient->inputs[0], zeros, flow};
    gradient->input_gradients[1] = troupe_gradient_add(gradient, "Select", to_t, 3, NULL, 0);
    gradient->input_gradients[2] = troupe_gradient_add(gradient, "Select", to_e, 3, NULL, 0);
    return gradient->status;
}

/* Each input was broadcast to the shape of the output. */
enum troupe_status troupe_gradient_of_select_v2(struct troupe_gradient *gradient)
{
    struct troupe_value condition = gradient->inputs[0], flow = gradient->output_gradients[0];
    struct troupe_value zero = number(gradient, 0);
    gradient->input_gradients[1] =
        troupe_gradient_unbroadcast(gradient, select(gradient, condition, flow, zero),
                                    gradient->inputs[1], gradient->outputs[0]);
    gradient->input_gradients[2] =
        troupe_gradient_unbroadcast(gradient, select(gradient, condition, zero, flow),
                                    gradient->inputs[2], gradient->outputs[0]);
    return gradient->status;
}

enum troupe_status troupe_gradient_of_cast(struct troupe_gradient *gradient)
{
    char name[] = "DstT";
    struct troupe_named_attr attrs[] = {{name, troupe_attr_type(gradient->input_dtypes[0])}};
    if (!troupe_dtype_is_floating(gradient->input_dtypes[0])) {
        troupe_attr_fini(&attrs[0].value);
        return TROUPE_OK;
    }
    return flows(gradient, troupe_gradient_add(gradient, "Cast", &gradient->output_gradients[0], 1,
                                               attrs, 1));
}

enum troupe_status troupe_gradient_of_l2_loss(struct troupe_gradient *gradient)
{
    return flows(gradient, mul(gradient, gradient->inputs[0], gradient->output_gradients[0]));
}
