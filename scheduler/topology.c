/* How many workers a process should have. With hwloc: one a core of those that the process may run
 * on, since two hardware threads of a core share its arithmetic units; without, one a CPU. */
#include <sched.h>
#include <stddef.h>

#include "scheduler/pool.h"
#include "scheduler/scheduler.h"

#ifdef TROUPE_HAVE_HWLOC
#include <hwloc.h>

/* The cores of the process's cpuset; 0 when hwloc cannot tell. */
static int cores_of_process(void)
{
    hwloc_topology_t topology;
    int cores = 0;

    if (hwloc_topology_init(&topology) != 0)
        return 0;
    hwloc_cpuset_t allowed = hwloc_bitmap_alloc();
    if (allowed != NULL && hwloc_topology_load(topology) == 0 &&
        hwloc_get_cpubind(topology, allowed, HWLOC_CPUBIND_PROCESS) == 0) {
        /* A core counts when any of its hardware threads may be used. */
        hwloc_obj_t core = NULL;
        while ((core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) != NULL)
            cores += hwloc_bitmap_intersects(core->cpuset, allowed);
    }
    hwloc_bitmap_free(allowed);
    hwloc_topology_destroy(topology);
    return cores;
}
#else
static int cores_of_process(void)
{
    return 0;
}
#endif

static int cpus_of_process(void)
{
    int cpus = 1;

    /* The kernel's mask may be larger than cpu_set_t: grow until it fits. */
    for (int size = 1024; size <= 1 << 20; size *= 2) {
        size_t bytes = CPU_ALLOC_SIZE(size);
        cpu_set_t *set = CPU_ALLOC(size);
        bool read = set != NULL && sched_getaffinity(0, bytes, set) == 0;

        if (read)
            cpus = CPU_COUNT_S(bytes, set);
        CPU_FREE(set);
        if (read)
            break;
    }
    return cpus;
}

int troupe_pool_default_workers(int processes_on_host)
{
    int cores = cores_of_process();
    int workers = cores > 0 ? cores : cpus_of_process();

    if (processes_on_host > 1)
        workers /= processes_on_host;
    if (workers > TROUPE_POOL_MAX_WORKERS)
        workers = TROUPE_POOL_MAX_WORKERS;
    return workers < 1 ? 1 : workers;
}
