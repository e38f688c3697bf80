/* Scans names and values of schema strings. Invariant: `at` lies within the text, which ends in a
 * zero byte that nothing skips. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ops/scan.h"

#define SCAN_LIST_MAX 32

static void skip_blanks(struct troupe_scan *scan)
{
    while (isspace((unsigned char)*scan->at))
        scan->at++;
}

bool troupe_scan_take(struct troupe_scan *scan, const char *mark)
{
    skip_blanks(scan);
    size_t length = strlen(mark);
    if (strncmp(scan->at, mark, length) != 0)
        return false;
    scan->at += length;
    return true;
}

bool troupe_scan_at_end(struct troupe_scan *scan)
{
    skip_blanks(scan);
    return *scan->at == '\0';
}

enum troupe_status troupe_scan_wants(struct troupe_scan *scan, const char *what)
{
    return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "\"%s\": wants %s at \"%s\"", scan->text,
                              what, scan->at);
}

/* `length` bytes of the text from `at` on, as a string. */
static enum troupe_status scan_copy(struct troupe_scan *scan, size_t length, const char **out)
{
    char *copy = troupe_arena_alloc(scan->arena, length + 1, 1);
    if (!copy)
        return TROUPE_RESOURCE_EXHAUSTED;
    memcpy(copy, scan->at, length);
    *out = copy;
    scan->at += length;
    return TROUPE_OK;
}

enum troupe_status troupe_scan_name(struct troupe_scan *scan, const char **out)
{
    skip_blanks(scan);
    size_t length = 0;
    while (isalnum((unsigned char)scan->at[length]) || scan->at[length] == '_')
        length++;
    if (length == 0 || isdigit((unsigned char)*scan->at))
        return troupe_scan_wants(scan, "a name");
    return scan_copy(scan, length, out);
}

enum troupe_status troupe_scan_quoted(struct troupe_scan *scan, const char **out)
{
    if (!troupe_scan_take(scan, "'"))
        return troupe_scan_wants(scan, "a text in single quotes");
    const char *end = strchr(scan->at, '\'');
    if (!end)
        return troupe_scan_wants(scan, "a closing quote");
    enum troupe_status status = scan_copy(scan, (size_t)(end - scan->at), out);
    if (status == TROUPE_OK)
        scan->at++;
    return status;
}

enum troupe_status troupe_scan_int(struct troupe_scan *scan, int64_t *out)
{
    skip_blanks(scan);
    char *end;
    errno = 0;
    long long value = strtoll(scan->at, &end, 10);
    if (end == scan->at || errno == ERANGE)
        return troupe_scan_wants(scan, "a whole number");
    scan->at = end;
    *out = value;
    return TROUPE_OK;
}

static enum troupe_status scan_float(struct troupe_scan *scan, double *out)
{
    skip_blanks(scan);
    char *end;
    double value = strtod(scan->at, &end);
    if (end == scan->at)
        return troupe_scan_wants(scan, "a number");
    scan->at = end;
    *out = value;
    return TROUPE_OK;
}

static enum troupe_status scan_bool(struct troupe_scan *scan, bool *out)
{
    bool is_true = troupe_scan_take(scan, "true");
    if (!is_true && !troupe_scan_take(scan, "false"))
        return troupe_scan_wants(scan, "true or false");
    *out = is_true;
    return TROUPE_OK;
}

static enum troupe_status scan_type(struct troupe_scan *scan, enum troupe_dtype *out)
{
    const char *name;
    skip_blanks(scan);
    const char *start = scan->at;
    if (troupe_scan_name(scan, &name) == TROUPE_OK && troupe_dtype_parse(name, out) == TROUPE_OK)
        return TROUPE_OK;
    scan->at = start;
    return troupe_scan_wants(scan, "a dtype");
}

static enum troupe_status scan_shape(struct troupe_scan *scan, struct troupe_shape *out)
{
    *out = troupe_shape_unknown();
    if (troupe_scan_take(scan, "?"))
        return TROUPE_OK;
    if (!troupe_scan_take(scan, "["))
        return troupe_scan_wants(scan, "a shape, such as [2,?] or ?");
    *out = troupe_shape_scalar();
    while (!troupe_scan_take(scan, "]")) {
        int64_t size = TROUPE_DIM_UNKNOWN;
        if (out->rank == TROUPE_RANK_MAX)
            return troupe_scan_wants(scan, "at most 8 sizes");
        if (out->rank > 0 && !troupe_scan_take(scan, ","))
            return troupe_scan_wants(scan, "a comma or ]");
        if (!troupe_scan_take(scan, "?")) {
            enum troupe_status status = troupe_scan_int(scan, &size);
            if (status != TROUPE_OK)
                return status;
            if (size < 0)
                return troupe_scan_wants(scan, "a size of 0 or more");
        }
        out->dims[out->rank++] = size;
    }
    return TROUPE_OK;
}

