/* The top-level sections of a graph file beside its nodes, decoded.
 *
 *   "train": {"loss": "loss", "optimizer": {"type": "Momentum", "learning_rate": 0.1,
 *             "momentum": 0.9}, "variables": ["w"]}          variables: default all trainable
 *   "loop": {"train": {"run": ["train"], "steps": 1000, "every": 50, "examples": "images",
 *                      "show": {"loss": "loss", "accuracy": "accuracy"}},
 *            "test":  {"after": "train", "steps": 10, "mean": {"test_accuracy": "test/hits"}}}
 *   "cluster": {"ps": [0], "worker": [1, 2]}                 job name -> ranks
 *   "strategy": "data-parallel"
 */
#ifndef TROUPE_GRAPH_SECTIONS_H
#define TROUPE_GRAPH_SECTIONS_H

#include <stdint.h>

#include "ops/attr.h"

/* A result's name and the value ("node:port") it comes from. */
struct troupe_named_value {
    char *name;
    char *value;
};

struct troupe_train_section {
    char *loss;
    char *optimizer; /* "GradientDescent", "Momentum", "Adam" */
    struct troupe_named_attr
        *hyperparameters; /* learning_rate, momentum, beta1, ... floats; use_nesterov bool */
    int hyperparameter_count;
    char **variables; /* NULL: all with trainable = true on which the loss depends */
    int variable_count;
    int line, column;
};

/* A loop: a plan run again and again. Ends after `steps`, or, when steps is 0, at the end of a
 * sequence. */
struct troupe_loop_section {
    char *name;
    char *after;        /* the loop that runs before it, NULL for none */
    char *with;         /* the loop that it starts together with, NULL for none */
    char *until;        /* the bool scalar with which it ends, NULL for none */
    int64_t timeout_ms; /* 0: none */
    int64_t staleness;
    char **run; /* targets */
    int run_count;
    int64_t steps;  /* 0: until the end of a sequence */
    int64_t every;  /* a progress line every so many steps; 0: by time */
    char *examples; /* the value whose leading dimension is the examples in a step; NULL */
    struct troupe_named_value *show; /* in progress, and the last step's value in the result */
    int show_count;
    struct troupe_named_value *mean; /* over every element and step, in the result */
    int mean_count;
    int line, column;
};

struct troupe_job {
    char *name;
    int *ranks;
    int rank_count;
};

struct troupe_sections {
    struct troupe_train_section *train; /* NULL: none */
    struct troupe_loop_section *loops;
    int loop_count;
    struct troupe_job *jobs;
    int job_count;
    char *strategy; /* NULL: none */
};

void troupe_sections_destroy(struct troupe_sections *sections);

#endif
