/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of device maps, over tables written as text: "w0 2 [0,1] w1{0:1,c:0}; w1 ?" are a
 * worker with two devices that uses both and sends to w1, and one that has not
 * said how many it has. c is the host. */
#include "core/tensor/device.h"
#include "rpc/devices/devices.h"

#include <stdlib.h>

#include "../testing.h"

enum { MOST = 4 };

struct table {
    struct device_row row[MOST];
    char name[MOST][16];
    size_t n;
};

static tenrec_error err;

static void skip_blanks(const char **at)
{
    while (**at == ' ' || **at == ',')
        ++*at;
}

static struct tenrec_device device(const char **at)
{
    char *end;

    if (**at == 'c') {
        ++*at;
        return (struct tenrec_device){ TENREC_CPU, 0 };
    }
    if (**at == 'x') { /* an unknown kind */
        ++*at;
        return (struct tenrec_device){ 77, 0 };
    }
    int32_t index = (int32_t)strtol(*at, &end, 10);
    assert_true(end != *at);
    *at = end;
    return (struct tenrec_device){ TENREC_CUDA, index };
}

static void word(const char **at, char *ret)
{
    size_t n = strcspn(*at, " {;");

    assert_true(n > 0 && n < 16);
    memcpy(ret, *at, n);
    ret[n] = '\0';
    *at += n;
}

static void read_list(const char **at, struct device_row *r)
{
    struct tenrec_device list[8];
    size_t n = 0;

    for (skip_blanks(at); **at != ']'; skip_blanks(at))
        list[n++] = device(at);
    ++*at;
    assert_status(device_row_set_devices(r, list, n, &err), &err);
}

static void read_map(const char **at, struct device_row *r)
{
    struct tenrec_device_pair pair;
    char to[16];

    word(at, to);
    assert_int_equal(*(*at)++, '{');
    assert_status(device_row_add(r, to, NULL, 0, &err), &err);
    for (skip_blanks(at); **at != '}'; skip_blanks(at)) {
        pair.from = device(at);
        assert_int_equal(*(*at)++, ':');
        pair.to = device(at);
        assert_status(device_row_add(r, to, &pair, 1, &err), &err);
    }
    ++*at;
}

static void read_table(const char *text, struct table *t)
{
    *t = (struct table){ .n = 0 };
    for (const char *at = text; *at; t->n++) {
        struct device_row *r = &t->row[t->n];

        word(&at, t->name[t->n]);
        skip_blanks(&at);
        r->count = DEVICE_COUNT_UNKNOWN;
        if (*at == '?')
            at++;
        else
            r->count = device(&at).index;
        for (skip_blanks(&at); *at && *at != ';'; skip_blanks(&at)) {
            if (*at == '[') {
                at++;
                read_list(&at, r);
            } else {
                read_map(&at, r);
            }
        }
        r->name = t->name[t->n];
        for (; *at == ';' || *at == ' '; at++)
            ;
    }
}

static void free_table(struct table *t)
{
    for (size_t i = 0; i < t->n; i++)
        device_row_free(&t->row[i]);
}

/* ---- the rules -------------------------------------------------------------------- */

/* NULL: the table is fine. */
static void expect_in(bool all, const char *text, const char *const *parts)
{
    struct table t;
    tenrec_status st;

    read_table(text, &t);
    st = device_table_check(t.row, t.n, all, &err);
    if (!parts[0] && st != TENREC_OK)
        fail_msg("%s: %s", text, err.text);
    if (parts[0] && st != TENREC_EGROUP)
        fail_msg("%s: it passes, but expected '%s'", text, parts[0]);
    for (; *parts; parts++)
        assert_text_has(err.text, *parts);
    free_table(&t);
}

#define PASSES(text) expect_in(true, text, (const char *const[]){ NULL })
#define FAILS(text, ...) expect_in(true, text, (const char *const[]){ __VA_ARGS__, NULL })

TEST(device_table_passes_without_devices)
{
    PASSES("w0 ?; w1 ?");
    PASSES("w0 0; w1 2");
    PASSES("w0 0 w1{c:c}; w1 0");
}

TEST(device_table_passes_with_maps_that_fit)
{
    PASSES("w0 2 w1{0:1,1:0}; w1 2 w0{0:1,1:0}");
    PASSES("w0 2 [0,1] w1{0:0}; w1 2 [0]");
    PASSES("w0 1 w1{c:0}; w1 1");
    PASSES("w0 1 w0{0:0}");
    PASSES("w0 2 [c,1] w1{c:c,1:0}; w1 1 [0,c]");
}

TEST(device_table_refuses_a_device_that_is_listed_twice)
{
    FAILS("w0 2; w1 2 [0,1,0]", "worker.devices of 'w1'", "cuda:0 twice");
    FAILS("w0 2 [c,c]", "'w0'", "cpu twice");
    /* Before its other mistakes, and those of others' maps. */
    FAILS("w0 2 w1{9:0}; w1 2 [7,7]", "cuda:7 twice");
}

