/* Philox4x32-10. Invariant: a number depends on key and counter alone.
 * Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011); the
 * constants are those of its table 2. */
#include <math.h>

#include "base/philox.h"

#define PHILOX_ROUNDS 10

static void philox_round(uint32_t x[4], uint32_t key0, uint32_t key1)
{
    uint64_t product0 = UINT64_C(0xd2511f53) * x[0];
    uint64_t product1 = UINT64_C(0xcd9e8d57) * x[2];
    uint32_t y0 = (uint32_t)(product1 >> 32) ^ x[1] ^ key0;
    uint32_t y2 = (uint32_t)(product0 >> 32) ^ x[3] ^ key1;
    x[1] = (uint32_t)product1;
    x[3] = (uint32_t)product0;
    x[0] = y0;
    x[2] = y2;
}

void troupe_philox(uint64_t key, uint64_t counter_low, uint64_t counter_high, uint32_t out[4])
{
    uint32_t key0 = (uint32_t)key, key1 = (uint32_t)(key >> 32);
    uint32_t x[4] = {(uint32_t)counter_low, (uint32_t)(counter_low >> 32), (uint32_t)counter_high,
                     (uint32_t)(counter_high >> 32)};
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        philox_round(x, key0, key1);
        key0 += UINT32_C(0x9e3779b9);
        key1 += UINT32_C(0xbb67ae85);
    }
    for (int i = 0; i < 4; i++)
        out[i] = x[i];
}

float troupe_philox_uniform_float(uint32_t bits)
{
    return (float)(bits >> 8) * 0x1p-24f;
}

double troupe_philox_uniform_double(uint32_t high, uint32_t low)
{
    uint64_t bits = (uint64_t)high << 32 | low;
    return (double)(bits >> 11) * 0x1p-53;
}

void troupe_philox_normal(uint32_t a, uint32_t b, float out[2])
{
    /* In (0, 1], so that the logarithm is finite. */
    float u = ((float)a + 1.0f) * 0x1p-32f;
    float radius = sqrtf(-2.0f * logf(u < 1.0f ? u : 1.0f));
    float angle = 6.283185307179586f * troupe_philox_uniform_float(b);
    out[0] = radius * cosf(angle);
    out[1] = radius * sinf(angle);
}
