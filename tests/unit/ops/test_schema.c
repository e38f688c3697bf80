/* The schema notation, well formed and not, the registry, and the choice of kernels. */
#include <criterion/criterion.h>
#include <string.h>

#include "ops/kernel.h"
#include "ops/schema.h"

static enum troupe_status compute(struct troupe_kernel_call *call)
{
    (void)call;
    return TROUPE_OK;
}

static const struct troupe_kernel_row float_rows[] = {
    {.device = "CPU",
     .type_attr = "T",
     .dtypes = TROUPE_DTYPE_BIT(TROUPE_FLOAT32) | TROUPE_DTYPE_BIT(TROUPE_FLOAT64),
     .compute = compute},
    {.device = "GPU",
     .type_attr = "T",
     .dtypes = TROUPE_DTYPE_BIT(TROUPE_FLOAT32),
     .compute = compute},
};
static const struct troupe_kernel_row any_row[] = {{.device = "CPU", .compute = compute}};

static const struct troupe_op good = {
    .name = "Good",
    .doc = "Shows every part of the notation.",
    .inputs = "a: T, values: N * T, ref: Ref(T), x: float32, rest: Tlist",
    .outputs = "y: T , all: Tlist",
    .attrs = "T: {float32, float64} = float32; N: int >= 1 = 2; flag: bool = false; "
             "data_format: {'NHWC', 'NCHW'} = 'NHWC'; dtype: type; shape: shape = [2,?]; "
             "any: shape = ?; axis: list(int) = []; strides: list(int) >= 2 = [1, -1]; "
             "Tlist: list({float32, int32}) = [int32]; rate: float = 1e-3; f: func = 'g'; "
             "value: tensor; names: list(string) = ['a', 'b;c']; s: list(shape) = [?, [1]]; "
             "flags: list(bool) = [true]; fs: list(float) = [0.5]",
    .infer = troupe_infer_unknown,
    .no_gradient = "it is a test",
    .kernels = float_rows,
    .kernel_count = 2,
};

static const struct troupe_attr *default_of(const struct troupe_op_schema *schema, const char *name)
{
    const struct troupe_op_attr *attr = troupe_op_attr_find(schema, name);
    cr_assert(attr && attr->has_default, "%s", name);
    return &attr->default_value;
}

static void expect_args(const struct troupe_op_schema *schema)
{
    cr_assert_eq(schema->input_count, 5);
    cr_assert_str_eq(schema->inputs[0].type_attr, "T");
    cr_assert_str_eq(schema->inputs[1].number_attr, "N");
    cr_assert_str_eq(schema->inputs[1].type_attr, "T");
    cr_assert(schema->inputs[2].is_ref);
    cr_assert_not(schema->inputs[1].is_ref);
    cr_assert_eq(schema->inputs[3].dtype, TROUPE_FLOAT32);
    cr_assert_null(schema->inputs[3].type_attr);
    cr_assert_str_eq(schema->inputs[4].list_attr, "Tlist");
    cr_assert_eq(schema->output_count, 2);
    cr_assert_str_eq(schema->outputs[1].name, "all");
}

