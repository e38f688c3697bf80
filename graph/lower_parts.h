/* What the files that lower functions share; private to graph/. */
#ifndef TROUPE_GRAPH_LOWER_PARTS_H
#define TROUPE_GRAPH_LOWER_PARTS_H

#include "graph/lower.h"
#include "graph/node.h"

/* Node numbers, growing. */
struct troupe_numbers {
    int *items;
    int count, capacity;
};
TROUPE_MUST_USE enum troupe_status troupe_numbers_add(struct troupe_numbers *numbers, int number);

/* A call to be lowered, and where it stands: functions that are being inlined around it. */
struct troupe_call_site {
    int node;
    int around; /* index into `scopes`, -1: in the graph itself */
};
struct troupe_scope {
    int function, around;
};

/* One graph being lowered: the file's, or the body of a function. */
struct troupe_lowering {
    struct troupe_graph *graph;
    struct troupe_library *library;
    int function;                   /* whose body `graph` is; -1 */
    const bool *recursive;          /* by function: may call itself */
    const bool *has_effects;        /* by function */
    struct troupe_call_site *sites; /* those still to be lowered */
    int site_count, site_capacity;
    struct troupe_scope *scopes;
    int scope_count, scope_capacity;
    struct troupe_numbers passed; /* nodes that only pass values on: their users read past them */
    int *made;                    /* nodes from bodies so far, in all graphs */
};

/* A call with its parts copied, since the graph's nodes move when it grows. Its inputs end with
 * what its functions capture. */
struct troupe_call {
    int node, around;
    char *name, *device;
    int line, column;
    int functions_count;
    int *functions;
    struct troupe_value *inputs; /* all */
    int input_count;
    int *controls;
    int control_count;
    struct troupe_value *captures; /* outer values, in the order of the last inputs */
    int capture_count;
};

/* Lists a call as one to be lowered. */
TROUPE_MUST_USE enum troupe_status troupe_lower_push(struct troupe_lowering *lowering, int node,
                                                     int around);

/* One node that lowering makes beside `call`: "CALL/NAME". T and N follow from the inputs. */
struct troupe_glue {
    const char *op, *name;
    struct troupe_value inputs[2];
    int input_count;
    const int *controls;
    int control_count;
    struct troupe_named_attr *attrs; /* values are borrowed */
    int attr_count;
};
TROUPE_MUST_USE enum troupe_status troupe_lower_glue(struct troupe_lowering *lowering,
                                                     const struct troupe_call *call,
                                                     const struct troupe_glue *glue, int *out);
/* The same under "CALL/NAME_INDEX". */
TROUPE_MUST_USE enum troupe_status troupe_lower_glue_at(struct troupe_lowering *lowering,
                                                        const struct troupe_call *call,
                                                        const struct troupe_glue *glue, int index,
                                                        int *out);

/* The body of one of the call's functions, put in place of a call of it. */
struct troupe_inlining {
    int function;
    const char *name;                /* of this use: "then"; "" for the call itself */
    const struct troupe_value *args; /* the function's inputs, then the call's captures */
    int pivot;                       /* what nodes without inputs wait for; -1 */
    struct troupe_value *outputs;    /* set */
    struct troupe_numbers effects;   /* set: nodes that have to fire besides; the caller frees */
};
TROUPE_MUST_USE enum troupe_status troupe_lower_inline(struct troupe_lowering *lowering,
                                                       const struct troupe_call *call,
                                                       struct troupe_inlining *inlining);

/* Makes the calling node an Identity, IdentityN or NoOp of the values, behind the controls. */
TROUPE_MUST_USE enum troupe_status troupe_lower_finish(struct troupe_lowering *lowering,
                                                       const struct troupe_call *call,
                                                       const struct troupe_value *values, int count,
                                                       const int *controls, int control_count);

/* The four kinds of call. */
TROUPE_MUST_USE enum troupe_status troupe_lower_call(struct troupe_lowering *lowering,
                                                     const struct troupe_call *call);
TROUPE_MUST_USE enum troupe_status troupe_lower_branches(struct troupe_lowering *lowering,
                                                         const struct troupe_call *call,
                                                         enum troupe_flow flow);
TROUPE_MUST_USE enum troupe_status troupe_lower_while(struct troupe_lowering *lowering,
                                                      const struct troupe_call *call,
                                                      int parallel_iterations);

/* The captures of the functions that a node calls, each value once; new memory. */
TROUPE_MUST_USE enum troupe_status troupe_lower_captures(const struct troupe_library *library,
                                                         const int *functions, int count,
                                                         struct troupe_value **out, int *count_out);
/* Where a value is among those; -1. */
int troupe_value_index(const struct troupe_value *values, int count, struct troupe_value value);

/* lower_check.c: the calls of a graph against the signatures; errors go to `diagnostics`. */
void troupe_lower_check(const struct troupe_graph *graph, const struct troupe_library *library,
                        struct troupe_diagnostics *diagnostics);
/* A function's outputs against what its body gives. */
void troupe_lower_check_outputs(const struct troupe_function *function,
                                struct troupe_diagnostics *diagnostics);

#endif
