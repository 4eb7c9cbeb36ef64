/* SPDX-License-Identifier: Apache-2.0 */
/* store_raw.h - the operations of the plugin itself, without the core between. */
#ifndef TENREC_TOOLS_CONFORMANCE_STORE_RAW_H
#define TENREC_TOOLS_CONFORMANCE_STORE_RAW_H

#include <tenrec/store_plugin.h>

/* A store as the core opens it, without the core's checks. */
struct raw {
    struct tenrec_plugin_store store;
    const struct tenrec_store_ops *ops; /* the same */
};

/* Ends the case as not offered for a store that is no plugin. */
tenrec_status raw_open(struct raw *ret, const char *url, uint64_t deadline_ns, tenrec_error *err);
/* Opens place_url(). */
void raw_open_place(struct raw *ret);
void raw_close(struct raw *r);
/* All that the stores of raw_open logged so far; the caller frees it. */
char *raw_log(void);

#endif
