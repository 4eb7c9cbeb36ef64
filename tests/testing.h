/* SPDX-License-Identifier: Apache-2.0 */
/* testing.h - cases that register themselves, and asserts that print what they saw: cmocka's, and
 * some more. */
#ifndef TENREC_TESTS_TESTING_H
#define TENREC_TESTS_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <tenrec/error.h>

/* A case of this program, and a fixture of its own. */
struct testing_case {
    const char *name, *file;
    int line;
    void (*run)(void);
    void (*set_up)(void), (*tear_down)(void); /* NULL: none */
    bool (*when)(void);                       /* NULL: always */
    struct testing_case *next;
};

/* Borrows `c` until the program ends. Cases run in the order of their lines. */
void testing_add(struct testing_case *c);

/* Runs the cases of the program between `set_up` and `tear_down`, which may be NULL. Returns the
 * exit status. A program without a main of its own gets a main that does no more than this. */
int testing_run(void (*set_up)(void), void (*tear_down)(void));

/* That main with a set-up, and for a program whose argument, if it has one, is used by an
 * expression: TEST_MAIN(cluster_use(argv[1]), NULL, NULL). TEST_BETWEEN is for no argument. */
#define TEST_MAIN(use_argument, set_up, tear_down)                                                 \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        if (argc > 1)                                                                              \
            (use_argument);                                                                        \
        return testing_run(set_up, tear_down);                                                     \
    }
#define TEST_BETWEEN(set_up, tear_down) TEST_MAIN((void)argv, set_up, tear_down)

/* Defines a case and registers it: TEST(queue_is_empty_when_made) { ... } */
#define TEST(name) TEST_WITH(name, NULL, NULL)

/* The same between `set_up` and `tear_down`, functions without arguments, or NULL. */
#define TEST_WITH(name, set_up, tear_down) TEST_WHEN(name, NULL, set_up, tear_down)

/* The same, in those runs of the program only for which `condition`() holds. */
#define TEST_WHEN(name, condition, set_up, tear_down)                                              \
    static void name(void);                                                                        \
    __attribute__((constructor)) static void testing_add_##name(void)                              \
    {                                                                                              \
        static struct testing_case case_ = { #name,  __FILE__,  __LINE__,  name,                   \
                                             set_up, tear_down, condition, NULL };                 \
        testing_add(&case_);                                                                       \
    }                                                                                              \
    static void name(void)

/* The call went well; else its error is shown. */
#define assert_status(call, err)                                                                   \
    do {                                                                                           \
        if ((call) != TENREC_OK)                                                                   \
            fail_msg("%s: %s", #call, (err)->text);                                                \
    } while (0)

#define assert_text_has(text, part)                                                                \
    do {                                                                                           \
        if (!strstr((text), (part)))                                                               \
            fail_msg("'%s' is not in '%s'", (part), (text));                                       \
    } while (0)

/* How many times slower than plain the run is: under a sanitizer, or valgrind. */
static inline unsigned long testing_slow(void)
{
    const char *slow = getenv("TENREC_TEST_SLOW");
    const unsigned long times = slow ? strtoul(slow, NULL, 10) : 1;

    return times > 0 && times <= 100 ? times : 1;
}

/* Looks, a millisecond apart, before assert_becomes fails. */
static inline unsigned long testing_looks(void)
{
    return 20000 * testing_slow();
}

/* Polls until `condition` holds; fails after twenty seconds, or longer where the run is slow. */
#define assert_becomes(condition)                                                                  \
    do {                                                                                           \
        for (unsigned long left_ = testing_looks(); !(condition); left_--) {                       \
            if (left_ == 0)                                                                        \
                fail_msg("%s does not come true", #condition);                                     \
            poll(NULL, 0, 1);                                                                      \
        }                                                                                          \
    } while (0)

/* recv that goes on after EINTR, of which MSG_WAITALL has all bytes. Where libuv uses an io_uring,
 * the kernel interrupts the thread that made a loop once that loop has been closed; a receive with
 * a time limit is not restarted then. */
static inline ssize_t recv_again(int fd, void *to, size_t n, int flags)
{
    size_t got = 0;
    ssize_t r;

    do {
        r = recv(fd, (char *)to + got, n - got, flags);
        got += r > 0 ? (size_t)r : 0;
    } while ((r < 0 && errno == EINTR) || (r > 0 && got < n && flags & MSG_WAITALL));
    return got ? (ssize_t)got : r;
}

#endif
