/* `train`: gradients of the loss, one update for each variable, and a NoOp that stands for a step.
 * Invariant: names under PREFIXtrain/ belong to what is made here. */
#include "graph/train.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "graph/optimizer.h"
#include "graph/rewrite.h"

#define TROUPE_UPDATE_INPUTS_MAX 16

/* What the update of one replica is made with. Variables of float32 and of float64 have scalars of
 * their own dtype: [0] and [1]. */
struct updater {
    struct troupe_graph *graph;
    const char *prefix;
    const struct troupe_train_section *section;
    const struct troupe_optimizer *optimizer;
    int hyperparameters[2][TROUPE_UPDATE_INPUTS_MAX]; /* the Const of each input, made once; -1 */
    int powers[2][TROUPE_UPDATE_INPUTS_MAX];          /* the variable of each POWER input; -1 */
};

static bool is_variable(const struct troupe_node *node)
{
    return node->schema->op->resource_create && node->schema->output_count > 0 &&
           node->schema->outputs[0].is_ref &&
           (node->output_dtypes[0] == TROUPE_FLOAT32 || node->output_dtypes[0] == TROUPE_FLOAT64);
}

static bool is_trainable(const struct troupe_node *node)
{
    const struct troupe_attr *trainable =
        troupe_attr_find(node->attrs, node->attr_count, "trainable");
    return trainable && trainable->value.b && is_variable(node);
}

static char *prefixed(const char *prefix, const char *name)
{
    return troupe_asprintf("%s%s", prefix, name);
}

static enum troupe_status named_variables(struct troupe_graph *graph, const char *prefix,
                                          struct troupe_train_gradients *out)
{
    const struct troupe_train_section *section = graph->sections->train;
    for (int i = 0; i < section->variable_count; i++) {
        char *name = prefixed(prefix, section->variables[i]);
        struct troupe_value value;
        enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
        if (name)
            status = troupe_graph_value(graph, name, &value);
        free(name);
        if (status != TROUPE_OK)
            return troupe_status_prefix(status, "%s:%d:%d: train: variables: ", graph->path,
                                        section->line, section->column);
        if (!is_variable(&graph->nodes[value.node])) {
            char text[TROUPE_NODE_TEXT_MAX];
            return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                      "%s:%d:%d: train: variables: wants a Variable of float32 or "
                                      "float64, this is %s",
                                      graph->path, section->line, section->column,
                                      troupe_node_describe(graph, value.node, text));
        }
        out->variables[out->count++] = value.node;
    }
    return TROUPE_OK;
}

static enum troupe_status find_variables(struct troupe_graph *graph, const char *prefix,
                                         struct troupe_value loss,
                                         struct troupe_train_gradients *out)
{
    if (graph->sections->train->variable_count > 0)
        return named_variables(graph, prefix, out);
    bool *leads = troupe_calloc((size_t)graph->node_count + 1, sizeof(bool));
    if (!leads)
        return TROUPE_RESOURCE_EXHAUSTED;
    enum troupe_status status = troupe_graph_ancestors(graph, &loss.node, 1, NULL, leads);
    for (int i = 0; i < graph->node_count && status == TROUPE_OK; i++)
        if (leads[i] && is_trainable(&graph->nodes[i]))
            out->variables[out->count++] = i;
    free(leads);
    if (status == TROUPE_OK && out->count == 0) {
        char text[TROUPE_NODE_TEXT_MAX];
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "train: the loss, %s, depends on no trainable variable",
                                  troupe_node_describe(graph, loss.node, text));
    }
    return status;
}

static enum troupe_status differentiate(struct troupe_graph *graph, struct troupe_value loss,
                                        double weight, struct troupe_train_gradients *out)
{
    struct troupe_value *xs = troupe_calloc((size_t)out->count + 1, sizeof(*xs));
    out->gradients = troupe_calloc((size_t)out->count + 1, sizeof(*out->gradients));
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    for (int i = 0; xs && i < out->count; i++)
        xs[i] = (struct troupe_value){out->variables[i], 0};
    if (xs && out->gradients)
        status = troupe_graph_gradients_seeded(graph, loss, weight, xs, out->count, out->gradients);
    free(xs);
    for (int i = 0; i < out->count && status == TROUPE_OK; i++) {
        char text[TROUPE_NODE_TEXT_MAX];
        if (out->gradients[i].node < 0)
            status = troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                        "train: no gradient flows from the loss to %s",
                                        troupe_node_describe(graph, out->variables[i], text));
    }
    return status;
}

