/* SPDX-License-Identifier: Apache-2.0 */
/* case.h - the cases of the contract, and what they work with.
 *
 * A case runs in a process of its own, between workers that are new, on clients of a store or on an
 * observer, and demands by expect.h. */
#ifndef TENREC_TOOLS_CONFORMANCE_CASE_H
#define TENREC_TOOLS_CONFORMANCE_CASE_H

#include "conformance/expect.h"
#include "conformance/setup.h"

struct conformance_case {
    const char *name, *file;
    int line;
    const char *rules; /* "AG-4 AG-9": what it checks, as the headers number them */
    enum conformance_kind of;
    bool of_two; /* needs a second worker; of a store: a second process */
    void (*run)(void);
    struct conformance_case *next;
};

/* In the order of the source. */
void case_add(struct conformance_case *c);
struct conformance_case *case_first(void);

/* CASE(name, "AG-4 AG-9") { ... } */
#define CASE(name, rules) CASE_(name, rules, OF_AGENTS, false)
#define CASE_OF_TWO(name, rules) CASE_(name, rules, OF_AGENTS, true)
#define STORE_CASE(name, rules) CASE_(name, rules, OF_STORES, false)
#define STORE_CASE_OF_TWO(name, rules) CASE_(name, rules, OF_STORES, true)
#define OBSERVER_CASE(name, rules) CASE_(name, rules, OF_OBSERVERS, false)
#define CASE_(name, rules, of, of_two)                                                             \
    static void name(void);                                                                        \
    __attribute__((constructor)) static void case_add_##name(void)                                 \
    {                                                                                              \
        static struct conformance_case case_ = { #name, __FILE__, __LINE__, rules,                 \
                                                 of,    of_two,   name,     NULL };                \
        case_add(&case_);                                                                          \
    }                                                                                              \
    static void name(void)

/* Runs it. Returns if all its demands held. */
void case_run(const struct conformance_case *c, const struct conformance_setup *setup);
/* Each kind: from its workers' start to their end, from its clients' opening to their close, from
 * the loading of its plugin on. */
void agent_run(const struct conformance_case *c, const struct conformance_setup *setup);
void clients_run(const struct conformance_case *c, const struct conformance_setup *setup);
void observer_run(const struct conformance_case *c, const struct conformance_setup *setup);

/* Demands that the file of the plugin exports Tenrec's symbols only; "": not offered. */
void case_check_exports(const char *path);

#endif
