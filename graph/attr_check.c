/* Holding an attr's value to its schema. Invariant: the kind is compared first, so that the
 * union's member is the right one. */
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "graph/node.h"

static enum troupe_status dtype_check(troupe_dtype_set allowed, enum troupe_dtype dtype)
{
    struct troupe_text text;
    bool first = true;

    if (allowed == 0 || (allowed & TROUPE_DTYPE_BIT(dtype)) != 0)
        return TROUPE_OK;
    troupe_text_init(&text);
    for (int i = 0; i < TROUPE_DTYPE_COUNT; i++) {
        if ((allowed & TROUPE_DTYPE_BIT(i)) == 0)
            continue;
        troupe_text_addf(&text, "%s%s", first ? "" : ", ", troupe_dtype_name((enum troupe_dtype)i));
        first = false;
    }
    (void)troupe_status_fail(TROUPE_INVALID_ARGUMENT, "wants %s%s, got %s",
                             (allowed & (allowed - 1)) != 0 ? "one of " : "",
                             text.data != NULL ? text.data : "?", troupe_dtype_name(dtype));
    troupe_text_fini(&text);
    return TROUPE_INVALID_ARGUMENT;
}

static enum troupe_status string_check(const struct troupe_op_attr *wanted, const char *value)
{
    struct troupe_text text;

    for (size_t i = 0; i < wanted->string_count; i++) {
        if (strcmp(wanted->strings[i], value) == 0)
            return TROUPE_OK;
    }
    if (wanted->string_count == 0)
        return TROUPE_OK;
    troupe_text_init(&text);
    for (size_t i = 0; i < wanted->string_count; i++)
        troupe_text_addf(&text, "%s\"%s\"", i == 0 ? "" : ", ", wanted->strings[i]);
    (void)troupe_status_fail(TROUPE_INVALID_ARGUMENT, "wants %s%s, got \"%.64s\"",
                             wanted->string_count > 1 ? "one of " : "",
                             text.data != NULL ? text.data : "?", value);
    troupe_text_fini(&text);
    return TROUPE_INVALID_ARGUMENT;
}

static bool kind_is_list(enum troupe_attr_kind kind)
{
    return kind >= TROUPE_ATTR_LIST_STRING;
}

enum troupe_status troupe_attr_check(const struct troupe_op_attr *wanted,
                                     const struct troupe_attr *value)
{
    enum troupe_status status = TROUPE_OK;

    if (value->kind != wanted->kind)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "wants a %s, got a %s",
                                  troupe_attr_kind_name(wanted->kind),
                                  troupe_attr_kind_name(value->kind));
    if (wanted->has_minimum && wanted->kind == TROUPE_ATTR_INT && value->value.i < wanted->minimum)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "wants an int from %lld, got %lld",
                                  (long long)wanted->minimum, (long long)value->value.i);
    if (wanted->has_minimum && kind_is_list(wanted->kind) &&
        (int64_t)value->count < wanted->minimum)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "wants a list of at least %lld, got %zu",
                                  (long long)wanted->minimum, value->count);
    if (wanted->kind == TROUPE_ATTR_TYPE)
        return dtype_check(wanted->dtypes, value->value.type);
    if (wanted->kind == TROUPE_ATTR_STRING)
        return string_check(wanted, value->value.s);
    for (size_t i = 0; wanted->kind == TROUPE_ATTR_LIST_TYPE && i < value->count; i++) {
        status = dtype_check(wanted->dtypes, value->value.list_type[i]);
        if (status != TROUPE_OK)
            return status;
    }
    return TROUPE_OK;
}