enum troupe_status troupe_train_differentiate(struct troupe_graph *graph, const char *prefix,
                                              double weight, struct troupe_train_gradients *out)
{
    const struct troupe_train_section *section = graph->sections->train;
    struct troupe_train_gradients result = {0};
    struct troupe_value loss;
    char *name = prefixed(prefix, section->loss);
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    if (name)
        status = troupe_graph_value(graph, name, &loss);
    free(name);
    if (status != TROUPE_OK)
        return troupe_status_prefix(status, "%s:%d:%d: train: loss: ", graph->path, section->line,
                                    section->column);
    size_t room = (size_t)graph->node_count + (size_t)section->variable_count + 1;
    result.variables = troupe_calloc(room, sizeof(int));
    status =
        result.variables ? find_variables(graph, prefix, loss, &result) : TROUPE_RESOURCE_EXHAUSTED;
    if (status == TROUPE_OK)
        status = differentiate(graph, loss, weight, &result);
    if (status != TROUPE_OK) {
        troupe_train_gradients_fini(&result);
        return status;
    }
    *out = result;
    return TROUPE_OK;
}

void troupe_train_gradients_fini(struct troupe_train_gradients *gradients)
{
    free(gradients->variables);
    free(gradients->gradients);
    *gradients = (struct troupe_train_gradients){0};
}

/* A Variable that is not trained, with a node that gives its first value. */
static enum troupe_status new_state(struct troupe_graph *graph, const char *name, int initial,
                                    int like, int *out)
{
    char dtype[] = "dtype", shape[] = "shape", initializer[] = "initializer",
         trainable[] = "trainable";
    struct troupe_named_attr attrs[] = {
        {dtype, troupe_attr_type(graph->nodes[initial].output_dtypes[0])},
        {shape, troupe_attr_shape(graph->nodes[initial].output_shapes[0])},
        {initializer, troupe_attr_string(graph->nodes[initial].name)},
        {trainable, troupe_attr_bool(false)},
    };
    struct troupe_new_node node = {
        .name = name, .op = "Variable", .attrs = attrs, .attr_count = 4, .like = like};
    return troupe_graph_new_node(graph, &node, out);
}

/* Zeros of the variable's shape. */
static enum troupe_status new_zeros(struct troupe_graph *graph, const char *name, int variable,
                                    int *out)
{
    const struct troupe_shape shape = graph->nodes[variable].output_shapes[0];
    enum troupe_dtype dtype = graph->nodes[variable].output_dtypes[0];
    int32_t dims[TROUPE_RANK_MAX];
    char text[TROUPE_NODE_TEXT_MAX];
    for (int i = 0; i < shape.rank; i++)
        dims[i] = (int32_t)shape.dims[i];
    if (!troupe_shape_is_known(&shape))
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "%s: a trained variable wants a known shape",
                                  troupe_node_describe(graph, variable, text));
    char *shape_name = troupe_asprintf("%s/shape", name);
    char *zero_name = troupe_asprintf("%s/zero", name);
    int dims_node, zero_node;
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    if (shape_name && zero_name)
        status = troupe_graph_new_ints(graph, shape_name, dims, shape.rank, variable, &dims_node);
    if (status == TROUPE_OK)
        status = troupe_graph_new_scalar(graph, zero_name, dtype, 0, variable, &zero_node);
    if (status == TROUPE_OK) {
        struct troupe_value inputs[] = {{dims_node, 0}, {zero_node, 0}};
        struct troupe_new_node node = {
            .name = name, .op = "Fill", .inputs = inputs, .input_count = 2, .like = variable};
        status = troupe_graph_new_node(graph, &node, out);
    }
    free(shape_name);
    free(zero_name);
    return status;
}

static enum troupe_status new_slot(struct updater *updater, int variable, const char *slot,
                                   int *out)
{
    struct troupe_graph *graph = updater->graph;
    /* The replica's prefix comes first, then "train/": names sort by replica. */
    const char *base = graph->nodes[variable].name + strlen(updater->prefix);
    char *name = troupe_asprintf("%strain/%s/%s", updater->prefix, base, slot);
    char *initial_name = troupe_asprintf("%strain/%s/%s/initial", updater->prefix, base, slot);
    int initial;
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    if (name && initial_name)
        status = new_zeros(graph, initial_name, variable, &initial);
    if (status == TROUPE_OK)
        status = new_state(graph, name, initial, variable, out);
    free(name);
    free(initial_name);
    return status;
}

