/* The optimizers. To add one, add its op, and its row here. */
#include "graph/optimizer.h"

#include <string.h>

#include "base/text.h"

#define COUNT(array) (int)(sizeof(array) / sizeof((array)[0]))

static const struct troupe_optimizer_input descent_inputs[] = {
    {TROUPE_OPTIMIZER_VARIABLE, "var", NULL},
    {TROUPE_OPTIMIZER_HYPERPARAMETER, "learning_rate", NULL},
    {TROUPE_OPTIMIZER_GRADIENT, "delta", NULL},
};
static const struct troupe_hyperparameter descent_hyperparameters[] = {
    {.name = "learning_rate", .is_required = true},
};

static const struct troupe_optimizer_input momentum_inputs[] = {
    {TROUPE_OPTIMIZER_VARIABLE, "var", NULL},
    {TROUPE_OPTIMIZER_SLOT, "momentum", NULL},
    {TROUPE_OPTIMIZER_HYPERPARAMETER, "learning_rate", NULL},
    {TROUPE_OPTIMIZER_GRADIENT, "grad", NULL},
    {TROUPE_OPTIMIZER_HYPERPARAMETER, "momentum", NULL},
};
static const struct troupe_hyperparameter momentum_hyperparameters[] = {
    {.name = "learning_rate", .is_required = true},
    {.name = "momentum", .is_required = true},
    {.name = "use_nesterov", .is_flag = true},
};

static const struct troupe_optimizer_input adam_inputs[] = {
    {TROUPE_OPTIMIZER_VARIABLE, "var", NULL},
    {TROUPE_OPTIMIZER_SLOT, "m", NULL},
    {TROUPE_OPTIMIZER_SLOT, "v", NULL},
    {TROUPE_OPTIMIZER_POWER, "beta1_power", "beta1"},
    {TROUPE_OPTIMIZER_POWER, "beta2_power", "beta2"},
    {TROUPE_OPTIMIZER_HYPERPARAMETER, "learning_rate", NULL},
    {TROUPE_OPTIMIZER_HYPERPARAMETER, "beta1", NULL},
    {TROUPE_OPTIMIZER_HYPERPARAMETER, "beta2", NULL},
    {TROUPE_OPTIMIZER_HYPERPARAMETER, "epsilon", NULL},
    {TROUPE_OPTIMIZER_GRADIENT, "grad", NULL},
};
static const struct troupe_hyperparameter adam_hyperparameters[] = {
    {.name = "learning_rate", .value = 0.001}, {.name = "beta1", .value = 0.9},
    {.name = "beta2", .value = 0.999},         {.name = "epsilon", .value = 1e-8},
    {.name = "use_nesterov", .is_flag = true},
};

#define ROW(title, operation, prefix)                                                              \
    {                                                                                              \
        .name = title, .op = operation, .inputs = prefix##_inputs,                                 \
        .input_count = COUNT(prefix##_inputs), .hyperparameters = prefix##_hyperparameters,        \
        .hyperparameter_count = COUNT(prefix##_hyperparameters)                                    \
    }
static const struct troupe_optimizer optimizers[] = {
    ROW("GradientDescent", "ApplyGradientDescent", descent),
    ROW("SGD", "ApplyGradientDescent", descent),
    ROW("Momentum", "ApplyMomentum", momentum),
    ROW("Adam", "ApplyAdam", adam),
};
#undef ROW

static enum troupe_status unknown(const struct troupe_train_section *section, const char *path,
                                  const char *what, const char *name, const char *const *candidates,
                                  size_t count)
{
    const char *near = troupe_text_nearest(name, candidates, count);
    struct troupe_text list;
    troupe_text_init(&list);
    for (size_t i = 0; i < count; i++)
        troupe_text_addf(&list, "%s%s", i ? ", " : "", candidates[i]);
    enum troupe_status status = troupe_status_fail(
        TROUPE_INVALID_ARGUMENT, "%s:%d:%d: train: no %s \"%s\"%s%s%s: there are %s", path,
        section->line, section->column, what, name, near ? " (did you mean \"" : "",
        near ? near : "", near ? "\"?)" : "", list.data ? list.data : "");
    troupe_text_fini(&list);
    return status;
}

static const struct troupe_named_attr *given(const struct troupe_train_section *section,
                                             const char *name)
{
    for (int i = 0; i < section->hyperparameter_count; i++)
        if (strcmp(section->hyperparameters[i].name, name) == 0)
            return &section->hyperparameters[i];
    return NULL;
}

static bool number_of(const struct troupe_attr *value, double *out)
{
    if (value->kind == TROUPE_ATTR_FLOAT)
        *out = value->value.f;
    else if (value->kind == TROUPE_ATTR_INT)
        *out = (double)value->value.i;
    else if (value->kind == TROUPE_ATTR_BOOL)
        *out = value->value.b ? 1 : 0;
    else
        return false;
    return true;
}

static enum troupe_status check_hyperparameters(const struct troupe_optimizer *optimizer,
                                                const struct troupe_train_section *section,
                                                const char *path)
{
    const char *names[8];
    int count = optimizer->hyperparameter_count;
    for (int i = 0; i < count; i++) {
        const struct troupe_hyperparameter *wanted = &optimizer->hyperparameters[i];
        const struct troupe_named_attr *attr = given(section, wanted->name);
        names[i] = wanted->name;
        if (!attr && wanted->is_required)
            return troupe_status_fail(
                TROUPE_INVALID_ARGUMENT, "%s:%d:%d: train: optimizer \"%s\" wants \"%s\"", path,
                section->line, section->column, optimizer->name, wanted->name);
        double value;
        if (attr && (!number_of(&attr->value, &value) ||
                     (attr->value.kind == TROUPE_ATTR_BOOL) != wanted->is_flag))
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "%s:%d:%d: train: optimizer \"%s\": \"%s\" wants a %s", path,
                                      section->line, section->column, optimizer->name, wanted->name,
                                      wanted->is_flag ? "bool" : "number");
    }
    for (int i = 0; i < section->hyperparameter_count; i++) {
        bool known = false;
        for (int j = 0; j < count; j++)
            known = known || strcmp(names[j], section->hyperparameters[i].name) == 0;
        if (!known)
            return unknown(section, path, "hyperparameter", section->hyperparameters[i].name, names,
                           (size_t)count);
    }
    return TROUPE_OK;
}

enum troupe_status troupe_optimizer_find(const struct troupe_train_section *section,
                                         const char *path, const struct troupe_optimizer **out)
{
    const char *names[COUNT(optimizers)];
    for (int i = 0; i < COUNT(optimizers); i++) {
        names[i] = optimizers[i].name;
        if (strcmp(optimizers[i].name, section->optimizer) != 0)
            continue;
        enum troupe_status status = check_hyperparameters(&optimizers[i], section, path);
        if (status == TROUPE_OK)
            *out = &optimizers[i];
        return status;
    }
    return unknown(section, path, "optimizer", section->optimizer, names, COUNT(optimizers));
}

double troupe_optimizer_value(const struct troupe_optimizer *optimizer,
                              const struct troupe_train_section *section, const char *name)
{
    double value = 0;
    for (int i = 0; i < optimizer->hyperparameter_count; i++)
        if (strcmp(optimizer->hyperparameters[i].name, name) == 0)
            value = optimizer->hyperparameters[i].value;
    const struct troupe_named_attr *attr = given(section, name);
    if (attr)
        (void)number_of(&attr->value, &value);
    return value;
}
