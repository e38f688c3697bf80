/* Parses the schema strings of ops. Invariant: a parsed schema is complete: every attr that an
 * input or output names exists and is of the right kind, and every default is allowed. */
#include <string.h>

#include "ops/scan.h"
#include "ops/schema.h"

#define SCHEMA_ITEMS_MAX 64

static const struct troupe_op_attr *attr_find(const struct troupe_op_schema *schema,
                                              const char *name)
{
    for (int i = 0; i < schema->attr_count; i++) {
        if (strcmp(schema->attrs[i].name, name) == 0)
            return &schema->attrs[i];
    }
    return NULL;
}

const struct troupe_op_attr *troupe_op_attr_find(const struct troupe_op_schema *schema,
                                                 const char *name)
{
    return attr_find(schema, name);
}

/* How many items lie between separators, which do not occur within [], {}, () or quotes. */
static int count_items(const char *text, char separator)
{
    int items = 0, depth = 0;
    bool quoted = false, any = false;
    for (; *text; text++) {
        any |= *text != ' ' && *text != '\n';
        quoted ^= *text == '\'';
        if (quoted)
            continue;
        depth += *text == '[' || *text == '{' || *text == '(';
        depth -= *text == ']' || *text == '}' || *text == ')';
        items += *text == separator && depth == 0;
    }
    return any ? items + 1 : 0;
}

/* {float32, int32} or {'a', 'b'}; the opening brace is taken. Sets the kind, TYPE or STRING. */
static enum troupe_status parse_set(struct troupe_scan *scan, struct troupe_op_attr *attr)
{
    const char *strings[SCHEMA_ITEMS_MAX];
    enum troupe_status status = TROUPE_OK;
    attr->kind = *scan->at == '\'' ? TROUPE_ATTR_STRING : TROUPE_ATTR_TYPE;
    for (bool more = true; more && status == TROUPE_OK; more = troupe_scan_take(scan, ",")) {
        struct troupe_attr type;
        if (attr->kind == TROUPE_ATTR_TYPE) {
            status = troupe_scan_value(scan, TROUPE_ATTR_TYPE, &type);
            if (status == TROUPE_OK)
                attr->dtypes |= TROUPE_DTYPE_BIT((unsigned)type.value.type);
        } else if (attr->string_count == SCHEMA_ITEMS_MAX) {
            status = troupe_scan_wants(scan, "at most 64 texts");
        } else {
            status = troupe_scan_quoted(scan, &strings[attr->string_count]);
            attr->string_count += status == TROUPE_OK;
        }
    }
    if (status != TROUPE_OK)
        return status;
    if (!troupe_scan_take(scan, "}"))
        return troupe_scan_wants(scan, "a comma or }");
    if (attr->string_count > 0) {
        attr->strings =
            troupe_arena_alloc(scan->arena, attr->string_count * sizeof(char *), _Alignof(char *));
        if (!attr->strings)
            return TROUPE_RESOURCE_EXHAUSTED;
        memcpy(attr->strings, strings, attr->string_count * sizeof(char *));
    }
    return TROUPE_OK;
}

static enum troupe_status parse_simple_kind(struct troupe_scan *scan, struct troupe_op_attr *attr)
{
    static const char wants[] = "string, int, float, bool, type, shape, tensor, func, list(...) or "
                                "a set in {}";
    if (troupe_scan_take(scan, "{")) {
        while (*scan->at == ' ')
            scan->at++;
        return parse_set(scan, attr);
    }
    struct troupe_scan start = *scan;
    const char *name;
    if (troupe_scan_name(scan, &name) == TROUPE_OK) {
        for (int kind = TROUPE_ATTR_STRING; kind <= TROUPE_ATTR_FUNC; kind++) {
            attr->kind = (enum troupe_attr_kind)kind;
            if (strcmp(name, troupe_attr_kind_name(attr->kind)) == 0)
                return TROUPE_OK;
        }
    }
    return troupe_scan_wants(&start, wants);
}

static enum troupe_status list_of(struct troupe_scan *scan, enum troupe_attr_kind item,
                                  enum troupe_attr_kind *out)
{
    static const enum troupe_attr_kind lists[TROUPE_ATTR_KIND_COUNT] = {
        [TROUPE_ATTR_STRING] = TROUPE_ATTR_LIST_STRING,
        [TROUPE_ATTR_INT] = TROUPE_ATTR_LIST_INT,
        [TROUPE_ATTR_FLOAT] = TROUPE_ATTR_LIST_FLOAT,
        [TROUPE_ATTR_BOOL] = TROUPE_ATTR_LIST_BOOL,
        [TROUPE_ATTR_TYPE] = TROUPE_ATTR_LIST_TYPE,
        [TROUPE_ATTR_SHAPE] = TROUPE_ATTR_LIST_SHAPE,
    };
    if (lists[item] == TROUPE_ATTR_NONE)
        return troupe_scan_wants(scan, "list(string), (int), (float), (bool), (type) or (shape)");
    *out = lists[item];
    return TROUPE_OK;
}