/* The Const of a hyperparameter, or the variable of a power: one for all updates of a replica. */
static enum troupe_status shared_input(struct updater *updater, int input, int like, int *out)
{
    const struct troupe_optimizer_input *wanted = &updater->optimizer->inputs[input];
    bool is_power = wanted->source == TROUPE_OPTIMIZER_POWER;
    int wide = updater->graph->nodes[like].output_dtypes[0] == TROUPE_FLOAT64;
    int *known = is_power ? &updater->powers[wide][input] : &updater->hyperparameters[wide][input];
    if (*known >= 0) {
        *out = *known;
        return TROUPE_OK;
    }
    struct troupe_graph *graph = updater->graph;
    double value = troupe_optimizer_value(updater->optimizer, updater->section,
                                          is_power ? wanted->argument : wanted->name);
    char *name =
        troupe_asprintf("%strain/%s%s", updater->prefix, wanted->name, is_power ? "/initial" : "");
    char *state_name = troupe_asprintf("%strain/%s", updater->prefix, wanted->name);
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    int number = -1;
    if (name && state_name)
        status = troupe_graph_new_scalar(graph, name, graph->nodes[like].output_dtypes[0], value,
                                         like, &number);
    if (status == TROUPE_OK && is_power)
        status = new_state(graph, state_name, number, like, &number);
    free(name);
    free(state_name);
    if (status == TROUPE_OK)
        *known = *out = number;
    return status;
}

static enum troupe_status update_input(struct updater *updater, int input, int variable,
                                       struct troupe_value gradient, struct troupe_value *out)
{
    const struct troupe_optimizer_input *wanted = &updater->optimizer->inputs[input];
    int number = variable;
    enum troupe_status status = TROUPE_OK;
    if (wanted->source == TROUPE_OPTIMIZER_SLOT)
        status = new_slot(updater, variable, wanted->name, &number);
    else if (wanted->source != TROUPE_OPTIMIZER_VARIABLE &&
             wanted->source != TROUPE_OPTIMIZER_GRADIENT)
        status = shared_input(updater, input, variable, &number);
    *out =
        wanted->source == TROUPE_OPTIMIZER_GRADIENT ? gradient : (struct troupe_value){number, 0};
    return status;
}

/* The most flags that an optimizer has, and the longest name of one. */
#define TROUPE_FLAGS_MAX     4
#define TROUPE_FLAG_NAME_MAX 32

/* Flags of the section become attrs of the update op. */
static int flag_attrs(const struct updater *updater, struct troupe_named_attr *attrs,
                      char names[][TROUPE_FLAG_NAME_MAX])
{
    int count = 0;
    for (int i = 0; i < updater->optimizer->hyperparameter_count && count < TROUPE_FLAGS_MAX; i++) {
        const struct troupe_hyperparameter *flag = &updater->optimizer->hyperparameters[i];
        double value = troupe_optimizer_value(updater->optimizer, updater->section, flag->name);
        if (!flag->is_flag || value == 0)
            continue;
        snprintf(names[count], TROUPE_FLAG_NAME_MAX, "%s", flag->name);
        attrs[count] = (struct troupe_named_attr){names[count], troupe_attr_bool(true)};
        count++;
    }
    return count;
}

static enum troupe_status add_update(struct updater *updater, int variable,
                                     struct troupe_value gradient, int *out)
{
    struct troupe_value inputs[TROUPE_UPDATE_INPUTS_MAX];
    int count = updater->optimizer->input_count;
    enum troupe_status status = TROUPE_OK;
    for (int i = 0; i < count && status == TROUPE_OK; i++)
        status = update_input(updater, i, variable, gradient, &inputs[i]);
    if (status != TROUPE_OK)
        return status;
    char flags[TROUPE_FLAGS_MAX][TROUPE_FLAG_NAME_MAX];
    struct troupe_named_attr attrs[TROUPE_FLAGS_MAX];
    char *name = troupe_asprintf("%strain/update_%s", updater->prefix,
                                 updater->graph->nodes[variable].name + strlen(updater->prefix));
    struct troupe_new_node node = {.name = name,
                                   .op = updater->optimizer->op,
                                   .inputs = inputs,
                                   .input_count = count,
                                   .attrs = attrs,
                                   .attr_count = flag_attrs(updater, attrs, flags),
                                   .like = variable};
    status = name ? troupe_graph_new_node(updater->graph, &node, out) : TROUPE_RESOURCE_EXHAUSTED;
    free(name);
    return status;
}