TEST(device_table_refuses_a_device_that_does_not_exist)
{
    FAILS("w0 2 [2]; w1 2", "worker.devices of 'w0'", "cuda:2", "it has cuda:0 to cuda:1");
    FAILS("w0 1 [1]", "it has cuda:0 only");
    FAILS("w0 0 [0]", "it has no devices");
    FAILS("w0 2 [-1]", "cuda:-1");
    FAILS("w0 2 [x]", "device 77:0");
}

TEST(device_table_refuses_a_map_for_an_unknown_worker)
{
    FAILS("worker0 2 wroker0{0:1}; worker1 2", "worker.device_maps of 'worker0'", "'wroker0'",
          "no worker of the group", "did you mean 'worker0'?");
    /* Before what stands in it. */
    FAILS("w0 2 none_exist{9:9,8:9}; w1 2", "none_exist");
}

TEST(device_table_accepts_a_map_for_an_unknown_worker_when_workers_may_join)
{
    expect_in(false, "w0 2 none_exist{0:1}; w1 2", (const char *const[]){ NULL });
    expect_in(false, "w0 2 none_exist{0:7}; w1 2", (const char *const[]){ NULL });
    expect_in(false, "w0 2 none_exist{7:0}; w1 2",
              (const char *const[]){ "'none_exist'", "cuda:7 does not exist on 'w0'", NULL });
}

TEST(device_table_refuses_two_devices_that_go_to_one_device)
{
    FAILS("w0 2 w1{1:0,0:0}; w1 2", "worker.device_maps of 'w0'", "map for 'w1'",
          "cuda:1 and cuda:0 both go to cuda:0");
    FAILS("w0 2 w1{9:0,8:0}; w1 2", "both go to"); /* before they are looked for */
}

TEST(device_table_refuses_a_source_that_is_not_listed)
{
    FAILS("w0 2 [1] w1{0:0}; w1 2", "map for 'w1'", "the device cuda:0",
          "worker.devices of 'w0', [cuda:1]");
    FAILS("w0 2 [1] w1{c:0}; w1 2", "the device cpu");
}

TEST(device_table_refuses_a_source_that_does_not_exist)
{
    FAILS("w0 2 w1{2:0}; w1 2", "the device cuda:2 does not exist on 'w0'");
    FAILS("w0 2 w1{-1:0}; w1 2", "cuda:-1 does not exist on 'w0'");
    FAILS("w0 0 w1{0:0}; w1 2", "on 'w0': it has no devices");
}

TEST(device_table_refuses_a_target_that_is_not_listed)
{
    FAILS("w0 2 [0] w1{0:1}; w1 2 [0]", "map for 'w1'", "the target cuda:1",
          "worker.devices of 'w1', [cuda:0]");
    FAILS("w0 2 w1{0:c}; w1 2 [0]", "the target cpu");
}

TEST(device_table_refuses_a_target_that_does_not_exist)
{
    FAILS("w0 2 w1{0:2}; w1 2", "the target cuda:2 does not exist on 'w1'");
    FAILS("w0 2 w1{0:0}; w1 0", "on 'w1': it has no devices");
    PASSES("w0 2 w1{0:7}; w1 ?"); /* unknown: cannot be said */
}

TEST(device_table_tells_the_first_workers_mistake_first)
{
    FAILS("w0 2 w1{5:0}; w1 2 nobody{0:0}", "of 'w0'");
    FAILS("w0 2; w1 2 nobody{0:0}; w2 2 w1{5:5}", "of 'w1'");
}

TEST(device_table_wants_counts_of_named_workers)
{
    struct table t;

    read_table("w0 2 w1{0:0}; w1 ?; w2 ?; w3 ? [0]", &t);
    assert_false(device_table_wants_count(t.row, t.n, 0));
    assert_true(device_table_wants_count(t.row, t.n, 1));
    assert_false(device_table_wants_count(t.row, t.n, 2));
    assert_true(device_table_wants_count(t.row, t.n, 3));
    free_table(&t);
}

/* ---- rows --------------------------------------------------------------------------- */

TEST(device_row_refuses_a_second_target_for_a_device)
{
    const struct tenrec_device_pair first = { { TENREC_CUDA, 0 }, { TENREC_CUDA, 1 } };
    const struct tenrec_device_pair other = { { TENREC_CUDA, 0 }, { TENREC_CUDA, 0 } };
    struct device_row r = { .count = 2 };
    struct tenrec_device to;

    assert_status(device_row_add(&r, "w1", &first, 1, &err), &err);
    assert_status(device_row_add(&r, "w1", &first, 1, &err), &err); /* the same again */
    assert_int_equal(device_row_add(&r, "w1", &other, 1, &err), TENREC_EINVAL);
    assert_text_has(err.text, "'w1'");
    assert_text_has(err.text, "cuda:0 maps to cuda:1 already");
    assert_status(device_row_add(&r, "w2", &other, 1, &err), &err); /* another worker */
    assert_int_equal(r.n_maps, 2);
    assert_int_equal(device_row_map(&r, "w1")->n, 1);
    assert_true(device_map_find(device_row_map(&r, "w1"), first.from, &to));
    assert_int_equal(to.index, 1);
    device_row_free(&r);
    assert_true(device_row_is_empty(&r));
}

