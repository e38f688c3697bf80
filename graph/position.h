/* Where a JSON value stands in its text; private to graph/.
 *
 * The JSON library keeps no positions. The text was parsed by it already, so that the walk here
 * only has to find its way in valid JSON. */
#ifndef TROUPE_GRAPH_POSITION_H
#define TROUPE_GRAPH_POSITION_H

#include <stdbool.h>
#include <stddef.h>

#include "troupe/attributes.h"
#include "troupe/status.h"

/* A step from a parent (NULL: the root) to a member (`key`) or, when key is NULL, an element. */
struct troupe_json_path {
    const struct troupe_json_path *parent;
    const char *key;
    size_t index;
};

struct troupe_place {
    size_t offset;
    int line, column; /* from 1; a column is a character, not a byte */
};

/* The text, and the starts of the elements of one array, which holds nodes. Borrows the text and
 * the path. */
struct troupe_positions {
    const char *text;
    size_t length;
    const struct troupe_json_path *path; /* of the array */
    struct troupe_place *nodes;
    size_t node_count;
};

/* For the array at `path`, of `node_count` elements, of the text of `within`, which is only asked
 * where the array is. */
TROUPE_MUST_USE enum troupe_status troupe_positions_init(struct troupe_positions *positions,
                                                         const struct troupe_positions *within,
                                                         const struct troupe_json_path *path,
                                                         size_t node_count);
void troupe_positions_fini(struct troupe_positions *positions);

/* The place of the value at `path`, or, with `at_key`, of the key of its last step. When there is
 * no such value, the place of the deepest one on the way. */
struct troupe_place troupe_positions_find(const struct troupe_positions *positions,
                                          const struct troupe_json_path *path, bool at_key);

#endif
