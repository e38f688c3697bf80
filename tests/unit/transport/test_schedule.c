/* Schedules: the ring is proven for 1 to 64 ranks, and the prover catches broken ones. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "transport/schedule.h"

#define RANKS_MAX 64

static void make(struct troupe_schedule **schedules, int size)
{
    for (int i = 0; i < size; i++)
        cr_assert_eq(troupe_schedule_ring_allreduce(i, size, &schedules[i]), TROUPE_OK);
}

static void drop(struct troupe_schedule **schedules, int size)
{
    for (int i = 0; i < size; i++)
        troupe_schedule_destroy(schedules[i]);
}

Test(schedule, ring_reduces_every_chunk_once)
{
    struct troupe_schedule *schedules[RANKS_MAX];
    for (int size = 1; size <= RANKS_MAX; size++) {
        make(schedules, size);
        cr_assert_eq(troupe_schedule_check_allreduce(schedules, size), TROUPE_OK, "%d ranks: %s",
                     size, troupe_status_message());
        cr_assert_eq(schedules[0]->rounds, 2 * (size - 1));
        drop(schedules, size);
    }
}

Test(schedule, a_silent_rank_is_found)
{
    struct troupe_schedule *schedules[4];
    make(schedules, 4);
    schedules[2]->step_count = 0;
    cr_assert_eq(troupe_schedule_check_allreduce(schedules, 4), TROUPE_INTERNAL);
    cr_assert(strstr(troupe_status_message(), "waits for ever in round"), "%s",
              troupe_status_message());
    drop(schedules, 4);
}

Test(schedule, a_sum_taken_twice_is_found)
{
    struct troupe_schedule *schedules[3];
    make(schedules, 3);
    for (int i = 0; i < schedules[1]->step_count; i++)
        if (schedules[1]->steps[i].verb == TROUPE_SCHEDULE_RECEIVE)
            schedules[1]->steps[i].verb = TROUPE_SCHEDULE_REDUCE;
    cr_assert_eq(troupe_schedule_check_allreduce(schedules, 3), TROUPE_INTERNAL);
    cr_assert(strstr(troupe_status_message(), "contribution"), "%s", troupe_status_message());
    drop(schedules, 3);
}

Test(schedule, a_wrong_chunk_is_found)
{
    struct troupe_schedule *schedules[3];
    make(schedules, 3);
    schedules[0]->steps[0].chunk = (schedules[0]->steps[0].chunk + 1) % 3;
    cr_assert_eq(troupe_schedule_check_allreduce(schedules, 3), TROUPE_INTERNAL);
    drop(schedules, 3);
}

Test(schedule, chunks_cover_the_buffer)
{
    struct troupe_schedule *schedule;
    cr_assert_eq(troupe_schedule_ring_allreduce(0, 7, &schedule), TROUPE_OK);
    for (int64_t elements = 0; elements < 50; elements++) {
        int64_t next = 0;
        for (int chunk = 0; chunk < 7; chunk++) {
            int64_t begin, end;
            troupe_schedule_chunk(schedule, elements, chunk, &begin, &end);
            cr_assert_eq(begin, next);
            cr_assert(end - begin == elements / 7 || end - begin == elements / 7 + 1);
            next = end;
        }
        cr_assert_eq(next, elements);
    }
    troupe_schedule_destroy(schedule);
}

Test(schedule, bad_ranks_are_refused)
{
    struct troupe_schedule *schedule;
    cr_assert_eq(troupe_schedule_ring_allreduce(3, 3, &schedule), TROUPE_INVALID_ARGUMENT);
    cr_assert_eq(troupe_schedule_ring_allreduce(0, 0, &schedule), TROUPE_INVALID_ARGUMENT);
}
