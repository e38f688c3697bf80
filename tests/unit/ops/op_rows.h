/* What every table of an op's expected values and messages is checked for. */
#ifndef TROUPE_TESTS_OP_ROWS_H
#define TROUPE_TESTS_OP_ROWS_H

#include "op_node.h"

/* Values: texts as for op_tensor; inputs and outputs end with NULL. */
struct op_row {
    const char *op;
    const char *const *inputs;
    const char *attr;
    const char *const *outputs;
    double tolerance;
    enum op_known exact; /* inference gives the very shape when it knows as much as this */
};

/* Whatever is known before the run, split or not, with inputs that others hold (which stay as they
 * are) and with inputs that may be written in place: the outputs are these, inference said nothing
 * else, and no memory is lost. */
void op_check_values(const struct op_row *row);

/* What is refused, and all that is said of it in a run. */
struct op_wrong {
    const char *op;
    const char *const *inputs;
    const char *attr;
    const char *message;
    bool by_value; /* only the run can tell; otherwise inference ends with the same words */
};
void op_check_message(const struct op_wrong *wrong);

#endif
