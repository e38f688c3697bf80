/* `troupe check`: loads, rewrites, infers and places a graph without running it. */
#include <stdio.h>

#include "cli/cli.h"

static int command_check(struct troupe_runtime *runtime, const struct troupe_arguments *arguments)
{
    int nodes;
    int ranks = arguments->ranks > 0 ? arguments->ranks : troupe_runtime_size(runtime);

    if (troupe_runtime_rank(runtime) != 0)
        return TROUPE_EXIT_DONE;
    enum troupe_status status =
        troupe_graph_check(arguments->operand, arguments->strategy, ranks, &nodes);
    if (status != TROUPE_OK)
        return troupe_load_failed(runtime, arguments->operand, status);
    printf("%s: good, %d nodes for %d rank%s\n", arguments->operand, nodes, ranks,
           ranks == 1 ? "" : "s");
    return TROUPE_EXIT_DONE;
}

const struct troupe_command troupe_command_check = {
    .name = "check",
    .operand = "GRAPH",
    .operand_required = true,
    .summary = "check a graph without running it; print every error",
    .accepts = 1u << TROUPE_OPTION_STRATEGY | 1u << TROUPE_OPTION_RANKS | 1u << TROUPE_OPTION_LOG,
    .run = command_check,
};
