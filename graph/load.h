/* What the files that read graph JSON share; private to graph/. */
#ifndef TROUPE_GRAPH_LOAD_H
#define TROUPE_GRAPH_LOAD_H

#include <jansson.h>

#include "graph/library.h"
#include "graph/node.h"
#include "graph/position.h"
#include "graph/sections.h"

/* One file, or one function of its library, being read. Node i of the JSON is node i of the graph;
 * a broken one keeps its number and has no schema, so that what is right can be checked further. */
struct troupe_loader {
    const char *path;
    const struct troupe_json_path *nodes; /* where the nodes are */
    struct troupe_positions positions;
    struct troupe_diagnostics *diagnostics;
    struct troupe_graph *graph;
    bool *broken; /* per node: there was an error in it */
    /* For a function: itself, and the graph around it, whose values it may read. */
    struct troupe_function *function;
    const struct troupe_graph *outer;
};

/* Adds an error at the value at `path`, or at its key. */
void troupe_loader_error(struct troupe_loader *loader, const struct troupe_json_path *path,
                         bool at_key, const char *format, ...) TROUPE_PRINTF(4, 5);
/* " (did you mean \"x\"?)" into out, or "" when nothing is near. */
#define TROUPE_SUGGESTION_MAX 160
const char *troupe_loader_suggest(const char *name, const char *const *candidates, size_t count,
                                  char out[TROUPE_SUGGESTION_MAX]);
/* Checks that an object has only the given keys, each error at its key; `where` goes before
 * ("node \"x\": ", "train: "). False when there was an error. */
bool troupe_loader_check_keys(struct troupe_loader *loader, const struct troupe_json_path *path,
                              const char *where, json_t *object, const char *const *keys,
                              size_t count);

/* Names, ops and devices of all nodes (first), then their attrs and inputs. Errors go to the
 * loader; fails only for want of memory. */
TROUPE_MUST_USE enum troupe_status troupe_load_names(struct troupe_loader *loader,
                                                     const json_t *nodes);
TROUPE_MUST_USE enum troupe_status troupe_load_nodes(struct troupe_loader *loader,
                                                     const json_t *nodes);

/* True for a name that a node or a function may have. */
bool troupe_name_is_valid(const char *name);

/* As troupe_graph_value for what a node of this loader reads. */
TROUPE_MUST_USE enum troupe_status troupe_loader_value(const struct troupe_loader *loader,
                                                       const char *text, struct troupe_value *out);

/* A function in GraphDef's form (FunctionDef) in friendly form, a new reference; NULL when an error
 * was added, at `path`, or there is no memory. */
json_t *troupe_function_from_proto(struct troupe_loader *loader,
                                   const struct troupe_json_path *path, json_t *def);

/* `library`, into loader->graph->library, once the names of the graph's nodes are known. */
TROUPE_MUST_USE enum troupe_status troupe_load_library(struct troupe_loader *loader, json_t *root);

/* Decodes one attr of the wanted kind, in either form. `hint` is the node's `dtype` attr, for
 * tensors in friendly form; INVALID for none. INVALID_ARGUMENT: "wants a bool, got \"yes\"". */
TROUPE_MUST_USE enum troupe_status troupe_attr_from_json(const struct troupe_op_attr *wanted,
                                                         enum troupe_dtype hint, json_t *json,
                                                         struct troupe_attr *out);
/* Decodes a TensorShapeProto, a TensorProto, an int (a number or, as 64-bit ints are written, a
 * string of digits), a DataType. */
TROUPE_MUST_USE enum troupe_status troupe_shape_from_proto(const json_t *json,
                                                           struct troupe_shape *out);
TROUPE_MUST_USE enum troupe_status troupe_tensor_from_proto(json_t *json,
                                                            struct troupe_tensor **out);
TROUPE_MUST_USE enum troupe_status troupe_int_from_proto(const json_t *json, int64_t *out);
TROUPE_MUST_USE enum troupe_status troupe_dtype_from_json(const json_t *json,
                                                          enum troupe_dtype *out);

/* `train`, `loop`, `cluster` and `strategy`; the names in them are checked against the nodes. */
TROUPE_MUST_USE enum troupe_status troupe_load_sections(struct troupe_loader *loader, json_t *root);

#endif
