/* SPDX-License-Identifier: Apache-2.0 */
/* processors_test.c - the processors that a process may use, from files like those of cgroup v2. */
#include "agent/agent.h"

#include "../../testing.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static char mount[] = "/tmp/tenrec-cgroup-XXXXXX";

static void path_of(const char *name, char ret[128])
{
    snprintf(ret, 128, "%s%s", mount, name);
}

static void put(const char *name, const char *text)
{
    char path[128];
    FILE *f;

    path_of(name, path);
    f = fopen(path, "we");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void set_up(void)
{
    char path[128];

    memcpy(mount + sizeof mount - 7, "XXXXXX", 6);
    assert_non_null(mkdtemp(mount));
    path_of("/a", path);
    assert_int_equal(mkdir(path, 0700), 0);
    path_of("/a/b", path);
    assert_int_equal(mkdir(path, 0700), 0);
}

static void tear_down(void)
{
    static const char *const files[] = { "/a/b/cpu.max", "/a/cpu.max", "/cpu.max" };
    char path[128];

    for (size_t i = 0; i < 3; i++) {
        path_of(files[i], path);
        unlink(path);
    }
    path_of("/a/b", path);
    rmdir(path);
    path_of("/a", path);
    rmdir(path);
    assert_int_equal(rmdir(mount), 0);
}

TEST_WITH(processors_are_those_of_the_quota_rounded_up, set_up, tear_down)
{
    put("/a/b/cpu.max", "5000 100000\n");
    assert_int_equal(processors_quota(mount, "/a/b"), 1);
    put("/a/b/cpu.max", "150000 100000\n");
    assert_int_equal(processors_quota(mount, "/a/b"), 2);
}

TEST_WITH(processors_obey_the_quota_of_an_outer_group, set_up, tear_down)
{
    put("/a/b/cpu.max", "max 100000\n");
    put("/a/cpu.max", "100000 100000\n");
    assert_int_equal(processors_quota(mount, "/a/b"), 1);
    put("/a/b/cpu.max", "400000 100000\n");
    assert_int_equal(processors_quota(mount, "/a/b"), 1);
}

TEST_WITH(processors_have_no_quota_without_a_file_that_can_be_read, set_up, tear_down)
{
    assert_int_equal(processors_quota(mount, "/a/b"), UINT_MAX);
    assert_int_equal(processors_quota(mount, "/"), UINT_MAX);
    put("/a/b/cpu.max", "max 100000\n");
    assert_int_equal(processors_quota(mount, "/a/b"), UINT_MAX);
    put("/a/b/cpu.max", "none");
    assert_int_equal(processors_quota(mount, "/a/b"), UINT_MAX);
    put("/a/b/cpu.max", "0 0");
    assert_int_equal(processors_quota(mount, "/a/b"), UINT_MAX);
}

TEST(processors_are_those_that_the_process_may_run_on)
{
    const unsigned allotted = processors_allotted();
    cpu_set_t before, one;
    int cpu = 0;

    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    while (!CPU_ISSET(cpu, &before))
        cpu++;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    assert_int_equal(processors_usable(), 1);
    (void)allotted;
    /* A peer may have the others. musl counts those of the mask. */
#ifdef __GLIBC__
    assert_int_equal(processors_allotted(), allotted);
#endif
    assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
}
