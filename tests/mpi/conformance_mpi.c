/* The conformance suite on the MPI transport; to be started by mpirun. */
#include <mpi.h>
#include <stdio.h>

#include "conformance.h"

int main(int argc, char **argv)
{
    struct troupe_transport *transport;
    if (troupe_transport_mpi_init(&argc, &argv) != TROUPE_OK ||
        troupe_transport_mpi_create(troupe_transport_mpi_world(), &transport) != TROUPE_OK) {
        fprintf(stderr, "%s\n", troupe_status_message());
        return 3;
    }
    conformance_run(transport);
    if (transport->rank == 0)
        printf("conformance of mpi with %d ranks: ok\n", transport->size);
    transport->ops->destroy(transport);
    troupe_transport_mpi_fini();
    return 0;
}
