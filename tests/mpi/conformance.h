/* One suite that every transport passes. */
#ifndef TROUPE_TESTS_CONFORMANCE_H
#define TROUPE_TESTS_CONFORMANCE_H

#include "transport/transport.h"

/* Runs all cases as one rank of a job whose ranks all do; ends the program with a message when one
 * fails. Does not destroy the transport. */
void conformance_run(struct troupe_transport *transport);

#endif
