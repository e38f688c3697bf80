/* A loop split over a device's workers, or not. Invariant: every index is visited once, on return.
 */
#include "devices/device.h"

void troupe_parallel_for(struct troupe_parallel *parallel, int64_t total, int64_t grain,
                         void (*body)(void *context, int64_t begin, int64_t end), void *context)
{
    if (total <= 0)
        return;
    if (!parallel || !parallel->run || parallel->width <= 1 || total <= grain)
        body(context, 0, total);
    else
        parallel->run(parallel, total, grain, body, context);
}
