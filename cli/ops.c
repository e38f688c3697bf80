/* `troupe ops`: the op registry, documented from itself. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"

static int command_ops(struct troupe_runtime *runtime, const struct troupe_arguments *arguments)
{
    char *text;
    const char *format = arguments->format != NULL ? arguments->format : "text";

    if (troupe_runtime_rank(runtime) != 0)
        return TROUPE_EXIT_DONE;
    enum troupe_status status = troupe_ops_describe(arguments->operand, format, &text);
    if (status != TROUPE_OK)
        return troupe_fail(runtime, status);
    fputs(text, stdout);
    free(text);
    return TROUPE_EXIT_DONE;
}

const struct troupe_command troupe_command_ops = {
    .name = "ops",
    .operand = "OP",
    .operand_required = false,
    .summary = "print the ops, or one op (--format text, json or md)",
    .accepts = 1u << TROUPE_OPTION_FORMAT | 1u << TROUPE_OPTION_LOG,
    .run = command_ops,
};
