/* Dtypes, tensors, strings, casts, shapes and attrs. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "ops/attr.h"
#include "ops/cast.h"
#include "ops/string.h"
#include "ops/tensor.h"

static uint64_t live_bytes(void)
{
    struct troupe_memory_usage usage;
    troupe_memory_usage_get(&usage);
    return usage.live_bytes;
}

Test(dtype, names_and_sizes)
{
    static const struct {
        const char *name;
        enum troupe_dtype dtype;
        size_t size;
    } rows[] = {
        {"float32", TROUPE_FLOAT32, 4},
        {"DT_FLOAT", TROUPE_FLOAT32, 4},
        {"float", TROUPE_FLOAT32, 4},
        {"<f8", TROUPE_FLOAT64, 8},
        {"DT_DOUBLE", TROUPE_FLOAT64, 8},
        {"int32", TROUPE_INT32, 4},
        {"DT_INT64", TROUPE_INT64, 8},
        {"|u1", TROUPE_UINT8, 1},
        {"DT_BOOL", TROUPE_BOOL, 1},
        {"half", TROUPE_FLOAT16, 2},
        {"DT_HALF", TROUPE_FLOAT16, 2},
        {"bfloat16", TROUPE_BFLOAT16, 2},
        {"DT_STRING", TROUPE_STRING, sizeof(void *)},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        enum troupe_dtype dtype;
        cr_assert_eq(troupe_dtype_parse(rows[i].name, &dtype), TROUPE_OK, "%s", rows[i].name);
        cr_assert_eq(dtype, rows[i].dtype, "%s", rows[i].name);
        cr_assert_eq(troupe_dtype_size(dtype), rows[i].size);
        cr_assert_eq(troupe_dtype_parse(troupe_dtype_name(dtype), &dtype), TROUPE_OK);
    }
    enum troupe_dtype dtype = TROUPE_BOOL;
    cr_assert_eq(troupe_dtype_parse("float33", &dtype), TROUPE_INVALID_ARGUMENT);
    cr_assert(strstr(troupe_status_message(), "float32"));
    cr_assert_eq(dtype, TROUPE_BOOL);
    cr_assert_eq(troupe_dtype_size(TROUPE_DTYPE_INVALID), 0);
    cr_assert_str_eq(troupe_dtype_name((enum troupe_dtype) - 3), "?");
    cr_assert(troupe_dtype_is_floating(TROUPE_BFLOAT16));
    cr_assert_not(troupe_dtype_is_floating(TROUPE_INT32));
}

Test(tensor, holds_its_data)
{
    uint64_t before = live_bytes();
    const int32_t data[] = {1, 2, 3, 4, 5, 6};
    struct troupe_tensor *tensor;
    cr_assert_eq(troupe_tensor_from_data(TROUPE_INT32, 2, (int64_t[]){2, 3}, data, &tensor), 0);
    cr_assert_eq(troupe_tensor_elements(tensor), 6);
    cr_assert_eq(troupe_tensor_bytes(tensor), 24);
    cr_assert_eq((uintptr_t)troupe_tensor_data(tensor) % 64, 0);
    cr_assert_eq(memcmp(troupe_tensor_data(tensor), data, sizeof(data)), 0);
    cr_assert(troupe_tensor_is_valid(tensor) && troupe_tensor_is_unique(tensor));
    cr_assert_eq(troupe_tensor_of_payload(troupe_tensor_payload(tensor)), tensor);
    troupe_tensor_ref(tensor);
    cr_assert_not(troupe_tensor_is_unique(tensor));
    troupe_tensor_unref(tensor);
    troupe_tensor_unref(tensor);
    troupe_tensor_unref(NULL);
    cr_assert_eq(live_bytes(), before);
}

Test(tensor, refuses_sizes_that_cannot_be)
{
    const int64_t negative[] = {2, -1}, huge[] = {INT64_MAX, INT64_MAX, 4};
    const int64_t sneaky[] = {INT64_MAX, INT64_MAX, 0}, nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    struct troupe_tensor *out = NULL;
    cr_assert_eq(troupe_tensor_create(TROUPE_FLOAT32, 2, negative, &out), TROUPE_INVALID_ARGUMENT);
    cr_assert_eq(troupe_tensor_create(TROUPE_FLOAT32, 3, huge, &out), TROUPE_INVALID_ARGUMENT);
    cr_assert_eq(troupe_tensor_create(TROUPE_FLOAT32, 3, sneaky, &out), TROUPE_INVALID_ARGUMENT);
    cr_assert_eq(troupe_tensor_create(TROUPE_FLOAT32, 9, nine, &out), TROUPE_INVALID_ARGUMENT);
    cr_assert_eq(troupe_tensor_create(TROUPE_FLOAT32, -1, nine, &out), TROUPE_INVALID_ARGUMENT);
    cr_assert_eq(troupe_tensor_create(TROUPE_DTYPE_INVALID, 0, NULL, &out),
                 TROUPE_INVALID_ARGUMENT);
    const int64_t terabytes[] = {(int64_t)1 << 60};
    cr_assert_eq(troupe_tensor_create(TROUPE_UINT8, 1, terabytes, &out), TROUPE_RESOURCE_EXHAUSTED);
    cr_assert_null(out);
}

Test(tensor, empty_and_scalar)
{
    struct troupe_tensor *empty, *scalar;
    cr_assert_eq(troupe_tensor_create(TROUPE_FLOAT64, 2, (int64_t[]){0, 5}, &empty), 0);
    cr_assert_eq(troupe_tensor_elements(empty), 0);
    cr_assert_eq(troupe_tensor_create(TROUPE_FLOAT64, 0, NULL, &scalar), 0);
    cr_assert_eq(troupe_tensor_elements(scalar), 1);
    troupe_tensor_unref(empty);
    troupe_tensor_unref(scalar);
}

Test(tensor, views_share_the_buffer)
{
    uint64_t before = live_bytes();
    const float data[] = {0, 1, 2, 3, 4, 5};
    struct troupe_tensor *tensor, *flat, *rows, *out = NULL;
    cr_assert_eq(troupe_tensor_from_data(TROUPE_FLOAT32, 2, (int64_t[]){3, 2}, data, &tensor), 0);
    cr_assert_eq(troupe_tensor_reshape(tensor, 1, (int64_t[]){6}, &flat), 0);
    cr_assert_eq(troupe_tensor_data(flat), troupe_tensor_data(tensor));
    cr_assert_not(troupe_tensor_is_unique(tensor));
    cr_assert_eq(troupe_tensor_reshape(tensor, 1, (int64_t[]){5}, &out), TROUPE_INVALID_ARGUMENT);
    cr_assert_eq(troupe_tensor_rows(tensor, 1, 3, &rows), 0);
    cr_assert_eq(troupe_tensor_dims(rows)[0], 2);
    cr_assert_eq(((const float *)troupe_tensor_data(rows))[0], 2.0f);
    cr_assert_eq(troupe_tensor_rows(tensor, 2, 4, &out), TROUPE_INVALID_ARGUMENT);
    cr_assert_eq(troupe_tensor_rows(tensor, -1, 2, &out), TROUPE_INVALID_ARGUMENT);
    cr_assert_eq(troupe_tensor_view(TROUPE_FLOAT32, 1, (int64_t[]){6}, tensor->buffer, 4, &out),
                 TROUPE_INVALID_ARGUMENT);
    cr_assert_eq(troupe_tensor_view(TROUPE_FLOAT32, 1, (int64_t[]){2}, tensor->buffer, 2, &out),
                 TROUPE_INVALID_ARGUMENT);
    troupe_tensor_unref(tensor);
    cr_assert_eq(((const float *)troupe_tensor_data(flat))[5], 5.0f);
    troupe_tensor_unref(flat);
    cr_assert(troupe_tensor_is_unique(rows));
    troupe_tensor_unref(rows);
    cr_assert_null(out);
    cr_assert_eq(live_bytes(), before);
}

Test(tensor, strings_go_with_the_last_view)
{
    uint64_t before = live_bytes();
    struct troupe_tensor *tensor, *view, *copy, *out;
    cr_assert_eq(troupe_tensor_create(TROUPE_STRING, 1, (int64_t[]){3}, &tensor), 0);
    struct troupe_string **strings = troupe_tensor_data_mutable(tensor);
    cr_assert_null(strings[0]);
    cr_assert_eq(troupe_string_create("a\0b", 3, &strings[0]), 0);
    cr_assert_eq(troupe_string_create("word", 4, &strings[1]), 0);
    cr_assert_eq(troupe_string_length(strings[0]), 3);
    cr_assert_str_eq(troupe_string_data(strings[2]), "");
    cr_assert_eq(troupe_string_length(NULL), 0);
    cr_assert_eq(troupe_tensor_reshape(tensor, 2, (int64_t[]){3, 1}, &view), 0);
    cr_assert_eq(troupe_tensor_copy(tensor, &copy), 0);
    troupe_tensor_unref(tensor);
    cr_assert_str_eq(
        troupe_string_data(((struct troupe_string **)troupe_tensor_data_mutable(view))[1]), "word");
    troupe_tensor_unref(view);
    strings = troupe_tensor_data_mutable(copy);
    cr_assert_eq(memcmp(troupe_string_data(strings[0]), "a\0b", 4), 0);
    cr_assert_eq(strings[0]->payload.references, 1);
    troupe_tensor_unref(copy);
    cr_assert_eq(live_bytes(), before);
    cr_assert_eq(troupe_tensor_from_data(TROUPE_STRING, 0, NULL, "", &out),
                 TROUPE_INVALID_ARGUMENT);
}

Test(tensor, steady_state_does_not_reach_malloc)
{
    struct troupe_memory_usage before, after;
    for (int i = 0; i < 1000; i++) {
        struct troupe_tensor *a, *b;
        if (i == 1)
            troupe_memory_usage_get(&before);
        cr_assert_eq(troupe_tensor_create(TROUPE_FLOAT32, 2, (int64_t[]){64, 100}, &a), 0);
        cr_assert_eq(troupe_tensor_reshape(a, 1, (int64_t[]){6400}, &b), 0);
        troupe_tensor_unref(a);
        troupe_tensor_unref(b);
    }
    troupe_memory_usage_get(&after);
    cr_assert_eq(after.system_allocations, before.system_allocations);
}

Test(cast, float16_round_trips_every_value)
{
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float value = troupe_float16_to_float((uint16_t)bits);
        uint16_t back = troupe_float16_from_float(value);
        if (isnan(value))
            cr_assert(isnan(troupe_float16_to_float(back)));
        else
            cr_assert_eq(back, bits, "%04x became %04x", bits, back);
    }
}

Test(cast, float16_rounds_to_nearest_even)
{
    cr_assert_eq(troupe_float16_to_float(0x3c00), 1.0f);
    cr_assert_eq(troupe_float16_to_float(0x0001), 0x1p-24f);
    cr_assert_eq(troupe_float16_from_float(65504.0f), 0x7bff);
    cr_assert_eq(troupe_float16_from_float(65519.0f), 0x7bff);
    cr_assert_eq(troupe_float16_from_float(65520.0f), 0x7c00);
    cr_assert_eq(troupe_float16_from_float(1e30f), 0x7c00);
    cr_assert_eq(troupe_float16_from_float(-INFINITY), 0xfc00);
    cr_assert_eq(troupe_float16_from_float(0x1.002p0f), 0x3c00);
    cr_assert_eq(troupe_float16_from_float(0x1.006p0f), 0x3c02);
    cr_assert_eq(troupe_float16_from_float(0x1.0020001p0f), 0x3c00);
    cr_assert_eq(troupe_float16_from_float(0x1.00202p0f), 0x3c01);
    cr_assert_eq(troupe_float16_from_float(0x1p-25f), 0x0000);
    cr_assert_eq(troupe_float16_from_float(0x1.8p-25f), 0x0001);
    cr_assert_eq(troupe_float16_from_float(0x1.8p-24f), 0x0002);
    cr_assert_eq(troupe_float16_from_float(0x1.ffep-15f), 0x0400);
    cr_assert_eq(troupe_float16_from_float(-0.0f), 0x8000);
}

Test(cast, bfloat16)
{
    for (uint32_t bits = 0; bits < 0x10000; bits++) {
        float value = troupe_bfloat16_to_float((uint16_t)bits);
        uint16_t back = troupe_bfloat16_from_float(value);
        if (isnan(value))
            cr_assert(isnan(troupe_bfloat16_to_float(back)));
        else
            cr_assert_eq(back, bits);
    }
    cr_assert_eq(troupe_bfloat16_from_float(0x1.01p0f), 0x3f80);
    cr_assert_eq(troupe_bfloat16_from_float(0x1.03p0f), 0x3f82);
    cr_assert_eq(troupe_bfloat16_from_float(3.4e38f), 0x7f80);
}

/* Reads "[2,?]", "[]" or "?". */
static struct troupe_shape shape(const char *text)
{
    struct troupe_shape out = troupe_shape_unknown();
    if (*text != '[')
        return out;
    out.rank = 0;
    for (text++; *text != ']'; text += *text == ',') {
        char *end = NULL;
        out.dims[out.rank++] = *text == '?' ? -1 : strtoll(text, &end, 10);
        text = end ? end : text + 1;
    }
    return out;
}

