/* What is a deadlock and what is not, judged from censuses made by hand. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/census.h"

#define RANKS 3
#define TAG   6

/* Rank 1 waits for message TAG of step 4, which rank 0 sends; rank 2 has nothing in flight. */
struct scene {
    struct troupe_census ranks[RANKS];
    struct troupe_census_run runs[RANKS];
    struct troupe_census_begun begun[RANKS][4];
    struct troupe_census_wait wait;
};

static void begin(struct scene *scene, int rank, uint64_t iteration)
{
    struct troupe_census_run *run = &scene->runs[rank];

    scene->begun[rank][run->begun_count++] = (struct troupe_census_begun){TAG, iteration};
    run->begun = scene->begun[rank];
}

static void scene_init(struct scene *scene)
{
    memset(scene, 0, sizeof(*scene));
    for (int rank = 0; rank < RANKS; rank++) {
        scene->runs[rank] = (struct troupe_census_run){
            .number = 5, .activity = 10, .completed = 4, .admitted = rank < 2 ? 6 : 4};
        scene->ranks[rank] = (struct troupe_census){
            .is_idle = true, .has_details = true, .runs = &scene->runs[rank], .run_count = 1};
    }
    scene->wait = (struct troupe_census_wait){TAG, 4, 1};
    scene->runs[1].waits = &scene->wait;
    scene->runs[1].wait_count = 1;
}

static bool is_deadlock(const struct scene *scene)
{
    return troupe_census_is_deadlock(scene->ranks, RANKS);
}

Test(census, nothing_begun_is_a_deadlock)
{
    struct scene scene;

    scene_init(&scene);
    cr_assert(troupe_census_is_quiet(scene.ranks, RANKS));
    cr_assert(is_deadlock(&scene));
    begin(&scene, 0, 5); /* the next step's, which no receive waits for */
    cr_assert(is_deadlock(&scene));
    begin(&scene, 1, 4); /* its own part is no other rank's */
    cr_assert(is_deadlock(&scene));
}

Test(census, a_message_on_its_way_is_none)
{
    struct scene scene;

    scene_init(&scene);
    begin(&scene, 0, 4);
    cr_assert_not(is_deadlock(&scene));
    scene_init(&scene);
    scene.runs[0].completed = 5; /* step 4 is over there: it was sent */
    begin(&scene, 0, TROUPE_CENSUS_ALL_BEFORE);
    cr_assert_not(is_deadlock(&scene));
    scene.runs[0].completed = 4;
    cr_assert(is_deadlock(&scene));
}

Test(census, a_collective_wants_all_others)
{
    struct scene scene;

    scene_init(&scene);
    scene.wait.wanted = 2;
    begin(&scene, 0, 4);
    cr_assert(is_deadlock(&scene));
    begin(&scene, 2, 4);
    cr_assert_not(is_deadlock(&scene));
}

Test(census, what_may_still_change_is_none)
{
    struct scene scene;
    struct troupe_census_run two[2];

    scene_init(&scene);
    scene.ranks[2].is_idle = false;
    cr_assert_not(troupe_census_is_quiet(scene.ranks, RANKS));
    scene.ranks[2].is_idle = true;
    scene.ranks[0].has_outside = true;
    cr_assert_not(troupe_census_is_quiet(scene.ranks, RANKS));
    scene_init(&scene);
    scene.runs[2].phase = 2; /* rank 2 knows the end, the others do not yet */
    cr_assert_not(is_deadlock(&scene));
    scene.runs[0].phase = scene.runs[1].phase = 2;
    cr_assert(is_deadlock(&scene));
    for (int rank = 0; rank < RANKS; rank++)
        scene.runs[rank].phase = 1;
    cr_assert_not(is_deadlock(&scene));
    scene_init(&scene);
    scene.ranks[2].run_count = 0; /* has not begun it */
    cr_assert_not(is_deadlock(&scene));
    scene_init(&scene);
    scene.runs[0].admitted = scene.runs[1].admitted = 4; /* all is complete */
    scene.runs[1].wait_count = 0;
    cr_assert_not(is_deadlock(&scene));
    scene_init(&scene);
    two[0] = two[1] = scene.runs[0];
    two[1].number = 8; /* another run, on rank 0 alone */
    scene.ranks[0].runs = two;
    scene.ranks[0].run_count = 2;
    cr_assert_not(is_deadlock(&scene));
}

Test(census, activity_is_of_one_run_or_of_all)
{
    struct scene scene;
    uint64_t all, one, other;

    scene_init(&scene);
    all = troupe_census_activity(scene.ranks, RANKS, 0);
    one = troupe_census_activity(scene.ranks, RANKS, 5);
    other = troupe_census_activity(scene.ranks, RANKS, 6);
    scene.runs[2].activity++;
    cr_assert_neq(troupe_census_activity(scene.ranks, RANKS, 0), all);
    cr_assert_neq(troupe_census_activity(scene.ranks, RANKS, 5), one);
    cr_assert_eq(troupe_census_activity(scene.ranks, RANKS, 6), other);
}

Test(census, travels)
{
    struct scene scene;
    struct troupe_census read;
    struct troupe_text text;
    char causes[] = "; a", waits[] = "; b waits";

    scene_init(&scene);
    begin(&scene, 1, 9);
    begin(&scene, 1, 4); /* out of order */
    scene.ranks[1].causes = causes;
    scene.ranks[1].waits = waits;
    scene.ranks[1].round = 77;
    troupe_text_init(&text);
    troupe_census_put(&text, &scene.ranks[1]);
    for (size_t cut = 0; cut < text.length; cut++) {
        cr_assert_eq(troupe_census_read(text.data, cut, &read), TROUPE_DATA_LOSS);
        cr_assert_null(read.runs);
    }
    cr_assert_eq(troupe_census_read(text.data, text.length, &read), TROUPE_OK);
    cr_assert_eq(read.round, 77);
    cr_assert(read.is_idle && read.has_details && !read.has_outside);
    cr_assert_eq(read.run_count, 1);
    cr_assert_eq(read.runs[0].begun_count, 2);
    cr_assert_eq(read.runs[0].begun[0].iteration, 4);
    cr_assert_eq(read.runs[0].waits[0].tag, TAG);
    cr_assert_str_eq(read.causes, causes);
    cr_assert_str_eq(read.waits, waits);
    scene.ranks[1] = read;
    cr_assert(is_deadlock(&scene));
    troupe_census_fini(&read);
    troupe_text_fini(&text);
}
