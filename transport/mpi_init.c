/* Starting MPI for the command `troupe`, and what there is to say of it. Invariant: MPI is
 * finalised here only when it was initialised here. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "transport/mpi_transport.h"

static bool initialised_here;

/* Variables that launchers set in the processes that they start. */
static const char *const launcher_variables[] = {
    "OMPI_COMM_WORLD_SIZE", /* Open MPI's mpirun */
    "PMI_RANK",             /* MPICH's and Intel's Hydra, Slurm with PMI-1 and PMI-2 */
    "PMIX_RANK",            /* Slurm and PRRTE with PMIx */
    "MPI_LOCALNRANKS",      /* MPICH */
    "MV2_COMM_WORLD_SIZE",  /* MVAPICH2 */
};

bool troupe_transport_mpi_is_launched(void)
{
    for (size_t i = 0; i < sizeof(launcher_variables) / sizeof(launcher_variables[0]); i++)
        if (getenv(launcher_variables[i]))
            return true;
    return false;
}

enum troupe_status troupe_transport_mpi_init(int *argc, char ***argv)
{
    int initialised = 0, level;
    MPI_Initialized(&initialised);
    if (initialised)
        return TROUPE_OK;
    int error = MPI_Init_thread(argc, argv, MPI_THREAD_MULTIPLE, &level);
    if (error != MPI_SUCCESS)
        return troupe_mpi_fail("MPI_Init_thread", error);
    initialised_here = true;
    return TROUPE_OK;
}

void troupe_transport_mpi_fini(void)
{
    if (!initialised_here)
        return;
    initialised_here = false;
    MPI_Finalize();
}

static const char *level_name(void)
{
    int initialised = 0, finalised = 0, level = MPI_THREAD_SINGLE;
    MPI_Initialized(&initialised);
    MPI_Finalized(&finalised);
    if (!initialised || finalised)
        return "not started: this process runs alone";
    MPI_Query_thread(&level);
    switch (level) {
    case MPI_THREAD_MULTIPLE:
        return "MPI_THREAD_MULTIPLE";
    case MPI_THREAD_SERIALIZED:
        return "MPI_THREAD_SERIALIZED";
    case MPI_THREAD_FUNNELED:
        return "MPI_THREAD_FUNNELED";
    default:
        return "MPI_THREAD_SINGLE";
    }
}

const char *troupe_transport_mpi_describe(void)
{
    static char text[MPI_MAX_LIBRARY_VERSION_STRING + 64];
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(version, &length);
    version[strcspn(version, ",\n")] = 0;
    snprintf(text, sizeof(text), "%s, %s", version, level_name());
    return text;
}

const void *troupe_transport_mpi_world(void)
{
    static MPI_Comm world;
    world = MPI_COMM_WORLD;
    return &world;
}