static void expect_attrs(const struct troupe_op_schema *schema)
{
    const struct troupe_op_attr *type = troupe_op_attr_find(schema, "T");
    cr_assert_eq(type->dtypes, TROUPE_DTYPE_BIT(TROUPE_FLOAT32) | TROUPE_DTYPE_BIT(TROUPE_FLOAT64));
    cr_assert_eq(troupe_op_attr_find(schema, "N")->minimum, 1);
    cr_assert_eq(default_of(schema, "N")->value.i, 2);
    cr_assert_eq(troupe_op_attr_find(schema, "data_format")->string_count, 2);
    cr_assert_str_eq(default_of(schema, "data_format")->value.s, "NHWC");
    cr_assert_not(troupe_op_attr_find(schema, "dtype")->has_default);
    cr_assert_eq(troupe_op_attr_find(schema, "value")->kind, TROUPE_ATTR_TENSOR);
    cr_assert_eq(default_of(schema, "shape")->value.shape.dims[1], TROUPE_DIM_UNKNOWN);
    cr_assert_eq(default_of(schema, "any")->value.shape.rank, TROUPE_RANK_UNKNOWN);
    cr_assert_eq(default_of(schema, "axis")->count, 0);
    cr_assert_eq(default_of(schema, "strides")->value.list_i[1], -1);
    cr_assert_eq(default_of(schema, "Tlist")->value.list_type[0], TROUPE_INT32);
    cr_assert_eq(default_of(schema, "rate")->value.f, 1e-3);
    cr_assert_eq(default_of(schema, "f")->kind, TROUPE_ATTR_FUNC);
    cr_assert_str_eq(default_of(schema, "names")->value.list_s[1], "b;c");
    cr_assert_eq(default_of(schema, "s")->value.list_shape[1].dims[0], 1);
    cr_assert(default_of(schema, "flags")->value.list_b[0]);
    cr_assert_eq(default_of(schema, "fs")->value.list_f[0], 0.5);
    cr_assert_null(troupe_op_attr_find(schema, "absent"));
}

Test(schema, reads_the_whole_notation)
{
    struct troupe_arena arena;
    struct troupe_op_schema schema;
    troupe_arena_init(&arena);
    cr_assert_eq(troupe_op_schema_parse(&good, &arena, &schema), TROUPE_OK, "%s",
                 troupe_status_message());
    cr_assert_eq(schema.op, &good);
    cr_assert_eq(schema.attr_count, 17);
    expect_args(&schema);
    expect_attrs(&schema);
    troupe_op_schema_fini(&schema);
    troupe_arena_fini(&arena);
}

Test(schema, empty_strings_mean_none)
{
    struct troupe_op op = good;
    struct troupe_arena arena;
    struct troupe_op_schema schema;
    op.inputs = op.outputs = op.attrs = "";
    op.kernels = any_row;
    op.kernel_count = 1;
    troupe_arena_init(&arena);
    cr_assert_eq(troupe_op_schema_parse(&op, &arena, &schema), TROUPE_OK);
    cr_assert_eq(schema.input_count + schema.output_count + schema.attr_count, 0);
    troupe_op_schema_fini(&schema);
    troupe_arena_fini(&arena);
}

static void expect_wrong(const struct troupe_op *op, const char *says)
{
    struct troupe_arena arena;
    struct troupe_op_schema schema = {.input_count = -1};
    troupe_arena_init(&arena);
    cr_assert_eq(troupe_op_schema_parse(op, &arena, &schema), TROUPE_INVALID_ARGUMENT, "wants: %s",
                 says);
    cr_assert(strstr(troupe_status_message(), says), "\"%s\" does not say \"%s\"",
              troupe_status_message(), says);
    cr_assert_eq(schema.input_count, -1);
    troupe_arena_fini(&arena);
}

