/* Any text is a graph or an error with a message, never a crash; and what is a graph reads back
 * from its print. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "graph/graph.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct troupe_graph *parse(const char *text, size_t length)
{
    struct troupe_diagnostics diagnostics;
    struct troupe_graph *graph = NULL;
    enum troupe_status status;

    troupe_diagnostics_init(&diagnostics);
    status = troupe_graph_parse(text, length, "fuzz.json", 0, &diagnostics, &graph);
    if ((status == TROUPE_OK) != (graph != NULL) ||
        (status == TROUPE_INVALID_ARGUMENT) != (diagnostics.count > 0))
        abort();
    troupe_diagnostics_fini(&diagnostics);
    return graph;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct troupe_graph *graph = parse((const char *)data, size), *again;
    struct troupe_text text;

    if (graph == NULL)
        return 0;
    troupe_text_init(&text);
    if (troupe_graph_print(graph, &text) != TROUPE_OK)
        abort();
    again = parse(text.data, text.length);
    if (again == NULL || again->node_count != graph->node_count) {
        fprintf(stderr, "%s\n%s\n", troupe_status_message(), text.data);
        abort();
    }
    troupe_graph_destroy(again);
    troupe_graph_destroy(graph);
    troupe_text_fini(&text);
    return 0;
}
