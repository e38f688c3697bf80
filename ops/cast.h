/* Conversions between float and the two 16-bit formats, which are for storage only. */
#ifndef TROUPE_OPS_CAST_H
#define TROUPE_OPS_CAST_H

#include <stdint.h>

/* IEEE 754 binary16, rounded to nearest even; too large becomes infinite, NaN stays NaN. */
uint16_t troupe_float16_from_float(float value);
float troupe_float16_to_float(uint16_t bits);

/* bfloat16, the upper half of a float, rounded to nearest even; NaN stays NaN. */
uint16_t troupe_bfloat16_from_float(float value);
float troupe_bfloat16_to_float(uint16_t bits);

#endif
