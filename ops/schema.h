/* The parser of the schema strings of struct troupe_op, private to this folder and its tests. */
#ifndef TROUPE_OPS_SCHEMA_H
#define TROUPE_OPS_SCHEMA_H

#include "base/arena.h"
#include "ops/op.h"

/* Parses and checks one row. INVALID_ARGUMENT: `op "Add": inputs "a: Q": wants a dtype or an attr
 * at "Q"`. Borrows the row; what it allocates is in `arena`, but for the values of defaults, which
 * troupe_op_schema_fini frees. */
TROUPE_MUST_USE enum troupe_status troupe_op_schema_parse(const struct troupe_op *op,
                                                          struct troupe_arena *arena,
                                                          struct troupe_op_schema *out);
void troupe_op_schema_fini(struct troupe_op_schema *schema);

#endif