Test(shape, prints_and_measures)
{
    const char *const texts[] = {"[64,?]", "[]", "?", "[0,3]", "[1,2,3,4,5,6,7,8]"};
    const int64_t elements[] = {-1, 1, -1, 0, 40320};
    for (size_t i = 0; i < 5; i++) {
        char text[TROUPE_SHAPE_TEXT_MAX];
        struct troupe_shape read = shape(texts[i]);
        cr_assert_str_eq(troupe_shape_print(&read, text), texts[i]);
        cr_assert_eq(troupe_shape_elements(&read), elements[i]);
        cr_assert_eq(troupe_shape_is_known(&read), elements[i] >= 0);
    }
    struct troupe_shape longest = {.rank = 8};
    for (int i = 0; i < 8; i++)
        longest.dims[i] = INT64_MAX;
    char text[TROUPE_SHAPE_TEXT_MAX];
    cr_assert_eq(strlen(troupe_shape_print(&longest, text)), 8 * 19 + 7 + 2);
}

static void expect_pair(bool broadcast, const char *a, const char *b, const char *right)
{
    char text[TROUPE_SHAPE_TEXT_MAX] = "wrong";
    for (int swap = 0; swap < 2; swap++) {
        struct troupe_shape x = shape(swap ? b : a), y = shape(swap ? a : b), out;
        enum troupe_status status =
            broadcast ? troupe_shape_broadcast(&x, &y, &out) : troupe_shape_merge(&x, &y, &out);
        cr_assert_eq(status, right ? TROUPE_OK : TROUPE_INVALID_ARGUMENT, "%s %s", a, b);
        if (right)
            cr_assert_str_eq(troupe_shape_print(&out, text), right, "%s and %s give %s", a, b,
                             text);
    }
}

