/* SPDX-License-Identifier: Apache-2.0 */
/* collector.h - the address of a collector. */
#ifndef OTLP_COLLECTOR_H
#define OTLP_COLLECTOR_H

#include <stdbool.h>
#include <tenrec/error.h>

struct collector {
    char *url;  /* owns; with a path */
    char *host; /* owns; as the URL has it */
    bool plain; /* http: without TLS */
};

/* Reads "http://collector:4318". Without a path it is /v1/traces. errors: EINVAL, ENOMEM */
tenrec_status collector_parse(const char *address, struct collector *ret, tenrec_error *err);
void collector_finish(struct collector *c);

#endif