/* power = power * hyperparameter, after all updates of the step. */
static enum troupe_status advance_power(struct updater *updater, int wide, int input,
                                        const int *updates, int count, int *out)
{
    struct troupe_graph *graph = updater->graph;
    const struct troupe_optimizer_input *wanted = &updater->optimizer->inputs[input];
    int power = updater->powers[wide][input], factor = -1, product;
    for (int i = 0; i < updater->optimizer->input_count; i++)
        if (strcmp(updater->optimizer->inputs[i].name, wanted->argument) == 0)
            factor = updater->hyperparameters[wide][i];
    char *product_name = troupe_asprintf("%strain/next_%s", updater->prefix, wanted->name);
    char *assign_name = troupe_asprintf("%strain/update_%s", updater->prefix, wanted->name);
    struct troupe_value factors[] = {{power, 0}, {factor, 0}};
    struct troupe_new_node node = {
        .name = product_name, .op = "Mul", .inputs = factors, .input_count = 2, .like = power};
    enum troupe_status status = TROUPE_RESOURCE_EXHAUSTED;
    if (product_name && assign_name)
        status = troupe_graph_new_node(graph, &node, &product);
    if (status == TROUPE_OK) {
        struct troupe_value inputs[] = {{power, 0}, {product, 0}};
        node = (struct troupe_new_node){.name = assign_name,
                                        .op = "Assign",
                                        .inputs = inputs,
                                        .input_count = 2,
                                        .controls = updates,
                                        .control_count = count,
                                        .like = power};
        status = troupe_graph_new_node(graph, &node, out);
    }
    free(product_name);
    free(assign_name);
    return status;
}

static enum troupe_status add_all(struct updater *updater,
                                  const struct troupe_train_gradients *gradients, int *updates,
                                  int *train)
{
    enum troupe_status status = TROUPE_OK;
    int count = gradients->count;
    for (int i = 0; i < count && status == TROUPE_OK; i++)
        status = add_update(updater, gradients->variables[i], gradients->gradients[i], &updates[i]);
    int all = count;
    for (int wide = 0; wide < 2; wide++)
        for (int i = 0; i < updater->optimizer->input_count && status == TROUPE_OK; i++)
            if (updater->powers[wide][i] >= 0)
                status = advance_power(updater, wide, i, updates, count, &updates[all++]);
    if (status != TROUPE_OK)
        return status;
    char *name = prefixed(updater->prefix, "train");
    struct troupe_new_node node = {
        .name = name, .op = "NoOp", .controls = updates, .control_count = all, .like = updates[0]};
    status = name ? troupe_graph_new_node(updater->graph, &node, train) : TROUPE_RESOURCE_EXHAUSTED;
    free(name);
    return status;
}

enum troupe_status troupe_train_update(struct troupe_graph *graph, const char *prefix,
                                       const struct troupe_train_gradients *gradients, int *train)
{
    struct updater updater = {.graph = graph, .prefix = prefix, .section = graph->sections->train};
    enum troupe_status status =
        troupe_optimizer_find(updater.section, graph->path, &updater.optimizer);
    if (status != TROUPE_OK)
        return status;
    for (int wide = 0; wide < 2; wide++)
        for (int i = 0; i < TROUPE_UPDATE_INPUTS_MAX; i++)
            updater.hyperparameters[wide][i] = updater.powers[wide][i] = -1;
    size_t room = (size_t)gradients->count + (size_t)2 * TROUPE_UPDATE_INPUTS_MAX;
    int *updates = troupe_calloc(room, sizeof(int));
    status = updates ? add_all(&updater, gradients, updates, train) : TROUPE_RESOURCE_EXHAUSTED;
    free(updates);
    return status;
}

enum troupe_status troupe_graph_train(struct troupe_graph *graph)
{
    if (!graph->sections || !graph->sections->train)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT, "%s has no \"train\" section",
                                  graph->path);
    if (troupe_graph_find(graph, "train") >= 0)
        return troupe_status_fail(TROUPE_INVALID_ARGUMENT,
                                  "%s: node \"train\": the name belongs to the \"train\" section",
                                  graph->path);
    struct troupe_train_gradients gradients;
    int train;
    enum troupe_status status = troupe_train_differentiate(graph, "", 1.0, &gradients);
    if (status != TROUPE_OK)
        return status;
    status = troupe_train_update(graph, "", &gradients, &train);
    troupe_train_gradients_fini(&gradients);
    return status;
}
