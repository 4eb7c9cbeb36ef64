/* SPDX-License-Identifier: Apache-2.0 */
/* ring_test.c - the ring of events under many writers. */
#include "observe/recorder/ring.h"

#include "observe/recorder/reporter.h"

#include "../testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { WRITERS = 4, EACH = 20000 };

static struct ring_event event_of(uint32_t writer, uint32_t i)
{
    struct ring_event e = { .time_ns = (uint64_t)writer << 32 | i,
                            .id = (int64_t)i * 3,
                            .thread = writer,
                            .peer = (tenrec_peer)i,
                            .took_ns = (float)i,
                            .kind = RING_CALL };
    char text[RING_TEXT];

    snprintf(text, sizeof text, "w%u e%u", writer, i);
    ring_set_text(&e, text);
    return e;
}

/* An event that a reader got is a whole event of some writer. */
static void assert_whole(const struct ring_event *e)
{
    const struct ring_event wanted = event_of(e->thread, (uint32_t)e->time_ns);

    assert_memory_equal(e, &wanted, sizeof wanted);
}

static void *write_events(void *arg)
{
    for (uint32_t i = 0; i < EACH; i++) {
        const struct ring_event e = event_of((uint32_t)(uintptr_t)arg, i);
        ring_add(&e);
    }
    return NULL;
}

static void readers_get_whole_events_while_threads_write(void **state)
{
    struct ring_read *read = calloc(RING_SIZE, sizeof *read);
    pthread_t thread[WRITERS];
    size_t lost, n, all = 0;

    (void)state;
    assert_non_null(read);
    for (uintptr_t i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, write_events, (void *)(i + 1)), 0);
    for (int round = 0; round < 50; round++) {
        n = ring_read(read, &lost);
        assert_true(n + lost <= RING_SIZE);
        for (size_t i = 0; i < n; i++)
            assert_whole(&read[i].event);
        all += n;
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(thread[i], NULL);
    n = ring_read(read, &lost);
    /* Only a writer that was a whole round late leaves a hole. */
    assert_true(n + lost == RING_SIZE && n > RING_SIZE - WRITERS);
    for (size_t i = 1; i < n; i++)
        assert_true(read[i].number > read[i - 1].number);
    assert_true(all + n > 0);
    free(read);
}

static void a_torn_entry_is_found(void **state)
{
    const struct ring_event a = event_of(1, 1), b = event_of(2, 2);
    struct ring_slot one, other, mixed;
    struct ring_event e;

    (void)state;
    ring_slot_write(&one, 7, &a);
    ring_slot_write(&other, 7 + RING_SIZE, &b);
    assert_true(ring_slot_read(&one, 7, &e));
    assert_memory_equal(&e, &a, sizeof e);
    assert_false(ring_slot_read(&one, 7 + RING_SIZE, &e)); /* of another round */
    for (int n = 1; n <= RING_WORDS; n++) {
        for (int i = 0; i <= RING_WORDS; i++)
            atomic_init(&mixed.word[i], atomic_load(i < n ? &one.word[i] : &other.word[i]));
        assert_false(ring_slot_read(&mixed, 7, &e));
        assert_false(ring_slot_read(&mixed, 7 + RING_SIZE, &e));
    }
}

static void one_changed_bit_is_found(void **state)
{
    const struct ring_event a = event_of(1, 1);
    struct ring_slot slot;
    struct ring_event e;

    (void)state;
    for (int i = 0; i <= RING_WORDS; i++)
        for (int bit = 0; bit < 64; bit++) {
            ring_slot_write(&slot, 7, &a);
            atomic_fetch_xor(&slot.word[i], UINT64_C(1) << bit);
            assert_false(ring_slot_read(&slot, 7, &e));
        }
}

static void a_long_name_keeps_its_end(void **state)
{
    struct ring_event e;
    char text[RING_TEXT + 1];

    (void)state;
    ring_set_text(&e, "package.module.submodule.function_name");
    assert_string_equal(ring_text(&e, text), ".submodule.function_name");
    assert_int_equal(strlen(text), RING_TEXT);
    ring_set_text(&e, "add");
    assert_string_equal(ring_text(&e, text), "add");
}

static void at_most_one_file_is_due_in_a_minute(void **state)
{
    const uint64_t second = UINT64_C(1000000000);

    (void)state;
    assert_true(dump_file_due(5 * second));
    assert_false(dump_file_due(5 * second));
    assert_false(dump_file_due(64 * second));
    assert_true(dump_file_due(65 * second));
    assert_false(dump_file_due(66 * second));
}

/* Calls of 1 us, `gap_ns` apart; returns how many of them are kept. */
static int kept_of(struct thin *t, uint64_t *now_ns, int n, uint64_t gap_ns)
{
    int kept = 0;

    for (int i = 0; i < n; i++) {
        *now_ns += gap_ns + 1000;
        kept += thin_keeps(t, *now_ns - 1000, *now_ns, TENREC_OK);
    }
    return kept;
}

static void short_calls_that_follow_each_other_at_once_are_thinned_out(void **state)
{
    struct thin t = { .last_ns = 0 };
    uint64_t now_ns = 1000000000;

    (void)state;
    assert_int_equal(kept_of(&t, &now_ns, 80, 100), 10);
    assert_int_equal(kept_of(&t, &now_ns, 80, THIN_PAUSE_NS), 80);
    /* What is not usual is kept in between. */
    assert_int_equal(kept_of(&t, &now_ns, 3, 100), 0);
    assert_true(thin_keeps(&t, now_ns, now_ns + 1000, TENREC_ETIMEDOUT));
    now_ns += 1000;
    assert_int_equal(kept_of(&t, &now_ns, 3, 100), 0);
    assert_true(thin_keeps(&t, now_ns, now_ns + THIN_SHORT_NS, TENREC_OK));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_get_whole_events_while_threads_write),
        cmocka_unit_test(a_torn_entry_is_found),
        cmocka_unit_test(one_changed_bit_is_found),
        cmocka_unit_test(a_long_name_keeps_its_end),
        cmocka_unit_test(short_calls_that_follow_each_other_at_once_are_thinned_out),
        cmocka_unit_test(at_most_one_file_is_due_in_a_minute),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
