/* SPDX-License-Identifier: Apache-2.0 */
#include "conformance/case.h"

#include <stdio.h>
#include <string.h>
#include <tenrec/log.h>

struct world w;
struct side *a, *b;

static struct conformance_case *cases;
static atomic_int log_errors;

void case_add(struct conformance_case *c)
{
    struct conformance_case **at = &cases;

    /* A compiler may register the cases of a file in any order. */
    while (*at && (strcmp((*at)->file, c->file) != 0 || (*at)->line < c->line))
        at = &(*at)->next;
    c->next = *at;
    *at = c;
}

struct conformance_case *case_first(void)
{
    return cases;
}

/* An error in the log is a failure: the cases give no reason for any. */
static void on_log(void *arg, enum tenrec_log_level level, const char *part, const char *text)
{
    (void)arg;
    if (level != TENREC_LOG_ERROR && !strstr(text, "does not run"))
        return;
    atomic_fetch_add(&log_errors, 1);
    fprintf(stderr, "log of %s: %s\n", part, text);
}

void case_run(const struct conformance_case *c, const struct conformance_setup *setup)
{
    tenrec_log_set_callback(on_log, NULL);
    tenrec_log_set_level(TENREC_LOG_DEBUG);
    world_open(&w, setup->text, setup->path, setup->workers, setup->mode);
    a = &w.worker[0];
    b = world_other(&w);
    c->run();
    world_close(&w);
    expect_equal(atomic_load(&log_errors), 0);
}

struct tenrec_msg *await(struct side *k, size_t i, tenrec_peer *ret_from)
{
    expect_becomes(side_got(k, i, NULL));
    return side_got(k, i, ret_from);
}

void disconnect(tenrec_error *err)
{
    tenrec_status st = chain_disconnect(a->chain, b->id, err);

    if (st == TENREC_EUNSUPPORTED)
        expect_not_offered("disconnect");
    expect_ok(st, err);
}
