/* SPDX-License-Identifier: Apache-2.0 */
/* membership_view_test.c - the list of a dynamic group's members, and its bytes. */
#include "../support/test_store.h"

#include "group/membership/membership.h"

static tenrec_error err;

static void add(struct membership_view *v, tenrec_peer id, int64_t incarnation, const char *name)
{
    const struct membership_view_entry e = { id, incarnation, name };

    assert_status(membership_view_add(v, &e, &err), &err);
}

static struct membership_view some(void)
{
    struct membership_view v = { .version = 7 };

    add(&v, 4, 3, "four-4");
    add(&v, 0, 1, "zero");
    add(&v, 1, 9, "one:1");
    return v;
}

TEST(view_is_ordered_by_id_and_found_by_all)
{
    struct membership_view v = some();

    for (size_t i = 1; i < v.n; i++)
        assert_true(v.entry[i - 1].id < v.entry[i].id);
    assert_int_equal(membership_view_by_id(&v, 4)->incarnation, 3);
    assert_int_equal(membership_view_by_name(&v, "one:1")->id, 1);
    assert_null(membership_view_by_id(&v, 2));
    assert_null(membership_view_by_name(&v, "four"));
    assert_non_null(membership_view_find(&v, 1, 9));
    assert_null(membership_view_find(&v, 1, 8));
    membership_view_finish(&v);
}

TEST(view_gives_the_lowest_free_id)
{
    struct membership_view v = { .version = 1 };
    char name[16];

    assert_int_equal(membership_view_free_id(&v), 0);
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "w%d", i);
        assert_int_equal(membership_view_free_id(&v), i);
        add(&v, i, i + 1, name);
    }
    assert_true(membership_view_remove(&v, 7, 8, true, 0));
    assert_int_equal(membership_view_free_id(&v), 7);
    membership_view_finish(&v);
}

TEST(view_remembers_how_the_last_members_went)
{
    struct membership_view v = { .version = 1 };

    add(&v, 0, 1, "a");
    assert_false(membership_view_remove(&v, 0, 2, true, 5)); /* another life */
    for (int64_t i = 2; i < 2 + 2 * VIEW_GONE_MIN; i++, v.version++) {
        add(&v, 1, i, "b");
        assert_true(membership_view_remove(&v, 1, i, i % 2, 0));
    }
    assert_null(membership_view_find_gone(&v, 2));
    assert_true(membership_view_find_gone(&v, 1 + 2 * VIEW_GONE_MIN)->died);
    assert_false(membership_view_find_gone(&v, 2 * VIEW_GONE_MIN)->died);
    assert_int_equal(v.n, 1);
    membership_view_finish(&v);
}

/* Whatever their number is. */
TEST(view_remembers_how_all_members_of_one_change_went)
{
    enum { MANY = 5 * VIEW_GONE_MIN };
    struct membership_view v = { .version = 1 }, back;
    struct store_value bytes;
    char name[16];

    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "w%d", i);
        add(&v, i, i + 1, name);
    }
    for (int i = 0; i < MANY - 1; i++)
        assert_true(membership_view_remove(&v, i, i + 1, i % 3 == 0, MANY - 1));
    v.version++;
    membership_view_pack(&v, &bytes);
    assert_status(membership_view_unpack(&bytes, &back, &err), &err);
    assert_int_equal(back.n_gone, MANY - 1);
    for (int i = 0; i < MANY - 1; i++)
        assert_int_equal(membership_view_find_gone(&back, i + 1)->died, i % 3 == 0);
    /* The view of a group that is small again is small. */
    assert_true(membership_view_remove(&back, MANY - 1, MANY, false, -1));
    assert_int_equal(back.n_gone, VIEW_GONE_MIN);
    membership_view_finish(&back);
    membership_view_finish(&v);
    free(bytes.data);
}

/* Workers of an earlier build write no second list of former members. */
TEST(view_is_read_without_the_second_list_of_former_members)
{
    struct membership_view v = some(), back;
    struct store_value bytes;

    assert_true(membership_view_remove(&v, 0, 1, true, 4));
    membership_view_pack(&v, &bytes);
    bytes.len -= sizeof(uint64_t);
    assert_status(membership_view_unpack(&bytes, &back, &err), &err);
    assert_int_equal(back.n_gone, 1);
    membership_view_finish(&back);
    membership_view_finish(&v);
    free(bytes.data);
}

TEST(view_is_the_same_after_its_bytes)
{
    struct membership_view v = some(), back;
    struct store_value bytes;

    const uint64_t some_sum = v.sum;

    assert_true(membership_view_remove(&v, 0, 1, true, 4));
    membership_view_pack(&v, &bytes);
    assert_non_null(bytes.data);
    assert_status(membership_view_unpack(&bytes, &back, &err), &err);
    assert_int_equal(back.version, 7);
    assert_int_equal(back.n, 2);
    assert_string_equal(back.entry[1].name, "four-4");
    assert_true(back.sum == v.sum && v.sum != some_sum);
    assert_int_equal(back.gone[0].by, 4);
    membership_view_finish(&back);
    membership_view_finish(&v);
    free(bytes.data);
}

/* Whatever is cut off or changed is refused, and nothing is read beyond the end. */
TEST(view_refuses_bytes_of_no_sense)
{
    struct membership_view v = some(), back;
    struct store_value bytes, part;

    membership_view_pack(&v, &bytes);
    for (size_t len = 0; len < bytes.len; len++) {
        if (len == bytes.len - sizeof(uint64_t))
            continue; /* without the second list of former members */
        part = (struct store_value){ malloc(len ? len : 1), len };
        memcpy(part.data, bytes.data, len);
        assert_int_equal(membership_view_unpack(&part, &back, &err), TENREC_EPROTOCOL);
        free(part.data);
    }
    for (size_t at = 0; at < bytes.len; at++) {
        ((uint8_t *)bytes.data)[at] ^= 0x80;
        if (membership_view_unpack(&bytes, &back, &err) == TENREC_OK) {
            for (size_t i = 0; i < back.n; i++)
                assert_true(back.entry[i].id >= 0 && back.entry[i].id < RANKS_MAX);
            membership_view_finish(&back);
        }
        ((uint8_t *)bytes.data)[at] ^= 0x80;
    }
    membership_view_finish(&v);
    free(bytes.data);
}

/* A name stands for one id. */
TEST(view_refuses_two_members_of_one_name)
{
    struct membership_view v = { .version = 1 }, back;
    struct store_value bytes;

    for (int i = 0; i < 2; i++) {
        const struct membership_view_entry e = { .id = i, .incarnation = i + 1, .name = "same" };
        assert_status(membership_view_add(&v, &e, &err), &err);
    }
    membership_view_pack(&v, &bytes);
    assert_int_equal(membership_view_unpack(&bytes, &back, &err), TENREC_EPROTOCOL);
    membership_view_finish(&v);
    free(bytes.data);
}
