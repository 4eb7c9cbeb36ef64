/* SPDX-License-Identifier: Apache-2.0 */
/* parallel_copy_test.c - what arrives, and how many threads it takes. */
#include "core/tensor/storage_pool.h"

#include "../testing.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>

#define PIECE ((size_t)64 << 10)
#define LARGE ((size_t)3 << 20)

/* The thread of parallel_copy; a sanitizer may have one of its own. */
static size_t helpers(void)
{
    DIR *d = opendir("/proc/self/task");
    size_t n = 0;

    assert_non_null(d);
    for (struct dirent *e; (e = readdir(d));) {
        char path[300], name[16] = "";
        FILE *f;

        snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
        f = fopen(path, "r");
        if (!f)
            continue;
        n += fgets(name, sizeof name, f) && strncmp(name, "tenrec-copy", 11) == 0;
        fclose(f);
    }
    closedir(d);
    return n;
}

static struct parallel_copy *open_one(void)
{
    struct parallel_copy *c = NULL;
    tenrec_error err;

    assert_status(parallel_copy_open(&c, &err), &err);
    return c;
}

/* Each byte encodes its position, shifted by `seed`. */
static void fill(unsigned char *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)(i % 251 + seed);
}

/* Copies n bytes and checks them, and the byte behind. */
static void copy_and_look(struct parallel_copy *c, size_t n, unsigned seed)
{
    unsigned char *from = malloc(n + 1), *to = calloc(1, n + 1);

    assert_non_null(from);
    assert_non_null(to);
    fill(from, n + 1, seed);
    to[n] = 0xfe;
    parallel_copy_run(c, to, from, n);
    assert_memory_equal(to, from, n);
    assert_int_equal(to[n], 0xfe);
    free(from);
    free(to);
}

TEST(parallel_copy_has_a_thread_from_the_first_large_copy_to_its_end)
{
    struct parallel_copy *c = open_one();

    copy_and_look(c, PIECE, 1);
    assert_int_equal(helpers(), 0);
    copy_and_look(c, LARGE, 2);
    copy_and_look(c, LARGE, 3);
    assert_in_range(helpers(), 0, 1); /* none where there is one CPU */
    parallel_copy_close(c);
    assert_becomes(helpers() == 0); /* a joined one is seen a moment longer */
}

TEST(parallel_copy_copies_all_sizes)
{
    const size_t size[] = { 0, 1, PIECE, LARGE - 1, LARGE, LARGE + 1, LARGE + PIECE - 1 };
    struct parallel_copy *c = open_one();

    for (unsigned i = 0; i < sizeof size / sizeof size[0]; i++)
        copy_and_look(c, size[i], i);
    parallel_copy_close(c);
}

static void *copy_often(void *arg)
{
    for (unsigned i = 0; i < 20; i++)
        copy_and_look(arg, LARGE + i, i);
    return NULL;
}

TEST(parallel_copy_serves_several_threads)
{
    struct parallel_copy *c = open_one();
    pthread_t other[3];

    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&other[i], NULL, copy_often, c), 0);
    copy_often(c);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(pthread_join(other[i], NULL), 0);
    parallel_copy_close(c);
}

int main(void)
{
    parallel_copy_close(NULL);
    return testing_run(NULL, NULL);
}
