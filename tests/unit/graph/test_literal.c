/* JSON literals as tensors, and back. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "graph/literal.h"

static struct troupe_tensor *parse(const char *text, enum troupe_dtype dtype)
{
    struct troupe_tensor *tensor = NULL;

    cr_assert_eq(troupe_tensor_from_json_text(text, dtype, &tensor), TROUPE_OK, "%s: %s", text,
                 troupe_status_message());
    return tensor;
}

Test(literal, takes_its_dtype_from_the_elements)
{
    static const struct {
        const char *text;
        enum troupe_dtype dtype;
        int rank;
    } rows[] = {
        {"1", TROUPE_INT32, 0},       {"[1, 2.5]", TROUPE_FLOAT32, 1},
        {"[[true]]", TROUPE_BOOL, 2}, {"\"a\"", TROUPE_STRING, 0},
        {"[]", TROUPE_FLOAT32, 1},    {"[1, \"NaN\"]", TROUPE_FLOAT32, 1},
        {"[[[7]]]", TROUPE_INT32, 3},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct troupe_tensor *tensor = parse(rows[i].text, TROUPE_DTYPE_INVALID);

        cr_assert_eq(troupe_tensor_dtype(tensor), rows[i].dtype, "%s", rows[i].text);
        cr_assert_eq(troupe_tensor_rank(tensor), rows[i].rank, "%s", rows[i].text);
        troupe_tensor_unref(tensor);
    }
}

Test(literal, tells_what_is_wrong)
{
    static const struct {
        const char *text;
        enum troupe_dtype dtype;
        const char *message;
    } rows[] = {
        {"[[1,2],[3]]", TROUPE_FLOAT32, "ragged list: got 1 elements where the first has 2"},
        {"[[1],2]", TROUPE_FLOAT32, "ragged list: got 2 where a list of 1 was expected"},
        {"[1,[2]]", TROUPE_FLOAT32, "ragged list: got [2] where an element was expected"},
        {"300", TROUPE_UINT8, "300 does not fit uint8"},
        {"3000000000", TROUPE_DTYPE_INVALID, "3000000000 does not fit int32"},
        {"1e300", TROUPE_FLOAT32, "1e300 does not fit float32"},
        {"1.5", TROUPE_INT64, "wants elements of int64, got 1.5"},
        {"[1, true]", TROUPE_DTYPE_INVALID, "wants elements of int32, got true"},
        {"[null]", TROUPE_FLOAT32,
         "wants numbers, bools or strings, or nested lists of them, got null"},
        {"[[[[[[[[[1]]]]]]]]]", TROUPE_FLOAT32,
         "the list is nested too deep: a tensor has at most 8 dimensions"},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct troupe_tensor *tensor = NULL;

        cr_assert_eq(troupe_tensor_from_json_text(rows[i].text, rows[i].dtype, &tensor),
                     TROUPE_INVALID_ARGUMENT, "%s", rows[i].text);
        cr_assert_null(tensor);
        cr_assert_str_eq(troupe_status_message(), rows[i].message);
    }
}

Test(literal, comes_back_as_the_same_bits)
{
    struct troupe_tensor *tensor =
        parse("[0.1, 1e-30, 3.4028234e38, \"Infinity\", \"-Infinity\", -0.0]", TROUPE_FLOAT32);
    json_t *json = troupe_tensor_to_json(tensor);
    struct troupe_tensor *again = NULL;

    cr_assert_not_null(json);
    cr_assert_eq(json_real_value(json_array_get(json, 0)), 0.1);
    cr_assert_str_eq(json_string_value(json_array_get(json, 3)), "Infinity");
    cr_assert_eq(troupe_tensor_from_json(json, TROUPE_FLOAT32, &again), TROUPE_OK);
    cr_assert_arr_eq(troupe_tensor_data(tensor), troupe_tensor_data(again),
                     troupe_tensor_bytes(tensor));
    json_decref(json);
    troupe_tensor_unref(again);
    troupe_tensor_unref(tensor);
    tensor = parse("\"NaN\"", TROUPE_FLOAT64);
    cr_assert(isnan(*(const double *)troupe_tensor_data(tensor)));
    json = troupe_tensor_to_json(tensor);
    cr_assert_str_eq(json_string_value(json), "NaN");
    json_decref(json);
    troupe_tensor_unref(tensor);
}

Test(literal, carries_every_dtype)
{
    static const enum troupe_dtype dtypes[] = {TROUPE_FLOAT32, TROUPE_FLOAT64, TROUPE_INT32,
                                               TROUPE_INT64,   TROUPE_UINT8,   TROUPE_FLOAT16,
                                               TROUPE_BFLOAT16};

    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        struct troupe_tensor *tensor = parse("[[1, 2], [3, 200]]", dtypes[i]);
        json_t *json = troupe_tensor_to_json(tensor);

        cr_assert_eq(json_number_value(json_array_get(json_array_get(json, 1), 1)), 200.0);
        json_decref(json);
        troupe_tensor_unref(tensor);
    }
}
