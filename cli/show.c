/* `troupe show`: the plan of a graph: nodes, where each is placed, what crosses between ranks. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"

static int command_show(struct troupe_runtime *runtime, const struct troupe_arguments *arguments)
{
    char *text;
    int ranks = arguments->ranks > 0 ? arguments->ranks : troupe_runtime_size(runtime);
    const char *format = arguments->format != NULL ? arguments->format : "text";

    if (troupe_runtime_rank(runtime) != 0)
        return TROUPE_EXIT_DONE;
    enum troupe_status status =
        troupe_graph_show(arguments->operand, arguments->strategy, ranks, format, &text);
    if (status != TROUPE_OK)
        return troupe_load_failed(runtime, arguments->operand, status);
    fputs(text, stdout);
    free(text);
    return TROUPE_EXIT_DONE;
}

const struct troupe_command troupe_command_show = {
    .name = "show",
    .operand = "GRAPH",
    .operand_required = true,
    .summary = "print the plan of a graph (--format text, json or dot)",
    .accepts = 1u << TROUPE_OPTION_STRATEGY | 1u << TROUPE_OPTION_RANKS |
               1u << TROUPE_OPTION_FORMAT | 1u << TROUPE_OPTION_LOG,
    .run = command_show,
};
