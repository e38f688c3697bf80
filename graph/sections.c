/* What the sections of a graph file hold. Invariant: every count says how many entries of its
 * array are complete or zero, so that a section that was half read can be destroyed. */
#include <stdlib.h>

#include "graph/sections.h"

static void train_destroy(struct troupe_train_section *train)
{
    if (train == NULL)
        return;
    free(train->loss);
    free(train->optimizer);
    for (int i = 0; i < train->hyperparameter_count; i++) {
        free(train->hyperparameters[i].name);
        troupe_attr_fini(&train->hyperparameters[i].value);
    }
    free(train->hyperparameters);
    for (int i = 0; i < train->variable_count; i++)
        free(train->variables[i]);
    free(train->variables);
    free(train);
}

static void named_values_destroy(struct troupe_named_value *values, int count)
{
    for (int i = 0; i < count; i++) {
        free(values[i].name);
        free(values[i].value);
    }
    free(values);
}

static void loop_fini(struct troupe_loop_section *loop)
{
    free(loop->name);
    free(loop->after);
    free(loop->with);
    free(loop->until);
    for (int i = 0; i < loop->run_count; i++)
        free(loop->run[i]);
    free(loop->run);
    free(loop->examples);
    named_values_destroy(loop->show, loop->show_count);
    named_values_destroy(loop->mean, loop->mean_count);
}

void troupe_sections_destroy(struct troupe_sections *sections)
{
    if (sections == NULL)
        return;
    train_destroy(sections->train);
    for (int i = 0; i < sections->loop_count; i++)
        loop_fini(&sections->loops[i]);
    free(sections->loops);
    for (int i = 0; i < sections->job_count; i++) {
        free(sections->jobs[i].name);
        free(sections->jobs[i].ranks);
    }
    free(sections->jobs);
    free(sections->strategy);
    free(sections);
}
