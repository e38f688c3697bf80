/* A template of unary.c: runs of one operand, for one TYPE and the ROWS (stem, value of a). */

#define TROUPE_ROW(stem, value)                                                                    \
    static void NAME(stem)(void *out, const void *const *in, const int64_t *steps, int64_t count)  \
    {                                                                                              \
        const TYPE *x = in[0];                                                                     \
        TYPE *y = out;                                                                             \
        (void)steps;                                                                               \
        TROUPE_INDEPENDENT                                                                         \
        for (int64_t i = 0; i < count; i++) {                                                      \
            TYPE a = x[i];                                                                         \
            y[i] = (TYPE)(value);                                                                  \
        }                                                                                          \
    }
ROWS(TROUPE_ROW)
#undef TROUPE_ROW
