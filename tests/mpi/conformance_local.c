/* The conformance suite on the local transport, its ranks being threads. */
#include <pthread.h>
#include <stdio.h>

#include "conformance.h"

#define RANKS_MAX 5

static void *rank_main(void *argument)
{
    struct troupe_transport *transport = argument;
    conformance_run(transport);
    transport->ops->destroy(transport);
    return NULL;
}

int main(void)
{
    for (int ranks = 1; ranks <= RANKS_MAX; ranks++) {
        struct troupe_transport *transports[RANKS_MAX];
        pthread_t threads[RANKS_MAX];
        if (troupe_transport_local_create(ranks, transports) != TROUPE_OK)
            return 1;
        for (int i = 0; i < ranks; i++)
            if (pthread_create(&threads[i], NULL, rank_main, transports[i]) != 0)
                return 1;
        for (int i = 0; i < ranks; i++)
            pthread_join(threads[i], NULL);
        printf("conformance of local with %d ranks: ok\n", ranks);
    }
    return 0;
}