Test(shape, broadcasts)
{
    expect_pair(true, "[2,3]", "[3]", "[2,3]");
    expect_pair(true, "[2,1,3]", "[5,1]", "[2,5,3]");
    expect_pair(true, "[]", "[4,?]", "[4,?]");
    expect_pair(true, "[?,3]", "[2,1]", "[2,3]");
    expect_pair(true, "[?]", "[1]", "[?]");
    expect_pair(true, "[0]", "[1]", "[0]");
    expect_pair(true, "[2]", "?", "?");
    expect_pair(true, "[0]", "[3]", NULL);
    expect_pair(true, "[64,10]", "[64,12]", NULL);
    struct troupe_shape a = shape("[64,10]"), b = shape("[64,12]"), out;
    cr_assert_eq(troupe_shape_broadcast(&a, &b, &out), TROUPE_INVALID_ARGUMENT);
    cr_assert_str_eq(troupe_status_message(), "shapes [64,10] and [64,12] do not broadcast");
}

Test(shape, merges)
{
    expect_pair(false, "?", "[2,?]", "[2,?]");
    expect_pair(false, "[?,3]", "[2,?]", "[2,3]");
    expect_pair(false, "[2]", "[3]", NULL);
    expect_pair(false, "[1]", "[3]", NULL);
    expect_pair(false, "[2]", "[2,2]", NULL);
}

