/* `info`: what this build and this machine have. */
#include <cblas.h>

#include "base/text.h"
#include "coordinator/runtime.h"
#include "troupe/version.h"

char *troupe_runtime_describe(const struct troupe_runtime *runtime)
{
    const struct troupe_transport *transport = runtime->transport;
    struct troupe_text text;
    troupe_text_init(&text);
    troupe_text_addf(&text, "troupe %s\n", TROUPE_VERSION);
    troupe_text_addf(&text, "mpi: %s\n", troupe_transport_mpi_describe());
    troupe_text_addf(&text, "transport: %s, %d rank%s, %d on this host\n", transport->ops->name,
                     transport->size, transport->size == 1 ? "" : "s", transport->ranks_on_host);
    troupe_text_addf(&text, "workers: %d (the process's CPUs allow %d per rank)\n",
                     troupe_pool_workers(runtime->pool),
                     troupe_pool_default_workers(transport->ranks_on_host));
    troupe_text_addf(&text, "progress: %s\n",
                     transport->main_thread_only ? "by the main thread" : "by idle workers");
    troupe_text_addf(&text, "blas: %s\n", openblas_get_config());
    troupe_text_add(&text, "devices: CPU:0");
    for (int i = 0; i < runtime->accelerators.table.count; i++)
        troupe_text_addf(&text, ", %s", runtime->accelerators.table.devices[i]->name);
    troupe_text_add(&text, "\n");
#ifdef TROUPE_HAVE_HWLOC
    troupe_text_add(&text, "hwloc: yes\n");
#else
    troupe_text_add(&text, "hwloc: no\n");
#endif
    return troupe_text_take(&text);
}
