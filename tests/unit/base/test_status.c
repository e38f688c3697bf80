/* Status messages and the log. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "troupe/log.h"
#include "troupe/status.h"

Test(status, every_code_has_a_name)
{
    for (int i = 0; i < TROUPE_STATUS_COUNT; i++)
        cr_assert_str_neq(troupe_status_name((enum troupe_status)i), "?");
    cr_assert_str_eq(troupe_status_name(TROUPE_INVALID_ARGUMENT), "INVALID_ARGUMENT");
    cr_assert_str_eq(troupe_status_name(TROUPE_STATUS_COUNT), "?");
    cr_assert_str_eq(troupe_status_name((enum troupe_status) - 1), "?");
}

static void *message_of_another(void *out)
{
    *(bool *)out = troupe_status_message()[0] == '\0';
    return NULL;
}

Test(status, messages_nest_and_belong_to_a_thread)
{
    cr_assert_str_eq(troupe_status_message(), "");
    cr_assert_eq(troupe_status_fail(TROUPE_NOT_FOUND, "no node \"%s\"", "y"), TROUPE_NOT_FOUND);
    cr_assert_eq(troupe_status_prefix(TROUPE_NOT_FOUND, "graph %d: ", 3), TROUPE_NOT_FOUND);
    cr_assert_str_eq(troupe_status_message(), "graph 3: no node \"y\"");
    (void)troupe_status_fail(TROUPE_ABORTED, "<%s>", troupe_status_message());
    cr_assert_str_eq(troupe_status_message(), "<graph 3: no node \"y\">");
    pthread_t thread;
    bool empty = false;
    cr_assert_eq(pthread_create(&thread, NULL, message_of_another, &empty), 0);
    pthread_join(thread, NULL);
    cr_assert(empty);
}

Test(status, long_messages_are_cut)
{
    static char text[2 * TROUPE_MESSAGE_MAX];
    memset(text, 'x', sizeof(text) - 1);
    (void)troupe_status_fail(TROUPE_INTERNAL, "%s", text);
    cr_assert_eq(strlen(troupe_status_message()), TROUPE_MESSAGE_MAX - 1);
    (void)troupe_status_prefix(TROUPE_INTERNAL, "front ");
    cr_assert_eq(strlen(troupe_status_message()), TROUPE_MESSAGE_MAX - 1);
    cr_assert_eq(strncmp(troupe_status_message(), "front xxx", 9), 0);
    (void)troupe_status_prefix(TROUPE_INTERNAL, "%s", text);
    cr_assert_eq(strlen(troupe_status_message()), TROUPE_MESSAGE_MAX - 1);
}

static void keep_message(void *context, enum troupe_log_level level, const char *message)
{
    snprintf(context, 100, "%d %s", (int)level, message);
}

Test(log, levels_filter)
{
    char kept[100] = "";
    troupe_log_set(TROUPE_LOG_WARNING, keep_message, kept);
    troupe_log(TROUPE_LOG_INFO, "quiet");
    cr_assert_str_eq(kept, "");
    troupe_log(TROUPE_LOG_WARNING, "loud %d", 5);
    cr_assert_str_eq(kept, "1 loud 5");
    troupe_log_set(TROUPE_LOG_DEBUG, keep_message, kept);
    troupe_log(TROUPE_LOG_DEBUG, "all");
    cr_assert_str_eq(kept, "3 all");
}

Test(log, level_names)
{
    enum troupe_log_level level = TROUPE_LOG_ERROR;
    cr_assert_eq(troupe_log_level_parse("info", &level), TROUPE_OK);
    cr_assert_eq(level, TROUPE_LOG_INFO);
    cr_assert_eq(troupe_log_level_parse("loud", &level), TROUPE_INVALID_ARGUMENT);
    cr_assert_eq(level, TROUPE_LOG_INFO);
    cr_assert(strstr(troupe_status_message(), "error, warning, info or debug"));
}