/* Checks the print, that a copy equals, hashes alike and outlives the value; takes the value. */
static void expect_attr(struct troupe_attr value, const char *right)
{
    struct troupe_text text;
    struct troupe_attr copy = troupe_attr_copy(&value);
    cr_assert_eq(copy.kind, value.kind);
    cr_assert(troupe_attr_equal(&copy, &value), "%s", right);
    cr_assert_eq(troupe_attr_hash(1, &copy), troupe_attr_hash(1, &value));
    struct troupe_attr none = {0};
    cr_assert_not(troupe_attr_equal(&none, &value));
    cr_assert_neq(troupe_attr_hash(1, &none), troupe_attr_hash(1, &value));
    troupe_attr_fini(&value);
    cr_assert_eq(value.kind, TROUPE_ATTR_NONE);
    troupe_text_init(&text);
    troupe_attr_print(&copy, &text);
    cr_assert_str_eq(text.data, right);
    troupe_text_fini(&text);
    troupe_attr_fini(&copy);
}

static struct troupe_attr attr_of_floats(int rank, const int64_t *dims, const float *data)
{
    struct troupe_tensor *tensor;
    cr_assert_eq(troupe_tensor_from_data(TROUPE_FLOAT32, rank, dims, data, &tensor), 0);
    struct troupe_attr attr = troupe_attr_tensor(tensor);
    troupe_tensor_unref(tensor);
    return attr;
}

