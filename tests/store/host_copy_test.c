/* SPDX-License-Identifier: Apache-2.0 */
/* host_copy_test.c - what one worker of a host has read, for the others. The workers are threads,
 * each of which opens the memory file again, as a process does. */
#include "../support/test_store.h"

#include "core/base/clock.h"
#include "group/store/host_copy.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>

enum { READERS = 8, SOON_MS = 100 };

static int file = -1;
static tenrec_error err;

static void announce(int fd)
{
    char text[16];

    snprintf(text, sizeof text, "%d", fd);
    setenv(HOST_COPY_VARIABLE, text, 1);
}

static void make_file(void)
{
    assert_status(host_copy_new(&file, &err), &err);
    announce(file);
}

static void drop_file(void)
{
    unsetenv(HOST_COPY_VARIABLE);
    close(file);
}

/* A store with one value. */
struct source {
    const char *value; /* NULL: none */
    tenrec_status st;
    atomic_int fetches;
};

static tenrec_status fetch(void *arg, uint64_t deadline_ns, struct store_value *ret,
                           tenrec_error *e)
{
    struct source *s = arg;

    (void)deadline_ns;
    atomic_fetch_add(&s->fetches, 1);
    if (s->st != TENREC_OK)
        return tenrec_fail(e, s->st, "the store is gone");
    *ret =
        (struct store_value){ s->value ? strdup(s->value) : NULL, s->value ? strlen(s->value) : 0 };
    return TENREC_OK;
}

static bool fits(void *arg, const struct store_value *copy)
{
    const struct source *s = arg;

    return copy->len == strlen(s->value) && memcmp(copy->data, s->value, copy->len) == 0;
}

/* expected: NULL for none */
static void assert_value(const struct store_value *v, const char *expected)
{
    if (!expected)
        assert_null(v->data);
    else if (v->len != strlen(expected) || memcmp(v->data, expected, v->len) != 0)
        fail_msg("the value is \"%.*s\"", (int)v->len, (const char *)v->data);
}

static void reads(struct source *s, const char *expected)
{
    const struct host_copy h = { fetch, fits, s };
    struct host_value got;

    assert_status(host_copy_read(&h, clock_deadline_ms(TEST_MS), &got, &err), &err);
    assert_value(&got.value, expected);
    host_value_drop(&got);
}

static void *reader(void *arg)
{
    reads(arg, "all members");
    return NULL;
}

TEST_WITH(host_copy_is_read_from_the_store_once, make_file, drop_file)
{
    struct source s = { .value = "all members" };
    pthread_t thread[READERS];

    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, reader, &s), 0);
    for (int i = 0; i < READERS; i++)
        pthread_join(thread[i], NULL);
    assert_int_equal(s.fetches, 1);
}

TEST_WITH(host_copy_that_does_not_fit_is_replaced, make_file, drop_file)
{
    struct source former = { .value = "the members of the former life" },
                  now = { .value = "members" };

    reads(&former, former.value);
    reads(&now, "members");
    reads(&now, "members");
    assert_int_equal(now.fetches, 1);
}

TEST_WITH(host_copy_of_nothing_is_none, make_file, drop_file)
{
    struct source none = { .value = NULL }, some = { .value = "members" };

    reads(&none, NULL);
    reads(&some, "members");
    assert_int_equal(some.fetches, 1);
}

TEST_WITH(host_copy_reports_the_error_of_the_store, make_file, drop_file)
{
    struct source gone = { .value = "x", .st = TENREC_EPEER_LOST }, back = { .value = "x" };
    const struct host_copy h = { fetch, fits, &gone };
    struct host_value got;

    assert_int_equal(host_copy_read(&h, clock_deadline_ms(TEST_MS), &got, &err), TENREC_EPEER_LOST);
    assert_text_has(err.text, "the store is gone");
    host_value_drop(&got);
    reads(&back, "x");
}

/* A length that the file does not have, or that no value has. */
TEST_WITH(host_copy_does_not_trust_the_length_in_the_file, make_file, drop_file)
{
    static const uint64_t lengths[] = { 100, UINT64_MAX, (uint64_t)TENREC_STORE_MAX_VALUE + 1 };
    struct source s = { .value = "members" };

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        assert_int_equal(pwrite(file, &lengths[i], 8, 8), 8);
        reads(&s, "members");
        assert_int_equal(s.fetches, (int)i + 1);
    }
}

/* The number was announced, but is that of another file now, or of none. */
TEST_WITH(host_copy_leaves_other_files_alone, make_file, drop_file)
{
    struct source s = { .value = "members" };
    const int other = memfd_create("other", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    const int device = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int sealed = memfd_create("sealed", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    const int numbers[] = { other, device, 1 << 20, sealed };
    char before[64] = "memory of tensors, say", after[64];
    off_t bytes;

    assert_int_equal(write(sealed, before, sizeof before), sizeof before);
    assert_int_equal(fcntl(sealed, F_ADD_SEALS, F_SEAL_SHRINK), 0);

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        announce(numbers[i]);
        reads(&s, "members");
    }
    setenv(HOST_COPY_VARIABLE, "three", 1);
    reads(&s, "members");
    unsetenv(HOST_COPY_VARIABLE);
    reads(&s, "members");
    assert_int_equal(s.fetches, 6);
    bytes = lseek(other, 0, SEEK_END);
    assert_int_equal(bytes, 0);
    assert_int_equal(pread(sealed, after, sizeof after, 0), sizeof after);
    assert_memory_equal(after, before, sizeof after);
    close(sealed);
    close(other);
    close(device);
}

/* A mapping of a file that shrinks would end the process. */
TEST_WITH(host_copy_that_could_shrink_is_left_alone, make_file, drop_file)
{
    struct source s = { .value = "members" };
    const int other = memfd_create("other", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    char head[64];
    const ssize_t n = read(file, head, sizeof head);

    assert_true(n > 8);
    assert_int_equal(write(other, head, (size_t)n), n);
    announce(other);
    reads(&s, "members");
    reads(&s, "members");
    assert_int_equal(s.fetches, 2);
    assert_int_equal(lseek(other, 0, SEEK_END), n);
    assert_int_equal(fcntl(other, F_ADD_SEALS, F_SEAL_SHRINK), 0);
    reads(&s, "members");
    reads(&s, "members");
    assert_int_equal(s.fetches, 3);
    close(other);
}

/* A write beyond the limit of files would end the process. */
TEST_WITH(host_copy_larger_than_a_file_may_be_is_not_made, make_file, drop_file)
{
    struct source s = { .value = "members, many more than the limit of the size of files lets us "
                                 "write, which is 64 bytes" };
    struct rlimit before;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 64, before.rlim_max }), 0);
    reads(&s, s.value);
    reads(&s, s.value);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(s.fetches, 2);
}

/* The process that reads the store is stopped. */
TEST_WITH(host_copy_that_stays_locked_is_not_waited_for, make_file, drop_file)
{
    struct source s = { .value = "members" };
    const struct host_copy h = { fetch, fits, &s };
    struct host_value got;

    assert_int_equal(flock(file, LOCK_EX), 0);
    assert_status(host_copy_read(&h, clock_deadline_ms(SOON_MS), &got, &err), &err);
    assert_value(&got.value, "members");
    host_value_drop(&got);
    assert_int_equal(flock(file, LOCK_UN), 0);
    reads(&s, "members");
    assert_int_equal(s.fetches, 2);
}
