/* Shape checks and gradients of the family "math". Private to ops/. */
#ifndef TROUPE_OPS_MATH_H
#define TROUPE_OPS_MATH_H

#include "ops/op.h"
#include "ops/shape.h"

/* All shapes agree with that of input 0; says which does not. */
TROUPE_MUST_USE enum troupe_status troupe_add_n_check(const struct troupe_shape *first,
                                                      const struct troupe_shape *other, int index);

troupe_gradient_fn troupe_gradient_of_neg;
troupe_gradient_fn troupe_gradient_of_abs;
troupe_gradient_fn troupe_gradient_of_square;
troupe_gradient_fn troupe_gradient_of_sqrt;
troupe_gradient_fn troupe_gradient_of_rsqrt;
troupe_gradient_fn troupe_gradient_of_exp;
troupe_gradient_fn troupe_gradient_of_log;
troupe_gradient_fn troupe_gradient_of_log1p;
troupe_gradient_fn troupe_gradient_of_reciprocal;
troupe_gradient_fn troupe_gradient_of_sin;
troupe_gradient_fn troupe_gradient_of_cos;
troupe_gradient_fn troupe_gradient_of_tanh;
troupe_gradient_fn troupe_gradient_of_sigmoid;
troupe_gradient_fn troupe_gradient_of_erf;

troupe_gradient_fn troupe_gradient_of_add;
troupe_gradient_fn troupe_gradient_of_sub;
troupe_gradient_fn troupe_gradient_of_mul;
troupe_gradient_fn troupe_gradient_of_real_div;
troupe_gradient_fn troupe_gradient_of_floor_mod;
troupe_gradient_fn troupe_gradient_of_maximum;
troupe_gradient_fn troupe_gradient_of_minimum;
troupe_gradient_fn troupe_gradient_of_pow;
troupe_gradient_fn troupe_gradient_of_squared_difference;
troupe_gradient_fn troupe_gradient_of_tanh_grad;
troupe_gradient_fn troupe_gradient_of_sigmoid_grad;

troupe_gradient_fn troupe_gradient_of_add_n;
troupe_gradient_fn troupe_gradient_of_select;
troupe_gradient_fn troupe_gradient_of_select_v2;
troupe_gradient_fn troupe_gradient_of_cast;
troupe_gradient_fn troupe_gradient_of_l2_loss;

#endif
