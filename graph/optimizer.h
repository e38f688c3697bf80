/* Optimizers as data: which op updates a variable, and where each of its inputs comes from. Private
 * to graph/. */
#ifndef TROUPE_GRAPH_OPTIMIZER_H
#define TROUPE_GRAPH_OPTIMIZER_H

#include <stdbool.h>
#include <stddef.h>

#include "graph/sections.h"

/* Where an input of the update op comes from. */
enum troupe_optimizer_source {
    TROUPE_OPTIMIZER_VARIABLE,
    TROUPE_OPTIMIZER_GRADIENT,
    TROUPE_OPTIMIZER_SLOT,  /* a variable of the same shape, which starts at zero */
    TROUPE_OPTIMIZER_POWER, /* a scalar variable, multiplied by a hyperparameter after each step */
    TROUPE_OPTIMIZER_HYPERPARAMETER
};

struct troupe_optimizer_input {
    enum troupe_optimizer_source source;
    const char *name;     /* of the slot, the power variable, or the hyperparameter */
    const char *argument; /* of a POWER: its hyperparameter */
};

struct troupe_hyperparameter {
    const char *name;
    bool is_required;
    double value; /* the default */
    bool is_flag; /* a bool attr of the update op */
};

struct troupe_optimizer {
    const char *name, *op;
    const struct troupe_optimizer_input *inputs; /* in the op's order */
    int input_count;
    const struct troupe_hyperparameter *hyperparameters;
    int hyperparameter_count;
};

/* The optimizer of a section; INVALID_ARGUMENT, with a suggestion, for an unknown type or
 * hyperparameter, a missing one, or one that is no number. `path` is for the message. */
TROUPE_MUST_USE enum troupe_status troupe_optimizer_find(const struct troupe_train_section *section,
                                                         const char *path,
                                                         const struct troupe_optimizer **out);
/* A hyperparameter's value: the section's, or the default. */
double troupe_optimizer_value(const struct troupe_optimizer *optimizer,
                              const struct troupe_train_section *section, const char *name);

#endif