static enum troupe_status parse_kind(struct troupe_scan *scan, struct troupe_op_attr *attr)
{
    if (!troupe_scan_take(scan, "list("))
        return parse_simple_kind(scan, attr);
    enum troupe_status status = parse_simple_kind(scan, attr);
    if (status != TROUPE_OK)
        return status;
    if (!troupe_scan_take(scan, ")"))
        return troupe_scan_wants(scan, "a closing parenthesis");
    return list_of(scan, attr->kind, &attr->kind);
}

static bool is_list(enum troupe_attr_kind kind)
{
    return kind >= TROUPE_ATTR_LIST_STRING && kind < TROUPE_ATTR_KIND_COUNT;
}

static bool type_allowed(const struct troupe_op_attr *attr, enum troupe_dtype dtype)
{
    return attr->dtypes == 0 || (attr->dtypes & TROUPE_DTYPE_BIT((unsigned)dtype)) != 0;
}

static bool default_allowed(const struct troupe_op_attr *attr)
{
    const struct troupe_attr *value = &attr->default_value;
    if (attr->kind == TROUPE_ATTR_TYPE && !type_allowed(attr, value->value.type))
        return false;
    for (size_t i = 0; attr->kind == TROUPE_ATTR_LIST_TYPE && i < value->count; i++) {
        if (!type_allowed(attr, value->value.list_type[i]))
            return false;
    }
    bool found = attr->string_count == 0 || attr->kind != TROUPE_ATTR_STRING;
    for (size_t i = 0; !found && i < attr->string_count; i++)
        found = strcmp(attr->strings[i], value->value.s) == 0;
    if (attr->has_minimum && attr->kind == TROUPE_ATTR_INT && value->value.i < attr->minimum)
        return false;
    if (attr->has_minimum && is_list(attr->kind) && (int64_t)value->count < attr->minimum)
        return false;
    return found;
}

/* name: kind [>= minimum] [= default] */
static enum troupe_status parse_attr(struct troupe_scan *scan, struct troupe_op_schema *schema)
{
    struct troupe_op_attr attr = {0};
    enum troupe_status status = troupe_scan_name(scan, &attr.name);
    if (status != TROUPE_OK)
        return status;
    if (attr_find(schema, attr.name))
        return troupe_scan_wants(scan, "a name that is not there yet before this");
    if (!troupe_scan_take(scan, ":"))
        return troupe_scan_wants(scan, "a colon");
    status = parse_kind(scan, &attr);
    if (status == TROUPE_OK && troupe_scan_take(scan, ">=")) {
        attr.has_minimum = true;
        if (attr.kind != TROUPE_ATTR_INT && !is_list(attr.kind))
            return troupe_scan_wants(scan, "a minimum only for an int or a list");
        status = troupe_scan_int(scan, &attr.minimum);
    }
    if (status == TROUPE_OK && troupe_scan_take(scan, "=")) {
        attr.has_default = true;
        status = troupe_scan_value(scan, attr.kind, &attr.default_value);
        if (status == TROUPE_OK && !default_allowed(&attr)) {
            troupe_attr_fini(&attr.default_value);
            return troupe_scan_wants(scan, "a default that the attr allows before this");
        }
    }
    if (status == TROUPE_OK)
        schema->attrs[schema->attr_count++] = attr;
    return status;
}

static enum troupe_status parse_attrs(const char *text, struct troupe_arena *arena,
                                      struct troupe_op_schema *schema)
{
    struct troupe_scan scan = {text, text, arena};
    int count = count_items(text, ';');
    if (count == 0)
        return TROUPE_OK;
    schema->attrs = troupe_arena_alloc(arena, (size_t)count * sizeof(*schema->attrs),
                                       _Alignof(struct troupe_op_attr));
    if (!schema->attrs)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < count; i++) {
        if (i > 0 && !troupe_scan_take(&scan, ";"))
            return troupe_scan_wants(&scan, "a semicolon");
        enum troupe_status status = parse_attr(&scan, schema);
        if (status != TROUPE_OK)
            return status;
    }
    return troupe_scan_at_end(&scan) ? TROUPE_OK : troupe_scan_wants(&scan, "a semicolon");
}

/* A dtype, an attr of kind type, or one of kind list(type). */
static enum troupe_status parse_type(struct troupe_scan *scan,
                                     const struct troupe_op_schema *schema,
                                     struct troupe_op_arg *arg)
{
    struct troupe_scan start = *scan;
    const char *name;
    enum troupe_status status = troupe_scan_name(scan, &name);
    if (status != TROUPE_OK)
        return status;
    const struct troupe_op_attr *attr = attr_find(schema, name);
    if (attr && attr->kind == TROUPE_ATTR_TYPE)
        arg->type_attr = attr->name;
    else if (attr && attr->kind == TROUPE_ATTR_LIST_TYPE && !arg->number_attr && !arg->is_ref)
        arg->list_attr = attr->name;
    else if (attr || troupe_dtype_parse(name, &arg->dtype) != TROUPE_OK)
        return troupe_scan_wants(&start, "a dtype or an attr of kind type");
    return TROUPE_OK;
}

