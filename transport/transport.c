/* What all transports share. */
#include "transport/transport.h"

void troupe_transfer_release(struct troupe_transport *transport, struct troupe_transfer *transfer)
{
    transport->ops->release(transport, transfer);
}
