/* What kernels call, and how one is chosen. Invariant: an output that a kernel made is in
 * call->outputs, so that nothing is lost when it fails afterwards. */
#include <stdlib.h>
#include <string.h>

#include "ops/kernel.h"
#include "ops/tensor.h"
#include "troupe/log.h"

const struct troupe_attr *troupe_kernel_attr(const struct troupe_kernel *kernel, const char *name)
{
    return troupe_attr_find(kernel->attrs, kernel->attr_count, name);
}

/* An attr that the schema declares is always there; without it the kernel's row is wrong. */
static const struct troupe_attr *kernel_attr(const struct troupe_kernel *kernel, const char *name,
                                             enum troupe_attr_kind kind)
{
    const struct troupe_attr *attr = troupe_kernel_attr(kernel, name);
    if (!attr || attr->kind != kind) {
        troupe_log(TROUPE_LOG_ERROR, "node \"%s\" (%s): its kernel wants an attr \"%s\" of kind %s",
                   kernel->name, kernel->schema ? kernel->schema->op->name : "?", name,
                   troupe_attr_kind_name(kind));
        abort();
    }
    return attr;
}

int64_t troupe_kernel_int(const struct troupe_kernel *kernel, const char *name)
{
    return kernel_attr(kernel, name, TROUPE_ATTR_INT)->value.i;
}

double troupe_kernel_float(const struct troupe_kernel *kernel, const char *name)
{
    return kernel_attr(kernel, name, TROUPE_ATTR_FLOAT)->value.f;
}

bool troupe_kernel_bool(const struct troupe_kernel *kernel, const char *name)
{
    return kernel_attr(kernel, name, TROUPE_ATTR_BOOL)->value.b;
}

enum troupe_dtype troupe_kernel_type(const struct troupe_kernel *kernel, const char *name)
{
    return kernel_attr(kernel, name, TROUPE_ATTR_TYPE)->value.type;
}

enum troupe_status troupe_call_output(struct troupe_kernel_call *call, int index, int rank,
                                      const int64_t *dims, struct troupe_tensor **out)
{
    struct troupe_tensor *tensor;
    enum troupe_status status =
        troupe_tensor_create(call->kernel->output_dtypes[index], rank, dims, &tensor);
    if (status != TROUPE_OK)
        return status;
    troupe_tensor_unref(call->outputs[index]);
    call->outputs[index] = tensor;
    *out = tensor;
    return TROUPE_OK;
}

enum troupe_status troupe_call_compute(struct troupe_kernel_call *call)
{
    const struct troupe_kernel *kernel = call->kernel;
    for (int i = 0; i < kernel->output_count; i++)
        call->outputs[i] = NULL;
    enum troupe_status status = kernel->row->compute(call);
    if (status == TROUPE_OK && call->is_deferred)
        return TROUPE_OK;
    for (int i = 0; status == TROUPE_OK && i < kernel->output_count; i++) {
        if (!call->outputs[i])
            status = troupe_status_fail(TROUPE_INTERNAL, "the kernel did not set output %d", i);
    }
    for (int i = 0; status != TROUPE_OK && i < kernel->output_count; i++) {
        troupe_tensor_unref(call->outputs[i]);
        call->outputs[i] = NULL;
    }
    return status;
}

enum troupe_status troupe_call_defer(struct troupe_kernel_call *call, struct troupe_deferred *out)
{
    if (!call->defer)
        return troupe_status_fail(TROUPE_FAILED_PRECONDITION,
                                  "nothing can be waited for outside of a plan");
    call->is_deferred = true;
    call->defer(call->later.firing);
    *out = call->later;
    return TROUPE_OK;
}

void troupe_deferred_complete(const struct troupe_deferred *deferred, enum troupe_status status,
                              const char *message, struct troupe_tensor **outputs)
{
    if (status != TROUPE_OK && !message)
        message = troupe_status_message();
    deferred->complete(deferred->firing, status, message, outputs);
}

