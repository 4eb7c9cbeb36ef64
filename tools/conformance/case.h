/* SPDX-License-Identifier: Apache-2.0 */
/* case.h - the cases of the contract, and what they work with.
 *
 * A case runs in a process of its own, between workers that are new, on clients of a store or on an
 * observer, and demands by expect.h. */
#ifndef TENREC_TOOLS_CONFORMANCE_CASE_H
#define TENREC_TOOLS_CONFORMANCE_CASE_H

#include "conformance/expect.h"

#include <stdbool.h>

/* setup.c: what is checked, as the arguments of the command name it. */

struct tool;

/* The contract: of tenrec/agent.h, store_plugin.h or observer_plugin.h. */
enum conformance_kind { OF_AGENTS, OF_STORES, OF_OBSERVERS };

/* The backend, store or observer under test. */
struct conformance_setup {
    const char *path;         /* of the config; NULL: as TENREC_CONFIG says */
    const char *text;         /* of a config without a file; NULL: the file's */
    const char *mode;         /* of security; NULL: as the config and the environment say */
    const char *url;          /* of a store; else NULL */
    const char *address;      /* of an observer, whose plugin is `path`; else NULL */
    int workers;              /* 1 or 2 */
    char *own_text, *own_url; /* owns: what `text` and `url` may point to */
};

/* The words of the command: a configuration or a plugin, a URL, or both in any order. `around` is
 * the plugin inside, or NULL. Returns TOOL_GO_ON, or an exit status after it has printed why.
 *
 * ret   finished by setup_finish on success; `workers`, `mode` and `address` stay as they are */
int setup_make(const struct tool *self, char **word, int n, const char *around,
               struct conformance_setup *ret);
void setup_finish(struct conformance_setup *s);

static inline enum conformance_kind setup_kind(const struct conformance_setup *s)
{
    return s->address ? OF_OBSERVERS : s->url ? OF_STORES : OF_AGENTS;
}

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

/* leftover.c: threads, descriptors and memory that a plugin keeps after its end. */

struct leftover {
    int threads, fds; /* of this process */
};

struct leftover leftover_count(void);

/* Demands that no more are there than `before`. A joined thread may be seen for a moment after
 * its join, and a closed descriptor may not. */
void leftover_expect_threads(struct leftover before);
void leftover_expect_fds(struct leftover before);

/* Demands that memory in use does not grow with each call of `life`, of which each frees what it
 * allocates; its text says so. Where an allocator does not count (sanitizers), it sees nothing. */
void leftover_expect_memory(void (*life)(void));

#endif