TEST(device_map_copy_swaps_the_ends)
{
    struct device_map back;
    struct tenrec_device to;
    struct table t;

    read_table("w0 2 w1{0:1,c:0}; w1 2", &t);
    assert_status(device_map_copy(device_row_map(&t.row[0], "w1"), true, &back, &err), &err);
    assert_null(back.worker);
    assert_int_equal(back.n, 2);
    assert_true(device_map_find(&back, (struct tenrec_device){ TENREC_CUDA, 1 }, &to));
    assert_int_equal(to.kind, TENREC_CUDA);
    assert_int_equal(to.index, 0);
    assert_true(device_map_find(&back, (struct tenrec_device){ TENREC_CUDA, 0 }, &to));
    assert_int_equal(to.kind, TENREC_CPU);
    assert_false(device_map_find(&back, (struct tenrec_device){ TENREC_CPU, 0 }, &to));
    device_map_free(&back);
    assert_status(device_map_copy(NULL, true, &back, &err), &err);
    assert_int_equal(back.n, 0);
    assert_false(device_map_find(&back, (struct tenrec_device){ TENREC_CPU, 0 }, &to));
    device_map_free(&back);
    free_table(&t);
}

static void expect_list(const char *text, size_t who, const int *index, size_t n)
{
    struct tenrec_device *list;
    struct table t;
    size_t got;

    read_table(text, &t);
    assert_status(device_table_list(t.row, t.n, who, &list, &got, &err), &err);
    assert_int_equal(got, n);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(list[i].kind, TENREC_CUDA);
        assert_int_equal(list[i].index, index[i]);
    }
    free(list);
    free_table(&t);
}

#define LIST(text, who, ...)                                                                       \
    expect_list(text, who, (const int[]){ __VA_ARGS__ },                                           \
                sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int))

TEST(device_list_is_the_given_list_or_that_of_the_maps)
{
    LIST("w0 8 [5,c,3] w1{5:1}; w1 8", 0, 3, 5);
    LIST("w0 8 w1{7:1,2:0,c:5} w0{4:4}; w1 8", 0, 2, 4, 7);
    LIST("w0 8 w1{7:1,2:0,c:5} w0{4:4}; w1 8", 1, 0, 1, 5);
    LIST("w0 8 w1{7:1}; w1 8 w0{3:2}; w2 8 w1{0:3}", 1, 1, 3);
    expect_list("w0 8 w1{c:c}; w1 8", 0, NULL, 0);
    expect_list("w0 ?; w1 ?", 1, NULL, 0);
}

/* ---- records ------------------------------------------------------------------------- */

TEST(device_record_comes_back_unchanged)
{
    struct store_value bytes;
    struct device_row back;
    struct table t;

    read_table("w0 2 [1,c] w1{1:0,c:c} other{}; w1 2", &t);
    device_record_pack(&t.row[0], &bytes);
    assert_non_null(bytes.data);
    assert_status(device_record_unpack(bytes.data, bytes.len, &back, &err), &err);
    assert_int_equal(back.count, 2);
    assert_int_equal(back.n_devices, 2);
    assert_int_equal(back.device[0].index, 1);
    assert_int_equal(back.device[1].kind, TENREC_CPU);
    assert_int_equal(back.n_maps, 2);
    assert_string_equal(back.map[0].worker, "w1");
    assert_int_equal(back.map[0].n, 2);
    assert_int_equal(back.map[0].pair[0].from.index, 1);
    assert_int_equal(back.map[0].pair[1].to.kind, TENREC_CPU);
    assert_int_equal(back.map[1].n, 0);
    device_row_free(&back);
    for (size_t len = 1; len < bytes.len; len++) /* cut anywhere */
        assert_int_equal(device_record_unpack(bytes.data, len, &back, &err), TENREC_EPROTOCOL);
    free(bytes.data);
    free_table(&t);
}

TEST(device_record_of_nothing_says_nothing)
{
    struct device_row back;

    assert_status(device_record_unpack(NULL, 0, &back, &err), &err);
    assert_true(device_row_is_empty(&back));
    assert_int_equal(back.count, DEVICE_COUNT_UNKNOWN);
    assert_int_equal(device_record_unpack("garbage", 7, &back, &err), TENREC_EPROTOCOL);
}
