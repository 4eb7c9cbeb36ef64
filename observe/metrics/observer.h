/* SPDX-License-Identifier: Apache-2.0 */
/* observer.h - the open observers of the process, by plugins. Workers that name the same entry and
 * address share one. */
#ifndef TENREC_METRICS_OBSERVER_H
#define TENREC_METRICS_OBSERVER_H

#include <stdatomic.h>
#include <tenrec/observer_plugin.h>

#include "core/config/node.h"
#include "rpc/value/trace.h"

/* The plugin of an observer, loaded and with its options filled. Opens nothing. */

struct tenrec_config;

struct observer_choice {
    atomic_uint refs;
    struct plugin *plugin; /* shares (counted) */
    void *options;         /* owns */
    char name[64];         /* of the entry */
};

/* Loads what an option of `observe:` names.
 *
 * where    of that option
 * config   may be changed or dropped afterwards
 * ret      shares (counted): observer_choice_drop
 * errors   with the position: ECONFIG (also of the plugin's construct), EPLUGIN, EABI, EEXIST,
 * ENOMEM
 */
tenrec_status observer_choice_load(const struct tenrec_config *config, const char *name,
                                   const struct position *where, struct observer_choice **ret,
                                   tenrec_error *err);
struct observer_choice *observer_choice_share(struct observer_choice *c);
void observer_choice_drop(struct observer_choice *c); /* NULL is fine */

/* An open observer. */

struct observer;

/* What the plugin of an observer may ask of its host. */
extern const struct tenrec_observer_host observer_host;

/* Opens it, or shares the open one, with whose options it goes on.
 *
 * ret      shares (counted): observer_close
 * errors   ENOMEM, EPLUGIN, and those of the plugin */
tenrec_status observer_open(struct observer_choice *choice, const char *address,
                            struct observer **ret, tenrec_error *err);
/* The last share closes the plugin's observer, which may take a second. NULL is fine. */
void observer_close(struct observer *o);

/* observer_span and observer_leave are for an observer that takes spans. */
bool observer_takes_spans(const struct observer *o);
void observer_span(struct observer *o, struct tenrec_span *s); /* takes always */
void observer_leave(struct observer *o, const struct tenrec_origin *origin);

/* The spans of a worker on their way to an observer. */

/* A sink that drops spans until it is started; it lives as long as calls of the worker do. Returns
 * NULL without memory. */
struct trace_sink *span_source_new(void);
void span_source_drop(struct trace_sink *sink); /* NULL is fine */

/* errors: as observer_open; EUNSUPPORTED for an observer that takes no spans */
tenrec_status span_source_start(struct trace_sink *sink, struct observer_choice *choice,
                                const char *address, const char *service, const char *worker,
                                tenrec_error *err);

/* Lets the observer deliver what it has, and returns after two seconds at the latest. */
void span_source_stop(struct trace_sink *sink);

#endif
