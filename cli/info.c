/* `troupe info`: what this build has and what it finds here. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"

static int command_info(struct troupe_runtime *runtime, const struct troupe_arguments *arguments)
{
    (void)arguments;
    if (troupe_runtime_rank(runtime) != 0)
        return TROUPE_EXIT_DONE;
    char *text = troupe_runtime_describe(runtime);
    if (text == NULL)
        return troupe_fail(runtime, troupe_status_fail(TROUPE_RESOURCE_EXHAUSTED,
                                                       "no memory for the description"));
    fputs(text, stdout);
    free(text);
    return TROUPE_EXIT_DONE;
}

const struct troupe_command troupe_command_info = {
    .name = "info",
    .operand = "",
    .operand_required = false,
    .summary = "print version, MPI, BLAS, workers and what the build has",
    .accepts = 1u << TROUPE_OPTION_WORKERS | 1u << TROUPE_OPTION_LOG | 1u << TROUPE_OPTION_SIM,
    .run = command_info,
};
