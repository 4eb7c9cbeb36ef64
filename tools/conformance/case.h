/* SPDX-License-Identifier: Apache-2.0 */
/* case.h - the cases of the contract, and what they work with.
 *
 * A case runs in a process of its own, between workers that are new, and demands by expect.h. */
#ifndef TENREC_TOOLS_CONFORMANCE_CASE_H
#define TENREC_TOOLS_CONFORMANCE_CASE_H

#include "conformance/expect.h"
#include "conformance/world.h"

struct conformance_case {
    const char *name, *file;
    int line;
    const char *rules; /* "AG-4 AG-9": what it checks, as the headers number them */
    bool of_two;       /* needs a second worker */
    void (*run)(void);
    struct conformance_case *next;
};

/* In the order of the source. */
void case_add(struct conformance_case *c);
struct conformance_case *case_first(void);

/* CASE(name, "AG-4 AG-9") { ... } */
#define CASE(name, rules) CASE_(name, rules, false)
#define CASE_OF_TWO(name, rules) CASE_(name, rules, true)
#define CASE_(name, rules, of_two)                                                                 \
    static void name(void);                                                                        \
    __attribute__((constructor)) static void case_add_##name(void)                                 \
    {                                                                                              \
        static struct conformance_case case_ = { #name,  __FILE__, __LINE__, rules,                \
                                                 of_two, name,     NULL };                         \
        case_add(&case_);                                                                          \
    }                                                                                              \
    static void name(void)

/* The backend under test. */
struct conformance_setup {
    const char *path; /* of the config */
    const char *text; /* of a config without a file; NULL: the file's */
    const char *mode; /* of security; NULL: as the config and the environment say */
    int workers;      /* 1 or 2 */
};

/* Runs it from its workers' start to their end. Returns if all its demands held. */
void case_run(const struct conformance_case *c, const struct conformance_setup *setup);

/* ---- for the cases ---- */

/* The workers; b == a when there is one only. */
extern struct world w;
extern struct side *a, *b;

/* The ith message that came to `k`, waited for; borrowed. */
struct tenrec_msg *await(struct side *k, size_t i, tenrec_peer *ret_from);

/* Drops a's connection to b. */
void disconnect(tenrec_error *err);

/* A thread that sends. */
struct sender {
    struct side *from;
    tenrec_peer to;
    int64_t first_id;
    struct tally *tally;
};

#endif
