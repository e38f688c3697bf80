/* Random numbers and the clock. */
#include <criterion/criterion.h>
#include <math.h>

#include "base/clock.h"
#include "base/philox.h"

static void expect(uint64_t key, uint64_t low, uint64_t high, const uint32_t right[4])
{
    uint32_t out[4];
    troupe_philox(key, low, high, out);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(out[i], right[i], "word %d: %08x, wants %08x", i, out[i], right[i]);
}

/* From Random123's kat_vectors. */
Test(philox, known_answers)
{
    expect(0, 0, 0, (const uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    expect(UINT64_MAX, UINT64_MAX, UINT64_MAX,
           (const uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    expect(UINT64_C(0x299f31d0a4093822), UINT64_C(0x85a308d3243f6a88), UINT64_C(0x0370734413198a2e),
           (const uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

Test(philox, uniform_stays_below_one)
{
    cr_assert_eq(troupe_philox_uniform_float(0), 0.0f);
    cr_assert_lt(troupe_philox_uniform_float(UINT32_MAX), 1.0f);
    cr_assert_eq(troupe_philox_uniform_float(UINT32_C(1) << 31), 0.5f);
    cr_assert_eq(troupe_philox_uniform_double(0, 0), 0.0);
    cr_assert_lt(troupe_philox_uniform_double(UINT32_MAX, UINT32_MAX), 1.0);
    cr_assert_eq(troupe_philox_uniform_double(UINT32_C(3) << 30, 0), 0.75);
}

Test(philox, normal_has_its_moments_and_is_finite)
{
    enum { COUNT = 100000 };
    double sum = 0, squares = 0, fourths = 0;
    for (uint64_t i = 0; i < COUNT / 4; i++) {
        uint32_t bits[4];
        float x[4];
        troupe_philox(7, i, 0, bits);
        troupe_philox_normal(bits[0], bits[1], x);
        troupe_philox_normal(bits[2], bits[3], x + 2);
        for (int j = 0; j < 4; j++) {
            sum += (double)x[j];
            squares += (double)x[j] * (double)x[j];
            fourths += pow((double)x[j], 4);
        }
    }
    cr_assert_float_eq(sum / COUNT, 0, 0.02);
    cr_assert_float_eq(squares / COUNT, 1, 0.02);
    cr_assert_float_eq(fourths / COUNT, 3, 0.15);
    float edge[2];
    troupe_philox_normal(0, 0, edge);
    cr_assert(isfinite(edge[0]) && isfinite(edge[1]));
    troupe_philox_normal(UINT32_MAX, UINT32_MAX, edge);
    cr_assert(isfinite(edge[0]) && isfinite(edge[1]));
}

Test(clock, never_goes_back)
{
    uint64_t last = troupe_clock_ns();
    for (int i = 0; i < 10000; i++) {
        uint64_t now = troupe_clock_ns();
        cr_assert_geq(now, last);
        last = now;
    }
}
