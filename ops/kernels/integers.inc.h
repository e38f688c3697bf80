/* A template of binary.c: arithmetic of the integers TYPE that C leaves undefined in places. WIDE
 * is unsigned; IS_SIGNED says whether TYPE is not. */

/* The divisor is not 0 (the kernel has checked); the least integer by -1 wraps. */
static inline TYPE NAME(quotient)(TYPE a, TYPE b)
{
    if (IS_SIGNED && b == (TYPE)-1)
        return (TYPE)(0 - (WIDE)a);
    return (TYPE)(a / b);
}

static inline TYPE NAME(floored)(TYPE a, TYPE b)
{
    TYPE quotient = NAME(quotient)(a, b);
    bool is_exact = (WIDE)quotient * (WIDE)b == (WIDE)a;
    return IS_SIGNED && !is_exact && (a < (TYPE)1) != (b < (TYPE)1) ? (TYPE)(quotient - 1)
                                                                    : quotient;
}

static inline TYPE NAME(modulus)(TYPE a, TYPE b)
{
    return (TYPE)((WIDE)a - (WIDE)NAME(floored)(a, b) * (WIDE)b);
}

/* The exponent is not negative (the kernel has checked). */
static inline TYPE NAME(power)(TYPE a, TYPE b)
{
    WIDE result = 1, base = (WIDE)a;
    for (WIDE left = (WIDE)b; left > 0; left >>= 1) {
        if (left & 1)
            result *= base;
        base *= base;
    }
    return (TYPE)result;
}

static bool NAME(has_zero)(const void *data, int64_t count)
{
    const TYPE *x = data;
    for (int64_t i = 0; i < count; i++)
        if (x[i] == 0)
            return true;
    return false;
}

#if IS_SIGNED
static bool NAME(has_negative)(const void *data, int64_t count)
{
    const TYPE *x = data;
    for (int64_t i = 0; i < count; i++)
        if (x[i] < 0)
            return true;
    return false;
}
#endif
