/* Lists as values: when an op may change its input's list, and the value itself. Results and
 * messages of the ops in graphs are in tests/unit/coordinator/test_lists.c. */
#include <criterion/criterion.h>
#include <string.h>

#include "base/memory.h"
#include "op_node.h"
#include "ops/tensor.h"
#include "ops/tensor_list.h"

#define INPUTS(...) ((const char *[]){__VA_ARGS__, NULL})
#define FLOATS      "\"element_dtype\": \"float32\""

static struct troupe_tensor_list *list_of(const struct troupe_tensor *handle)
{
    return troupe_tensor_list_of(*(struct troupe_payload *const *)troupe_tensor_data(handle));
}

/* The first output of an op on a handle, whose reference it takes, and on other inputs. */
static struct troupe_tensor *apply(const char *op, struct troupe_tensor *handle,
                                   const char *const *inputs, const char *attr)
{
    struct op_node node;
    cr_assert_eq(op_node_init(&node, op, inputs, attr, OP_KNOWS_NOTHING), TROUPE_OK, "%s",
                 troupe_status_message());
    if (handle) {
        troupe_tensor_unref(node.inputs[0]);
        node.inputs[0] = handle;
    }
    cr_assert_eq(op_node_call(&node, 0), TROUPE_OK, "%s: %s", op, troupe_status_message());
    struct troupe_tensor *out = troupe_tensor_ref(node.outputs[0]);
    op_node_fini(&node);
    cr_assert(troupe_tensor_list_is_valid(list_of(out)), "%s", op);
    return out;
}

static struct troupe_tensor *empty(void)
{
    return apply("EmptyTensorList", NULL, INPUTS("int32 -1", "int32 -1"), FLOATS);
}

static struct troupe_tensor *push(struct troupe_tensor *handle, const char *element)
{
    return apply("TensorListPushBack", handle, INPUTS("variant []", element), FLOATS);
}

static uint64_t live_bytes(void)
{
    struct troupe_memory_usage usage;
    troupe_memory_usage_get(&usage);
    return usage.live_bytes;
}

/* Ops that change a list whose handle nobody else holds keep the list itself. */
Test(list_ops, change_the_only_reference_in_place)
{
    troupe_tensor_unref(empty());
    uint64_t before = live_bytes();
    struct troupe_tensor *handle = push(empty(), "float32 [1]");
    const struct troupe_tensor_list *list = list_of(handle);
    handle = push(handle, "float32 [2]");
    cr_assert_eq(list_of(handle), list);
    handle =
        apply("TensorListSetItem", handle, INPUTS("variant []", "int32 0", "float32 [3]"), FLOATS);
    cr_assert_eq(list_of(handle), list);
    handle = apply("TensorListResize", handle, INPUTS("variant []", "int32 5"), NULL);
    cr_assert_eq(list_of(handle), list);
    handle = apply("TensorListPopBack", handle, INPUTS("variant []", "int32 [1]"), FLOATS);
    cr_assert_eq(list_of(handle), list);
    handle = apply("TensorListScatterIntoExistingList", handle,
                   INPUTS("variant []", "float32 [[7]]", "int32 [1]"), FLOATS);
    cr_assert_eq(list_of(handle), list);
    cr_assert_eq(list->length, 4);
    op_expect(list->elements[0], "float32 [3]", 0, "element 0");
    op_expect(list->elements[1], "float32 [7]", 0, "element 1");
    cr_assert_null(list->elements[3]);
    troupe_tensor_unref(handle);
    cr_assert_eq(live_bytes(), before);
}

/* And copy one that is held elsewhere: by its handle, by another tensor of it, or in a list. */
Test(list_ops, copy_what_others_hold)
{
    struct troupe_tensor *held = push(empty(), "float32 [1]"), *view;
    struct troupe_tensor *more = push(troupe_tensor_ref(held), "float32 [2]");
    cr_assert_neq(list_of(more), list_of(held));
    cr_assert_eq(list_of(held)->length, 1);
    cr_assert_eq(list_of(more)->elements[0], list_of(held)->elements[0], "elements are shared");
    troupe_tensor_unref(more);

    cr_assert_eq(troupe_tensor_copy(held, &view), TROUPE_OK);
    more = push(held, "float32 [3]");
    cr_assert_neq(list_of(more), list_of(view));
    cr_assert_eq(list_of(view)->length, 1);
    cr_assert_eq(list_of(more)->length, 2);
    troupe_tensor_unref(more);
    troupe_tensor_unref(view);
}