static enum troupe_status scan_text(struct troupe_scan *scan, enum troupe_attr_kind kind,
                                    struct troupe_attr *out)
{
    const char *text;
    enum troupe_status status = troupe_scan_quoted(scan, &text);
    if (status != TROUPE_OK)
        return status;
    *out = troupe_attr_string(text);
    if (out->kind == TROUPE_ATTR_NONE)
        return TROUPE_RESOURCE_EXHAUSTED;
    out->kind = kind;
    return TROUPE_OK;
}

/* Copies a list on the stack into one of its own. */
static enum troupe_status list_keep(const struct troupe_attr *list, struct troupe_attr *out)
{
    *out = troupe_attr_copy(list);
    return out->kind == TROUPE_ATTR_NONE ? TROUPE_RESOURCE_EXHAUSTED : TROUPE_OK;
}

/* Scans the items of a list into arrays on the stack. */
static enum troupe_status scan_list(struct troupe_scan *scan, enum troupe_attr_kind kind,
                                    struct troupe_attr *out)
{
    union {
        char *s[SCAN_LIST_MAX];
        int64_t i[SCAN_LIST_MAX];
        double f[SCAN_LIST_MAX];
        bool b[SCAN_LIST_MAX];
        enum troupe_dtype type[SCAN_LIST_MAX];
        struct troupe_shape shape[SCAN_LIST_MAX];
    } items;
    enum troupe_status status = TROUPE_OK;
    struct troupe_attr list = {.kind = kind};
    struct troupe_attr text;
    if (!troupe_scan_take(scan, "["))
        return troupe_scan_wants(scan, "a list in []");
    while (status == TROUPE_OK && !troupe_scan_take(scan, "]")) {
        size_t n = list.count;
        if (n == SCAN_LIST_MAX || (n > 0 && !troupe_scan_take(scan, ","))) {
            status = troupe_scan_wants(scan, "a comma or ], and at most 32 items");
            break;
        }
        if (kind == TROUPE_ATTR_LIST_STRING) {
            status = scan_text(scan, TROUPE_ATTR_STRING, &text);
            items.s[n] = status == TROUPE_OK ? text.value.s : NULL;
        } else if (kind == TROUPE_ATTR_LIST_INT) {
            status = troupe_scan_int(scan, &items.i[n]);
        } else if (kind == TROUPE_ATTR_LIST_FLOAT) {
            status = scan_float(scan, &items.f[n]);
        } else if (kind == TROUPE_ATTR_LIST_BOOL) {
            status = scan_bool(scan, &items.b[n]);
        } else if (kind == TROUPE_ATTR_LIST_TYPE) {
            status = scan_type(scan, &items.type[n]);
        } else {
            status = scan_shape(scan, &items.shape[n]);
        }
        list.count += status == TROUPE_OK;
    }
    list.value.list_s = items.s;
    if (kind == TROUPE_ATTR_LIST_INT)
        list.value.list_i = items.i;
    else if (kind == TROUPE_ATTR_LIST_FLOAT)
        list.value.list_f = items.f;
    else if (kind == TROUPE_ATTR_LIST_BOOL)
        list.value.list_b = items.b;
    else if (kind == TROUPE_ATTR_LIST_TYPE)
        list.value.list_type = items.type;
    else if (kind == TROUPE_ATTR_LIST_SHAPE)
        list.value.list_shape = items.shape;
    if (status == TROUPE_OK)
        status = list_keep(&list, out);
    for (size_t i = 0; kind == TROUPE_ATTR_LIST_STRING && i < list.count; i++)
        free(items.s[i]);
    return status;
}

enum troupe_status troupe_scan_value(struct troupe_scan *scan, enum troupe_attr_kind kind,
                                     struct troupe_attr *out)
{
    struct troupe_attr value = {.kind = kind};
    enum troupe_status status;
    switch (kind) {
    case TROUPE_ATTR_STRING:
    case TROUPE_ATTR_FUNC:
        status = scan_text(scan, kind, &value);
        break;
    case TROUPE_ATTR_INT:
        status = troupe_scan_int(scan, &value.value.i);
        break;
    case TROUPE_ATTR_FLOAT:
        status = scan_float(scan, &value.value.f);
        break;
    case TROUPE_ATTR_BOOL:
        status = scan_bool(scan, &value.value.b);
        break;
    case TROUPE_ATTR_TYPE:
        status = scan_type(scan, &value.value.type);
        break;
    case TROUPE_ATTR_SHAPE:
        status = scan_shape(scan, &value.value.shape);
        break;
    case TROUPE_ATTR_NONE:
    case TROUPE_ATTR_TENSOR:
    case TROUPE_ATTR_KIND_COUNT:
        status = troupe_scan_wants(scan, "no default for this kind");
        break;
    default:
        status = scan_list(scan, kind, &value);
        break;
    }
    if (status == TROUPE_OK)
        *out = value;
    return status;
}
