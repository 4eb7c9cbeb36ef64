/* SPDX-License-Identifier: Apache-2.0 */
/* outside.h - calling a group that runs, without being one of it. */
#ifndef TENREC_TOOLS_OUTSIDE_H
#define TENREC_TOOLS_OUTSIDE_H

#include <stdint.h>
#include <tenrec/observe.h>

/* What the command line says. */
struct outside {
    const char *store;  /* URL; NULL: as the config's init_method says */
    const char *config; /* NULL: as a worker finds it */
    const char *group;  /* NULL: as the config says */
    uint64_t limit_ms;  /* of all that is done */
    uint64_t until_ns;  /* set by outside_open */
    struct tenrec_worker *worker;
};

#define OUTSIDE_LIMIT_MS 5000
#define OUTSIDE_HELP                                                                               \
    "  -s, --store URL  store of the group: tcp://host:port or file://path; else where the\n"      \
    "                   config's init_method says. 'tenrec run --verbose' prints that of its\n"    \
    "                   workers, who have it in MASTER_ADDR and MASTER_PORT\n"                     \
    "  -c, --config F   with the backend of the group; else TENREC_CONFIG or the default\n"        \
    "  -g, --group G    name of the group; else the config's worker.group\n"                       \
    "  -t, --timeout D  limit of all that is done, as 500ms or 5s (default)"

/* Takes one of these options; false when `c` is none. *ret_status: of a value
 * that makes no sense. */
#define OUTSIDE_SHORT "s:c:g:t:"
#define OUTSIDE_OPTIONS                                                                            \
    { "store", required_argument, NULL, 's' }, { "config", required_argument, NULL, 'c' },         \
        { "group", required_argument, NULL, 'g' },                                                 \
    {                                                                                              \
        "timeout", required_argument, NULL, 't'                                                    \
    }
bool outside_option(struct outside *o, int c, const char *value, tenrec_status *ret_status,
                    tenrec_error *err);

/* Attaches to the group. outside_close it, also after a failure. */
tenrec_status outside_open(struct outside *o, tenrec_error *err);
void outside_close(struct outside *o);

/* Options of a call that ends within the limit. */
struct tenrec_call_options outside_call(const struct outside *o);

/* Says of a failed call to `name` what can be seen from here about it. */
void outside_explain(const struct outside *o, const char *name, tenrec_error *err);

#endif