Test(schema, refuses_malformed_strings)
{
    static const struct {
        const char *inputs, *attrs, *says;
    } rows[] = {
        {"a: Q", "T: type", "op \"Good\": inputs: \"a: Q\": wants a dtype or an attr of kind type"},
        {"a", "T: type", "wants a colon"},
        {"a: T b: T", "T: type", "wants a comma"},
        {"a: T,", "T: type", "wants a name"},
        {"a: T, a: T", "T: type", "different names"},
        {"a: Ref(T", "T: type", "closing parenthesis"},
        {"a: M * T", "T: type", "an attr of kind int"},
        {"a: N", "T: type; N: int", "a dtype or an attr of kind type"},
        {"a: N * L", "T: type; N: int; L: list(type)", "a dtype or an attr of kind type"},
        {"", "T", "wants a colon"},
        {"", "T: typo", "string, int, float"},
        {"", "T: type; T: type", "not there yet"},
        {"", "T: {float32, floot}", "wants a dtype"},
        {"", "T: {float32", "a comma or }"},
        {"", "T: type; s: {'a'} = 'b'", "a default that the attr allows"},
        {"", "T: {float32} = int32", "a default that the attr allows"},
        {"", "T: type; n: int >= 2 = 1", "a default that the attr allows"},
        {"", "T: type; n: list(int) >= 1 = []", "a default that the attr allows"},
        {"", "T: type; n: float >= 2", "only for an int or a list"},
        {"", "T: type; n: int = x", "a whole number"},
        {"", "T: type; n: int = 1 2", "a semicolon"},
        {"", "T: type; n: int = 99999999999999999999", "a whole number"},
        {"", "T: type; b: bool = yes", "true or false"},
        {"", "T: type; s: string = 'open", "closing quote"},
        {"", "T: type; s: shape = [-2]", "a size of 0 or more"},
        {"", "T: type; s: shape = [1,1,1,1,1,1,1,1,1]", "at most 8 sizes"},
        {"", "T: type; v: tensor = 3", "no default"},
        {"", "T: type; v: list(tensor)", "list(string)"},
        {"", "T: type; l: list(int) = [1", "a comma or ]"},
        {"", "T: type; l: list(string) = ['a', b]", "single quotes"},
        {"", "T: type;", "a name"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct troupe_op op = good;
        op.inputs = rows[i].inputs;
        op.outputs = "";
        op.attrs = rows[i].attrs;
        expect_wrong(&op, rows[i].says);
    }
}

Test(schema, refuses_incomplete_rows)
{
    struct troupe_kernel_row no_compute = {.device = "CPU"};
    struct troupe_op op = good;
    op.doc = "";
    expect_wrong(&op, "a doc line");
    op = good;
    op.outputs = NULL;
    expect_wrong(&op, "\"\" for none");
    op = good;
    op.infer = NULL;
    expect_wrong(&op, "a shape function");
    op = good;
    op.no_gradient = NULL;
    expect_wrong(&op, "a gradient, or the reason");
    op = good;
    op.flags = TROUPE_OP_RUNTIME;
    expect_wrong(&op, "unless the runtime");
    op = good;
    op.kernel_count = 0;
    expect_wrong(&op, "wants kernels");
    op = good;
    op.kernels = &no_compute;
    op.kernel_count = 1;
    expect_wrong(&op, "device and compute");
    op = good;
    op.inputs = op.outputs = "";
    op.attrs = "T: int";
    expect_wrong(&op, "an attr of kind type");
}

Test(kernel_row, is_chosen_by_device_and_dtype)
{
    struct troupe_op_schema schema = {.op = &good};
    char name[] = "T";
    struct troupe_named_attr attr = {name, troupe_attr_type(TROUPE_FLOAT64)};
    cr_assert_eq(troupe_kernel_row_find(&schema, "CPU", &attr, 1), &float_rows[0]);
    cr_assert_null(troupe_kernel_row_find(&schema, "GPU", &attr, 1));
    cr_assert_str_eq(troupe_status_message(),
                     "no GPU kernel of Good for T = float64: there is CPU for T in {float32, "
                     "float64}; GPU for T in {float32}");
    cr_assert_null(troupe_kernel_row_find(&schema, "CPU", NULL, 0));
    struct troupe_op any = good;
    any.kernels = any_row;
    any.kernel_count = 1;
    schema.op = &any;
    cr_assert_eq(troupe_kernel_row_find(&schema, "CPU", NULL, 0), any_row);
}

Test(registry, is_sorted_and_finds_each_op)
{
    size_t count;
    const struct troupe_op_schema *const *all = troupe_op_list(&count);
    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(troupe_op_find(all[i]->op->name), all[i]);
        cr_assert(i == 0 || strcmp(all[i - 1]->op->name, all[i]->op->name) < 0);
    }
    cr_assert_null(troupe_op_find("NoSuchOp"));
    if (troupe_op_find("MatMul"))
        cr_assert_str_eq(troupe_op_suggest("Matmul"), "MatMul");
    cr_assert_null(troupe_op_suggest("Qwertyuiopasdfghjkl"));
}
