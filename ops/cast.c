/* The 16-bit floating formats. Invariant: rounding is to nearest, ties to even, as in hardware. */
#include <string.h>

#include "ops/cast.h"

static uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static float bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* Drops the `count` low bits (1 to 31), rounding to nearest even. */
static uint32_t round_off(uint32_t bits, unsigned count)
{
    uint32_t half = UINT32_C(1) << (count - 1);
    return (bits + half - 1 + (bits >> count & 1)) >> count;
}

uint16_t troupe_float16_from_float(float value)
{
    uint32_t bits = float_bits(value);
    uint32_t sign = bits >> 16 & 0x8000;
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) /* NaN: quiet, with the top of its payload */
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x1ff));
    if (magnitude >= 0x47800000) /* 65536 and more */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude >= 0x38800000) /* normal: a carry out of the fraction goes to the exponent */
        return (uint16_t)(sign | round_off(magnitude - 0x38000000, 13));
    if (magnitude < 0x33000000) /* less than half of the least */
        return (uint16_t)sign;
    /* Subnormal: the fraction with its hidden bit, shifted to units of 2^-24. */
    unsigned shift = 126 - (magnitude >> 23);
    return (uint16_t)(sign | round_off((magnitude & 0x7fffff) | 0x800000, shift));
}

float troupe_float16_to_float(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    uint32_t exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
    if (exponent == 0x1f)
        return bits_float(sign | 0x7f800000 | fraction << 13);
    if (exponent > 0)
        return bits_float(sign | (exponent + 112) << 23 | fraction << 13);
    float value = (float)fraction * 0x1p-24f;
    return sign ? -value : value;
}

uint16_t troupe_bfloat16_from_float(float value)
{
    uint32_t bits = float_bits(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float troupe_bfloat16_to_float(uint16_t bits)
{
    return bits_float((uint32_t)bits << 16);
}
