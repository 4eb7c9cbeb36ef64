/* SPDX-License-Identifier: Apache-2.0 */
#include "testing.h"

#include <errno.h>

static struct testing_case *cases;
static void (*group_set_up)(void), (*group_tear_down)(void);

void testing_add(struct testing_case *c)
{
    struct testing_case **at = &cases;

    /* A compiler may register the cases of a file in any order. */
    while (*at && (strcmp((*at)->file, c->file) != 0 || (*at)->line < c->line))
        at = &(*at)->next;
    c->next = *at;
    *at = c;
}

static int set_up_group(void **state)
{
    (void)state;
    if (group_set_up)
        group_set_up();
    return 0;
}

static int tear_down_group(void **state)
{
    (void)state;
    if (group_tear_down)
        group_tear_down();
    return 0;
}

static int set_up_case(void **state)
{
    const struct testing_case *c = *state;

    if (c->set_up)
        c->set_up();
    return 0;
}

static void run_case(void **state)
{
    const struct testing_case *c = *state;

    c->run();
}

static int tear_down_case(void **state)
{
    const struct testing_case *c = *state;

    if (c->tear_down)
        c->tear_down();
    return 0;
}

int testing_run(void (*set_up)(void), void (*tear_down)(void))
{
    struct CMUnitTest *tests;
    size_t n = 0;
    int failed;

    for (struct testing_case *c = cases; c; c = c->next)
        n++;
    tests = calloc(n + 1, sizeof *tests);
    if (!tests || n == 0) /* a program without cases tests nothing */
        return 1;
    n = 0;
    for (struct testing_case *c = cases; c; c = c->next)
        if (!c->when || c->when())
            tests[n++] = (struct CMUnitTest){ c->name, run_case, set_up_case, tear_down_case, c };
    group_set_up = set_up;
    group_tear_down = tear_down;
    failed = _cmocka_run_group_tests(program_invocation_short_name, tests, n, set_up_group,
                                     tear_down_group);
    free(tests);
    return failed;
}

__attribute__((weak)) int main(void)
{
    return testing_run(NULL, NULL);
}
