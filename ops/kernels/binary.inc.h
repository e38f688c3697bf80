/* A template of binary.c: runs of two operands of TYPE with results of OUT, for the ROWS (stem,
 * value of a and b). */

#define TROUPE_ROW(stem, value)                                                                    \
    static inline void NAME(stem##_of)(OUT * z, TYPE a, TYPE b)                                    \
    {                                                                                              \
        *z = (OUT)(value);                                                                         \
    }                                                                                              \
    static void NAME(stem)(void *out, const void *const *in, const int64_t *steps, int64_t count)  \
    {                                                                                              \
        const TYPE *x = in[0], *y = in[1];                                                         \
        OUT *z = out;                                                                              \
        if (steps[0] != 0 && steps[1] != 0) {                                                      \
            TROUPE_INDEPENDENT                                                                     \
            for (int64_t i = 0; i < count; i++)                                                    \
                NAME(stem##_of)(&z[i], x[i], y[i]);                                                \
        } else if (steps[0] != 0) {                                                                \
            TYPE b = y[0];                                                                         \
            TROUPE_INDEPENDENT                                                                     \
            for (int64_t i = 0; i < count; i++)                                                    \
                NAME(stem##_of)(&z[i], x[i], b);                                                   \
        } else {                                                                                   \
            TYPE a = x[0];                                                                         \
            TROUPE_INDEPENDENT                                                                     \
            for (int64_t i = 0; i < count; i++)                                                    \
                NAME(stem##_of)(&z[i], a, y[i]);                                                   \
        }                                                                                          \
    }
ROWS(TROUPE_ROW)
#undef TROUPE_ROW