enum troupe_status troupe_call_output_like(struct troupe_kernel_call *call, int index, int input,
                                           struct troupe_tensor **out)
{
    struct troupe_tensor *like = call->inputs[input];
    /* The mailbox's reference is the only one, and nobody reads it after this firing. Taken over
     * twice it is not unique any more, so that two outputs never share it. Counted
     * elements are not written in place. */
    if (like->dtype != call->kernel->output_dtypes[index] || troupe_dtype_is_counted(like->dtype) ||
        !troupe_tensor_is_unique(like))
        return troupe_call_output(call, index, like->rank, like->dims, out);
    troupe_tensor_unref(call->outputs[index]);
    call->outputs[index] = troupe_tensor_ref(like);
    *out = like;
    return TROUPE_OK;
}

static void print_dtypes(troupe_dtype_set set, struct troupe_text *out)
{
    const char *comma = "";
    for (int dtype = 1; dtype < TROUPE_DTYPE_COUNT; dtype++) {
        if (!(set & TROUPE_DTYPE_BIT(dtype)) || troupe_dtype_size((enum troupe_dtype)dtype) == 0)
            continue;
        troupe_text_addf(out, "%s%s", comma, troupe_dtype_name((enum troupe_dtype)dtype));
        comma = ", ";
    }
}

static bool row_fits(const struct troupe_kernel_row *row, const char *device,
                     const struct troupe_named_attr *attrs, int attr_count)
{
    if (strcmp(row->device, device) != 0)
        return false;
    if (!row->type_attr)
        return true;
    const struct troupe_attr *attr = troupe_attr_find(attrs, attr_count, row->type_attr);
    return attr && attr->kind == TROUPE_ATTR_TYPE &&
           (row->dtypes & TROUPE_DTYPE_BIT((unsigned)attr->value.type)) != 0;
}

/* "no CPU kernel of MatMul for T = int32: there is CPU for T in {float32, float64}". */
static void explain_missing(const struct troupe_op *op, const char *device,
                            const struct troupe_named_attr *attrs, int attr_count)
{
    struct troupe_text text;
    troupe_text_init(&text);
    troupe_text_addf(&text, "no %s kernel of %s", device, op->name);
    const char *type_attr = op->kernel_count > 0 ? op->kernels[0].type_attr : NULL;
    const struct troupe_attr *attr =
        type_attr ? troupe_attr_find(attrs, attr_count, type_attr) : NULL;
    if (attr && attr->kind == TROUPE_ATTR_TYPE)
        troupe_text_addf(&text, " for %s = %s", type_attr, troupe_dtype_name(attr->value.type));
    troupe_text_add(&text, op->kernel_count > 0 ? ": there is " : ": there is none at all");
    for (size_t i = 0; i < op->kernel_count; i++) {
        const struct troupe_kernel_row *row = &op->kernels[i];
        troupe_text_addf(&text, "%s%s", i > 0 ? "; " : "", row->device);
        if (!row->type_attr)
            continue;
        troupe_text_addf(&text, " for %s in {", row->type_attr);
        print_dtypes(row->dtypes, &text);
        troupe_text_add(&text, "}");
    }
    (void)troupe_status_fail(TROUPE_UNIMPLEMENTED, "%s",
                             text.failed || !text.data ? "no kernel fits" : text.data);
    troupe_text_fini(&text);
}

const struct troupe_kernel_row *troupe_kernel_row_find(const struct troupe_op_schema *schema,
                                                       const char *device,
                                                       const struct troupe_named_attr *attrs,
                                                       int attr_count)
{
    const struct troupe_op *op = schema->op;
    for (size_t i = 0; i < op->kernel_count; i++) {
        if (row_fits(&op->kernels[i], device, attrs, attr_count))
            return &op->kernels[i];
    }
    explain_missing(op, device, attrs, attr_count);
    return NULL;
}