Test(attr, copies_and_prints)
{
    static const float data[100] = {1.5f, -2, 0.1f, INFINITY};
    expect_attr(troupe_attr_int(-7), "-7");
    expect_attr(troupe_attr_float(0.1), "0.1");
    expect_attr(troupe_attr_float(3), "3.0");
    expect_attr(troupe_attr_float(1.0 / 3), "0.3333333333333333");
    expect_attr(troupe_attr_bool(true), "true");
    expect_attr(troupe_attr_type(TROUPE_FLOAT32), "\"float32\"");
    expect_attr(troupe_attr_shape(shape("[?,784]")), "[null, 784]");
    expect_attr(troupe_attr_shape(shape("?")), "null");
    expect_attr(troupe_attr_string("a \"b\"\n"), "\"a \\\"b\\\"\\u000a\"");
    expect_attr(troupe_attr_list_int((int64_t[]){1, -2}, 2), "[1, -2]");
    expect_attr(troupe_attr_list_int(NULL, 0), "[]");
    expect_attr(troupe_attr_list_type((enum troupe_dtype[]){TROUPE_BOOL}, 1), "[\"bool\"]");
    expect_attr(attr_of_floats(2, (int64_t[]){2, 2}, data), "[[1.5, -2.0], [0.1, \"Infinity\"]]");
    expect_attr(attr_of_floats(0, NULL, data), "1.5");
    expect_attr(attr_of_floats(1, (int64_t[]){0}, data), "[]");
    struct troupe_attr large = attr_of_floats(1, (int64_t[]){100}, data);
    struct troupe_text text;
    troupe_text_init(&text);
    troupe_attr_print(&large, &text);
    cr_assert(text.length < 120 && strstr(text.data, "\"...\"]"));
    troupe_text_fini(&text);
    troupe_attr_fini(&large);
}

Test(attr, differs)
{
    struct troupe_attr one = troupe_attr_int(1), two = troupe_attr_int(2);
    struct troupe_attr yes = troupe_attr_bool(true), text = troupe_attr_string("1");
    cr_assert_not(troupe_attr_equal(&one, &two));
    cr_assert_not(troupe_attr_equal(&one, &yes));
    cr_assert_not(troupe_attr_equal(&one, &text));
    cr_assert_neq(troupe_attr_hash(0, &one), troupe_attr_hash(0, &yes));
    struct troupe_attr a = troupe_attr_list_int((int64_t[]){1, 2}, 2);
    struct troupe_attr b = troupe_attr_list_int((int64_t[]){1, 3}, 2);
    cr_assert_not(troupe_attr_equal(&a, &b));
    troupe_attr_fini(&a);
    troupe_attr_fini(&b);
    troupe_attr_fini(&text);
    cr_assert_str_eq(troupe_attr_kind_name(TROUPE_ATTR_LIST_SHAPE), "list(shape)");
    cr_assert_str_eq(troupe_attr_kind_name(TROUPE_ATTR_KIND_COUNT), "?");
}
