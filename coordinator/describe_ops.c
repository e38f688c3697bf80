/* `ops`: the registry, described from itself. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "ops/op.h"
#include "troupe/session.h"

static void add_dtypes(troupe_dtype_set set, const char *separator, struct troupe_text *out)
{
    bool first = true;
    for (int i = 0; i < TROUPE_DTYPE_COUNT; i++) {
        if (!(set & TROUPE_DTYPE_BIT(i)))
            continue;
        troupe_text_addf(out, "%s%s", first ? "" : separator,
                         troupe_dtype_name((enum troupe_dtype)i));
        first = false;
    }
}

static void add_kernels(const struct troupe_op *op, struct troupe_text *out)
{
    if (op->flags & TROUPE_OP_RUNTIME)
        troupe_text_add(out, "by the runtime");
    for (size_t i = 0; i < op->kernel_count; i++) {
        const struct troupe_kernel_row *row = &op->kernels[i];
        troupe_text_addf(out, "%s%s", i ? "; " : "", row->device);
        if (row->type_attr) {
            troupe_text_addf(out, " %s: ", row->type_attr);
            add_dtypes(row->dtypes, ", ", out);
        }
    }
}

static void op_text(const struct troupe_op *op, struct troupe_text *out)
{
    troupe_text_addf(out, "%s(%s) -> (%s)\n  %s\n", op->name, op->inputs, op->outputs, op->doc);
    if (op->attrs && op->attrs[0])
        troupe_text_addf(out, "  attrs: %s\n", op->attrs);
    troupe_text_add(out, "  kernels: ");
    add_kernels(op, out);
    if (op->gradient)
        troupe_text_add(out, "\n  gradient: yes\n");
    else
        troupe_text_addf(out, "\n  gradient: none (%s)\n", op->no_gradient);
}

static void op_markdown(const struct troupe_op *op, struct troupe_text *out)
{
    troupe_text_addf(out, "## %s\n\n%s\n\n- inputs: `%s`\n- outputs: `%s`\n", op->name, op->doc,
                     op->inputs, op->outputs);
    if (op->attrs && op->attrs[0])
        troupe_text_addf(out, "- attrs: `%s`\n", op->attrs);
    troupe_text_add(out, "- kernels: ");
    add_kernels(op, out);
    if (op->gradient)
        troupe_text_add(out, "\n- gradient: yes\n\n");
    else
        troupe_text_addf(out, "\n- gradient: none (%s)\n\n", op->no_gradient);
}

static json_t *op_json(const struct troupe_op *op)
{
    struct troupe_text kernels;
    troupe_text_init(&kernels);
    add_kernels(op, &kernels);
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b}", "name", op->name, "doc", op->doc, "inputs",
                  op->inputs, "outputs", op->outputs, "attrs", op->attrs ? op->attrs : "",
                  "kernels", kernels.data ? kernels.data : "", "gradient", op->gradient != NULL);
    if (!op->gradient)
        json_object_set_new(json, "no_gradient", json_string(op->no_gradient));
    troupe_text_fini(&kernels);
    return json;
}

static enum troupe_status all_json(const struct troupe_op_schema *const *schemas, size_t count,
                                   struct troupe_text *out)
{
    json_t *array = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, op_json(schemas[i]->op));
    char *text = json_dumps(array, JSON_INDENT(1));
    json_decref(array);
    if (!text)
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for the ops as JSON");
    troupe_text_addf(out, "%s\n", text);
    free(text);
    return TROUPE_OK;
}

static enum troupe_status unknown_op(const char *name)
{
    const char *near = troupe_op_suggest(name);
    if (near)
        return troupe_status_fail(TROUPE_NOT_FOUND, "no op \"%s\" (did you mean \"%s\"?)", name,
                                  near);
    return troupe_status_fail(TROUPE_NOT_FOUND, "no op \"%s\": `troupe ops` lists them", name);
}

enum troupe_status troupe_ops_describe(const char *name, const char *format, char **out)
{
    bool json = strcmp(format, "json") == 0, markdown = strcmp(format, "md") == 0;
    if (!json && !markdown && strcmp(format, "text") != 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "format \"%s\": wants text, json or md",
                                  format);
    size_t count;
    const struct troupe_op_schema *const *schemas = troupe_op_list(&count);
    const struct troupe_op_schema *one = name ? troupe_op_find(name) : NULL;
    if (name && !one)
        return unknown_op(name);
    if (name) {
        schemas = &one;
        count = 1;
    }
    struct troupe_text text;
    troupe_text_init(&text);
    enum troupe_status status = TROUPE_OK;
    if (json)
        status = all_json(schemas, count, &text);
    for (size_t i = 0; i < count && !json; i++) {
        if (markdown)
            op_markdown(schemas[i]->op, &text);
        else
            op_text(schemas[i]->op, &text);
    }
    char *result = status == TROUPE_OK ? troupe_text_take(&text) : NULL;
    troupe_text_fini(&text);
    if (status == TROUPE_OK && !result)
        return troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED, "no memory for the ops' text");
    if (status == TROUPE_OK)
        *out = result;
    return status;
}