/* name: type | name: Ref(type) | name: N * type | name: list */
static enum troupe_status parse_arg(struct troupe_scan *scan, const struct troupe_op_schema *schema,
                                    struct troupe_op_arg *out)
{
    struct troupe_op_arg arg = {0};
    enum troupe_status status = troupe_scan_name(scan, &arg.name);
    if (status != TROUPE_OK)
        return status;
    if (!troupe_scan_take(scan, ":"))
        return troupe_scan_wants(scan, "a colon");
    arg.is_ref = troupe_scan_take(scan, "Ref(");
    struct troupe_scan start = *scan;
    const char *number;
    if (!arg.is_ref && troupe_scan_name(scan, &number) == TROUPE_OK &&
        troupe_scan_take(scan, "*")) {
        const struct troupe_op_attr *attr = attr_find(schema, number);
        if (!attr || attr->kind != TROUPE_ATTR_INT)
            return troupe_scan_wants(&start, "an attr of kind int before the *");
        arg.number_attr = attr->name;
    } else {
        *scan = start;
    }
    status = parse_type(scan, schema, &arg);
    if (status != TROUPE_OK)
        return status;
    if (arg.is_ref && !troupe_scan_take(scan, ")"))
        return troupe_scan_wants(scan, "a closing parenthesis");
    *out = arg;
    return TROUPE_OK;
}

static enum troupe_status parse_args(const char *text, struct troupe_arena *arena,
                                     const struct troupe_op_schema *schema,
                                     struct troupe_op_arg **args_out, int *count_out)
{
    struct troupe_scan scan = {text, text, arena};
    int count = count_items(text, ',');
    struct troupe_op_arg *args = troupe_arena_alloc(arena, (size_t)(count + 1) * sizeof(*args),
                                                    _Alignof(struct troupe_op_arg));
    if (!args)
        return TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; i < count; i++) {
        if (i > 0 && !troupe_scan_take(&scan, ","))
            return troupe_scan_wants(&scan, "a comma");
        enum troupe_status status = parse_arg(&scan, schema, &args[i]);
        if (status != TROUPE_OK)
            return status;
        for (int j = 0; j < i; j++) {
            if (strcmp(args[i].name, args[j].name) == 0)
                return troupe_scan_wants(&scan, "different names before this");
        }
    }
    if (!troupe_scan_at_end(&scan))
        return troupe_scan_wants(&scan, "a comma");
    *args_out = args;
    *count_out = count;
    return TROUPE_OK;
}

static enum troupe_status row_check(const struct troupe_op *op,
                                    const struct troupe_op_schema *schema)
{
    if (!op->doc || !*op->doc)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "wants a doc line");
    if (!op->infer)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "wants a shape function");
    if (!op->gradient && !op->no_gradient)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "wants a gradient, or the reason why there is none");
    if (op->flags & TROUPE_OP_RUNTIME ? op->kernel_count > 0 : op->kernel_count == 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "wants kernels, unless the runtime itself does it");
    for (size_t i = 0; i < op->kernel_count; i++) {
        const struct troupe_kernel_row *row = &op->kernels[i];
        if (!row->device || !row->compute)
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "kernel %zu wants a device and compute", i);
        const struct troupe_op_attr *attr =
            row->type_attr ? attr_find(schema, row->type_attr) : NULL;
        if (row->type_attr && (!attr || attr->kind != TROUPE_ATTR_TYPE || row->dtypes == 0))
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "kernel %zu: \"%s\" wants to be an attr of kind type, with "
                                      "dtypes",
                                      i, row->type_attr);
    }
    return TROUPE_OK;
}

enum troupe_status troupe_op_schema_parse(const struct troupe_op *op, struct troupe_arena *arena,
                                          struct troupe_op_schema *out)
{
    struct troupe_op_schema schema = {.op = op};
    const char *part = "row";
    enum troupe_status status =
        op->name && op->inputs && op->outputs && op->attrs
            ? TROUPE_OK
            : troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                 "wants name, inputs, outputs and attrs (\"\" for none)");
    if (status == TROUPE_OK) {
        part = "attrs";
        status = parse_attrs(op->attrs, arena, &schema);
    }
    if (status == TROUPE_OK) {
        part = "inputs";
        status = parse_args(op->inputs, arena, &schema, &schema.inputs, &schema.input_count);
    }
    if (status == TROUPE_OK) {
        part = "outputs";
        status = parse_args(op->outputs, arena, &schema, &schema.outputs, &schema.output_count);
    }
    if (status == TROUPE_OK) {
        part = "row";
        status = row_check(op, &schema);
    }
    if (status != TROUPE_OK) {
        troupe_op_schema_fini(&schema);
        return troupe_status_prefix(status, "op \"%s\": %s: ", op->name ? op->name : "?", part);
    }
    *out = schema;
    return TROUPE_OK;
}

void troupe_op_schema_fini(struct troupe_op_schema *schema)
{
    for (int i = 0; i < schema->attr_count; i++)
        troupe_attr_fini(&schema->attrs[i].default_value);
    *schema = (struct troupe_op_schema){0};
}
