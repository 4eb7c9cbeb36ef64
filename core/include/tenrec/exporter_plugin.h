/* SPDX-License-Identifier: Apache-2.0 */
/* tenrec/exporter_plugin.h - the header of an exporter plugin.
 *
 * An exporter carries what workers measure to a monitoring system: it serves metrics to a reader,
 * or sends batches to a collector. It is a plugin of the kind TENREC_PLUGIN_EXPORTER, a shared
 * object that exports three symbols and no others:
 *
 *     tenrec_plugin             const data, as in tenrec/plugin.h
 *     tenrec_construct_options  check and complete one filled options struct
 *     tenrec_init_exporter      open the exporter for an address
 *
 * [EX-1] The configuration names an exporter by `observe.metrics_exporter` and
 * `observe.traces_exporter`: an entry of `exporters:`, else the plugin of that name. All workers of
 * a process with the same exporter and address share one. The failure of an exporter is logged, and
 * stops no worker.
 *
 * [EX-2] An exporter that waits, waits on threads of its own or on the thread of a `post`, never in
 * tenrec_init_exporter. */
#ifndef TENREC_EXPORTER_PLUGIN_H
#define TENREC_EXPORTER_PLUGIN_H

#include <tenrec/plugin.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tenrec_exporter;

/* The operations of an exporter. Every slot is optional but `close`. Grows at its end. */
struct tenrec_exporter_ops {
    uint32_t size; /* sizeof(struct tenrec_exporter_ops) */
    uint32_t reserved;

    /* [EX-3] Ends all threads of the exporter and frees self->impl. Called once, last. May block
     * for a second at most. */
    void (*close)(struct tenrec_exporter *self);

    /* [EX-4] Sends one batch, `len` bytes in the format that the caller and the exporter share, and
     * returns after its receiver has accepted it. One thread at a time. NULL: the exporter sends
     * nothing.
     *
     * body     borrowed during the call
     * errors   ETIMEDOUT, ECONNECT, EPERM (refused for good), EPROTOCOL */
    tenrec_status (*post)(struct tenrec_exporter *self, const void *body, size_t len,
                          uint32_t timeout_ms, tenrec_error *err);
};

#define TENREC_PRIVATE_FOLDER_MAX 48 /* leaves room for names of Unix sockets in it */

/* Services of the core for an exporter plugin, from any thread until `close` returns. Grows at its
 * end only. */
struct tenrec_exporter_host {
    uint32_t size; /* sizeof(struct tenrec_exporter_host) */
    uint16_t abi_major, abi_minor;

    /* Returns true if messages of this level are logged; and logs one. */
    bool (*log_enabled)(struct tenrec_exporter *self, enum tenrec_log_level level);
    void (*log)(struct tenrec_exporter *self, enum tenrec_log_level level, const char *fmt, ...)
        TENREC_PRINTF(3, 4);

    /* [EX-5] The metrics of all workers of this process, in Prometheus' text format 0.0.4.
     *
     * ret      a text with a NUL behind its `len` bytes; text_free frees it
     * errors   ENOMEM */
    tenrec_status (*metrics_text)(struct tenrec_exporter *self, char **ret, size_t *ret_len,
                                  tenrec_error *err);
    void (*text_free)(struct tenrec_exporter *self, char *text);

    /* [EX-7] The folder, of mode 0700, in which the processes of this user find each other:
     * $XDG_RUNTIME_DIR, else /run/user/UID, else one in /tmp. Names in it begin with "tenrec-".
     * Since ABI 1.1.
     *
     * ret      a text of less than TENREC_PRIVATE_FOLDER_MAX bytes
     * errors   EOS */
    tenrec_status (*private_folder)(struct tenrec_exporter *self,
                                    char ret[TENREC_PRIVATE_FOLDER_MAX], tenrec_error *err);

    /* Returns true if "HOST", "HOST:PORT" or "SCHEME://HOST:PORT" names this host by its text alone
     * ("localhost", 127.0.0.0/8, ::1): nothing of a connection there leaves it, so none goes
     * through a proxy. Since ABI 1.1. */
    bool (*is_this_host)(struct tenrec_exporter *self, const char *address);
};

/* One open exporter. The core allocates it; init_exporter sets ops and impl. Grows at its end. */
struct tenrec_exporter {
    const struct tenrec_exporter_ops *ops;
    void *impl;
    const struct tenrec_exporter_host *host; /* set already */
};

struct tenrec_exporter_init {
    uint32_t size; /* sizeof(struct tenrec_exporter_init) */
    uint32_t reserved;
    const char *address; /* as in the configuration; lives as long as the exporter */
    const void *options; /* yours, lives as long as the exporter */
};

/* [EX-6] Opens the exporter. On failure frees all resources; close is not called. EINVAL names the
 * error in the address. Any thread, one at a time. */
typedef tenrec_status tenrec_init_exporter_fn(const struct tenrec_exporter_init *in,
                                              struct tenrec_exporter *self, tenrec_error *err);

#define TENREC_EXPORTER_PLUGIN_HEADER TENREC_PLUGIN_HEADER_OF(TENREC_PLUGIN_EXPORTER)

/* A plugin that defines it with another signature does not compile. */
extern TENREC_EXPORT tenrec_init_exporter_fn tenrec_init_exporter;

#ifdef __cplusplus
}
#endif

#endif