/* Adding one by one moves each element a bounded number of times. */
Test(list_ops, growth_doubles)
{
    struct troupe_shape any = troupe_shape_unknown();
    struct troupe_tensor_list *list;
    struct troupe_tensor *one = op_tensor("float32 1");
    int moves = 0;
    cr_assert_eq(troupe_tensor_list_create(TROUPE_FLOAT32, &any, 0, &list), TROUPE_OK);
    for (int i = 0; i < 100000; i++) {
        int64_t capacity = list->capacity;
        cr_assert_eq(troupe_tensor_list_resize(list, i + 1), TROUPE_OK);
        cr_assert_eq(troupe_tensor_list_set(list, i, one), TROUPE_OK);
        moves += list->capacity != capacity;
    }
    cr_assert_leq(moves, 18);
    cr_assert(troupe_tensor_list_is_valid(list));
    troupe_tensor_list_unref(list);
    troupe_tensor_unref(one);
}

/* Wraps a list into a scalar tensor, whose reference it takes. */
static struct troupe_tensor *wrap(struct troupe_tensor_list *list)
{
    struct troupe_tensor *handle;
    cr_assert_eq(troupe_tensor_create(TROUPE_VARIANT, 0, NULL, &handle), TROUPE_OK);
    *(struct troupe_payload **)troupe_tensor_data_mutable(handle) = &list->payload;
    return handle;
}

/* What Print and messages say of a list. */
Test(list_ops, prints_in_short)
{
    struct troupe_tensor *handle = push(push(empty(), "float32 [1]"), "float32 [2]"), *none;
    struct troupe_attr attr = troupe_attr_tensor(handle);
    struct troupe_text text;
    troupe_text_init(&text);
    troupe_attr_print(&attr, &text);
    troupe_attr_fini(&attr);
    cr_assert_eq(troupe_tensor_create(TROUPE_VARIANT, 1, (int64_t[]){1}, &none), TROUPE_OK);
    attr = troupe_attr_tensor(none);
    troupe_text_add(&text, " ");
    troupe_attr_print(&attr, &text);
    troupe_attr_fini(&attr);
    cr_assert_str_eq(text.data, "\"list of 2 float32\" [null]");
    troupe_text_fini(&text);
    troupe_tensor_unref(none);
    troupe_tensor_unref(handle);
}

Test(list_ops, nesting_is_bounded)
{
    struct troupe_shape scalar = troupe_shape_scalar();
    struct troupe_tensor_list *list;
    cr_assert_eq(troupe_tensor_list_create(TROUPE_VARIANT, &scalar, 1, &list), TROUPE_OK);
    for (int depth = 1; depth < TROUPE_TENSOR_LIST_DEPTH_MAX; depth++) {
        struct troupe_tensor *inner = wrap(list);
        cr_assert_eq(troupe_tensor_list_create(TROUPE_VARIANT, &scalar, 1, &list), TROUPE_OK);
        cr_assert_eq(troupe_tensor_list_set(list, 0, inner), TROUPE_OK, "%s",
                     troupe_status_message());
        troupe_tensor_unref(inner);
        cr_assert_eq(list->depth, depth + 1);
    }
    cr_assert(troupe_tensor_list_is_valid(list));
    struct troupe_tensor *inner = wrap(list);
    cr_assert_eq(troupe_tensor_list_create(TROUPE_VARIANT, &scalar, 1, &list), TROUPE_OK);
    cr_assert_eq(troupe_tensor_list_set(list, 0, inner), TROUPE_INVALID_ARGUMENT);
    cr_assert_str_eq(troupe_status_message(), "lists lie in lists at most 32 deep");
    troupe_tensor_list_unref(list);
    troupe_tensor_unref(inner);
}

Test(list_ops, lengths_are_bounded)
{
    struct troupe_shape any = troupe_shape_unknown();
    struct troupe_tensor_list *list = NULL;
    cr_assert_eq(troupe_tensor_list_create(TROUPE_FLOAT32, &any, -1, &list),
                 TROUPE_INVALID_ARGUMENT);
    cr_assert_eq(
        troupe_tensor_list_create(TROUPE_FLOAT32, &any, TROUPE_TENSOR_LIST_LENGTH_MAX + 1, &list),
        TROUPE_INVALID_ARGUMENT);
    cr_assert_eq(
        troupe_tensor_list_create(TROUPE_FLOAT32, &any, INT64_C(0x4000000000000001), &list),
        TROUPE_INVALID_ARGUMENT);
    cr_assert_null(list);
}
