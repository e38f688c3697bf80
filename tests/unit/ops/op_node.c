/* One op, run alone. Invariant: what the last call made is owned by `outputs`. */
#include "op_node.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "graph/literal.h"
#include "ops/string.h"
#include "ops/tensor.h"

struct troupe_tensor *op_tensor(const char *text)
{
    char name[16];
    enum troupe_dtype dtype;
    struct troupe_tensor *tensor;
    size_t length = strcspn(text, " ");
    cr_assert_lt(length, sizeof(name));
    memcpy(name, text, length);
    name[length] = '\0';
    cr_assert_eq(troupe_dtype_parse(name, &dtype), TROUPE_OK, "%s", text);
    cr_assert_eq(troupe_tensor_from_json_text(text + length + 1, dtype, &tensor), TROUPE_OK,
                 "%s: %s", text, troupe_status_message());
    return tensor;
}

/* NaN equals NaN, and an infinity itself. */
static bool number_equal(double a, double b, double tolerance)
{
    return a == b || (isnan(a) && isnan(b)) || fabs(a - b) <= tolerance;
}

static bool element_equal(const struct troupe_tensor *a, const struct troupe_tensor *b, int64_t i,
                          double tolerance)
{
    const void *x = troupe_tensor_data(a), *y = troupe_tensor_data(b);
    size_t size = troupe_dtype_size(a->dtype);
    switch (a->dtype) {
    case TROUPE_FLOAT32:
        return number_equal((double)((const float *)x)[i], (double)((const float *)y)[i],
                            tolerance);
    case TROUPE_FLOAT64:
        return number_equal(((const double *)x)[i], ((const double *)y)[i], tolerance);
    case TROUPE_STRING:
        return strcmp(troupe_string_data(((struct troupe_string *const *)x)[i]),
                      troupe_string_data(((struct troupe_string *const *)y)[i])) == 0;
    default:
        return memcmp((const char *)x + (size_t)i * size, (const char *)y + (size_t)i * size,
                      size) == 0;
    }
}

void op_expect(const struct troupe_tensor *got, const char *text, double tolerance,
               const char *what)
{
    struct troupe_tensor *wanted = op_tensor(text);
    struct troupe_shape a = troupe_shape_of(got), b = troupe_shape_of(wanted);
    char at[TROUPE_SHAPE_TEXT_MAX], bt[TROUPE_SHAPE_TEXT_MAX];
    cr_assert_eq(got->dtype, wanted->dtype, "%s: got %s, wants %s", what,
                 troupe_dtype_name(got->dtype), text);
    cr_assert(troupe_shape_equal(&a, &b), "%s: got shape %s, wants %s", what,
              troupe_shape_print(&a, at), troupe_shape_print(&b, bt));
    for (int64_t i = 0; i < got->elements; i++) {
        if (element_equal(got, wanted, i, tolerance))
            continue;
        json_t *json = troupe_tensor_to_json(got);
        char *dump = json_dumps(json, JSON_ENCODE_ANY);
        cr_assert_fail("%s: element %lld: got %s, wants %s", what, (long long)i, dump, text);
    }
    troupe_tensor_unref(wanted);
}

/* The text behind "ref ", NULL for an input that is no variable. */
static const char *ref_of(const char *input)
{
    return strncmp(input, "ref ", 4) == 0 ? input + 4 : NULL;
}

/* Adds the shape of a tensor, or the part of it that is known. */
static void add_shape(struct troupe_text *text, const struct troupe_tensor *tensor,
                      enum op_known known)
{
    if (known == OP_KNOWS_NOTHING) {
        troupe_text_add(text, "null");
        return;
    }
    troupe_text_add(text, "[");
    for (int i = 0; i < tensor->rank; i++) {
        if (known == OP_KNOWS_RANKS)
            troupe_text_addf(text, "%snull", i > 0 ? ", " : "");
        else
            troupe_text_addf(text, "%s%lld", i > 0 ? ", " : "", (long long)tensor->dims[i]);
    }
    troupe_text_add(text, "]");
}

static void add_input(struct troupe_text *text, int index, const char *input, enum op_known known)
{
    const char *literal = ref_of(input) ? ref_of(input) : input;
    size_t length = strcspn(literal, " ");
    if (known == OP_KNOWS_VALUES && !ref_of(input)) {
        troupe_text_addf(text,
                         "{\"name\": \"i%d\", \"op\": \"Const\", \"attr\": {\"dtype\": \"%.*s\", "
                         "\"value\": %s}},\n",
                         index, (int)length, literal, literal + length + 1);
        return;
    }
    troupe_text_addf(text,
                     "{\"name\": \"i%d\", \"op\": \"%s\", \"attr\": {\"dtype\": \"%.*s\", "
                     "\"shape\": ",
                     index, ref_of(input) ? "Variable" : "Placeholder", (int)length, literal);
    struct troupe_tensor *tensor = op_tensor(literal);
    add_shape(text, tensor, known);
    troupe_text_add(text, "}},\n");
    troupe_tensor_unref(tensor);
}

