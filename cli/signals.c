/* SIGINT and SIGTERM: the first asks the session to stop, so that the run ends between steps and
 * says where; the second, or the time that follows, ends the process.
 *
 * Invariant: the handler calls nothing but async-signal-safe functions and troupe_session_stop,
 * which says that it is one. */
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

/* Seconds that the session has to come to its end after a signal. */
#define STOP_SECONDS 5

static _Atomic(struct troupe_session *) signal_session;
static _Atomic(int) signal_number;

static void on_signal(int number)
{
    int before = 0;

    if (number == SIGALRM)
        _exit(TROUPE_EXIT_SIGNAL + atomic_load(&signal_number));
    struct troupe_session *session = atomic_load(&signal_session);
    if (!atomic_compare_exchange_strong(&signal_number, &before, number) || session == NULL)
        _exit(TROUPE_EXIT_SIGNAL + number);
    troupe_session_stop(session);
    alarm(STOP_SECONDS);
}

void troupe_signals_install(void)
{
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGALRM, &action, NULL);
}

void troupe_signals_set_session(struct troupe_session *session)
{
    atomic_store(&signal_session, session);
}

int troupe_signals_caught(void)
{
    return atomic_load(&signal_number);
}
