/* The functions of a graph file's `library`.
 *
 * A function's body is a graph of its own, whose nodes _Arg stand for the inputs. While a file is
 * read, a body may read values of the graph around it ("captures"), for which stand-ins are in the
 * body as well. Once the file is loaded, and lowered (graph/lower.h), only functions that call
 * themselves, directly or not, are left; their bodies are lowered too, what they captured are
 * further inputs, and a node with flow CALL is the call of one of them. */
#ifndef TROUPE_GRAPH_LIBRARY_H
#define TROUPE_GRAPH_LIBRARY_H

#include "graph/graph.h"

struct troupe_function_output {
    char *name;
    struct troupe_value value; /* of the body */
    enum troupe_dtype dtype;
    struct troupe_shape shape; /* as declared */
};

/* A value of the graph around a function that its body reads. */
struct troupe_capture {
    struct troupe_value outer;
    int node; /* the stand-in in the body; -1 while nothing in the body itself reads it */
};

struct troupe_function {
    char *name;
    int line, column;
    struct troupe_graph *body; /* without sections and library of its own; NULL once spliced */
    int first, node_count;     /* where a spliced body is in the graph (graph/splice.h) */
    int *inputs;               /* nodes of the body, in order of the arguments */
    int input_count;
    struct troupe_function_output *outputs;
    int output_count;
    struct troupe_capture *captures; /* none once the graph is loaded */
    int capture_count;
};

struct troupe_library {
    struct troupe_function *functions;
    int count;
    struct troupe_name_map names; /* function name -> number */
};

TROUPE_MUST_USE enum troupe_status troupe_library_create(int count, struct troupe_library **out);
void troupe_library_destroy(struct troupe_library *library);
/* Frees what a function holds, and leaves it empty. */
void troupe_function_fini(struct troupe_function *function);
/* The function by name; -1 when there is none, or no library. */
int troupe_library_find(const struct troupe_library *library, const char *name);
/* Adds a capture of a value, or finds the one that there is; its number in `*out`. */
TROUPE_MUST_USE enum troupe_status troupe_function_capture(struct troupe_function *function,
                                                           struct troupe_value outer, int *out);

/* How many functions a node calls: 2 for While (cond, body) and If (then, else), the branches of a
 * Case, 1 for a Call, 0 for others. */
int troupe_node_callee_count(const struct troupe_node *node);
/* The name of the function, and of the attr that says it; the node is right in its attrs. */
const char *troupe_node_callee(const struct troupe_node *node, int index, const char **attr);

#endif