/* Makes the tensor of an input, or the variable that has it. */
static void make_input(struct op_node *self, int index, const char *input)
{
    struct troupe_tensor *tensor = op_tensor(ref_of(input) ? ref_of(input) : input);
    self->input_dtypes[index] = tensor->dtype;
    if (!ref_of(input)) {
        self->inputs[index] = tensor;
        return;
    }
    struct troupe_shape shape = troupe_shape_of(tensor);
    struct troupe_variable *variable;
    cr_assert_eq(troupe_variable_create(tensor->dtype, &shape, &variable), TROUPE_OK);
    troupe_variable_set(variable, tensor);
    troupe_tensor_unref(tensor);
    self->states[index] = &variable->resource;
}

enum troupe_status op_node_init(struct op_node *self, const char *op, const char *const *inputs,
                                const char *attr, enum op_known known)
{
    struct troupe_text text;
    struct troupe_diagnostics diagnostics;
    *self = (struct op_node){.seed = 7, .stream = 11};
    troupe_text_init(&text);
    troupe_text_add(&text, "{\"node\": [\n");
    for (; self->input_count < OP_INPUTS_MAX && inputs[self->input_count]; self->input_count++) {
        add_input(&text, self->input_count, inputs[self->input_count], known);
        make_input(self, self->input_count, inputs[self->input_count]);
    }
    troupe_text_addf(&text, "{\"name\": \"z\", \"op\": \"%s\", \"input\": [", op);
    for (int i = 0; i < self->input_count; i++)
        troupe_text_addf(&text, "%s\"i%d\"", i > 0 ? ", " : "", i);
    troupe_text_addf(&text, "], \"attr\": {%s}}]}", attr ? attr : "");
    cr_assert(!text.failed);
    troupe_diagnostics_init(&diagnostics);
    enum troupe_status status =
        troupe_graph_parse(text.data, text.length, "g.json", 7, &diagnostics, &self->graph);
    if (status == TROUPE_OK)
        status = troupe_graph_infer(self->graph, 0, &diagnostics);
    enum troupe_status closed = troupe_diagnostics_close(&diagnostics);
    troupe_diagnostics_fini(&diagnostics);
    troupe_text_fini(&text);
    if (status == TROUPE_OK)
        status = closed;
    if (status == TROUPE_OK)
        self->node = &self->graph->nodes[troupe_graph_find(self->graph, "z")];
    return status;
}

static void drop_outputs(struct op_node *self)
{
    for (int i = 0; i < OP_OUTPUTS_MAX; i++) {
        troupe_tensor_unref(self->outputs[i]);
        self->outputs[i] = NULL;
    }
}

enum troupe_status op_node_call(struct op_node *self, uint64_t step)
{
    const struct troupe_node *node = self->node;
    struct troupe_kernel kernel = {.name = node->name,
                                   .origin = node->origin,
                                   .schema = node->schema,
                                   .attrs = node->attrs,
                                   .attr_count = node->attr_count,
                                   .input_count = node->input_count,
                                   .output_count = node->output_count,
                                   .input_dtypes = self->input_dtypes,
                                   .output_dtypes = node->output_dtypes,
                                   .output_shapes = node->output_shapes,
                                   .seed = self->seed,
                                   .stream = self->stream,
                                   .input_resources = self->states};
    struct troupe_kernel_call call = {.kernel = &kernel,
                                      .inputs = self->inputs,
                                      .outputs = self->outputs,
                                      .step = step,
                                      .parallel = self->parallel};
    cr_assert_leq(node->output_count, OP_OUTPUTS_MAX);
    drop_outputs(self);
    kernel.row = troupe_kernel_row_find(node->schema, "CPU", node->attrs, node->attr_count);
    cr_assert_not_null(kernel.row, "%s", troupe_status_message());
    if (node->schema->op->resource_create && !self->own) {
        enum troupe_status status = node->schema->op->resource_create(&kernel, &self->own);
        if (status != TROUPE_OK)
            return status;
    }
    kernel.own_resource = self->own;
    if (kernel.row->init)
        cr_assert_eq(kernel.row->init(&kernel), TROUPE_OK, "%s", troupe_status_message());
    enum troupe_status status = troupe_call_compute(&call);
    if (kernel.row->fini)
        kernel.row->fini(&kernel);
    return status;
}

void op_node_fini(struct op_node *self)
{
    drop_outputs(self);
    for (int i = 0; i < self->input_count; i++) {
        troupe_tensor_unref(self->inputs[i]);
        if (self->states[i])
            self->states[i]->destroy(self->states[i]);
    }
    if (self->own)
        self->own->destroy(self->own);
    troupe_graph_destroy(self->graph);
}

static void run_backwards(struct troupe_parallel *self, int64_t total, int64_t grain,
                          void (*body)(void *context, int64_t begin, int64_t end), void *context)
{
    (void)self;
    for (int64_t begin = (total - 1) / grain * grain; begin >= 0; begin -= grain)
        body(context, begin, begin + grain < total ? begin + grain : total);
}

struct troupe_parallel op_backwards = {4, run_backwards};
