/* SPDX-License-Identifier: Apache-2.0 */
/* resources.h - the transports and devices of a context of UCX, and the reasons for those that are
 * missing. UCX has no query for them: this reads the text that it prints for people. */
#ifndef UCX_RESOURCES_H
#define UCX_RESOURCES_H

#include "options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { RESOURCES_WHY = 256 };

struct resources {
    char *text; /* owned */
};

struct ucp_context;
/* Of an open context. errors: ENOMEM */
tenrec_status resources_read(struct ucp_context *context, struct resources *ret, tenrec_error *err);
/* Of a context that is made and closed here. `o` NULL: of all that UCX finds, whatever the options
 * and the variables UCX_TLS and UCX_NET_DEVICES say. */
tenrec_status resources_find(const struct ucx_options *o, struct resources *ret, tenrec_error *err);
void resources_drop(struct resources *r);

/* Steps through the transports and devices, from *at == 0: "tcp" and "eth0". Returns false at the
 * end. */
bool resources_next(const struct resources *r, size_t *at, char transport[64], char device[64]);
/* Returns true if the transport is among them; its devices in `devices`, with commas between. */
bool resources_has(const struct resources *r, const char *transport, char *devices, size_t room);
/* Returns true if UCX has the component, such as "ib". */
bool resources_has_component(const struct resources *r, const char *component);

/* Returns true if the transport leads to other hosts, faster than TCP. */
bool resources_is_fast(const char *transport);
/* Finds the first of these and its device: "rc_mlx5/mlx5_0:1". */
bool resources_find_fast(const struct resources *r, char ret[130]);
/* Why this host offers no InfiniBand or RoCE to UCX. `all`: resources_find without options. */
void resources_why_no_ib(const struct resources *all, char why[RESOURCES_WHY]);

/* lanes.c: the transports and devices of an endpoint, as text: "rc_mlx5/mlx5_0:1, tcp/eth0". No
 * UCX, no thread. */

/* Reads what UCX prints about an endpoint, each transport once. `room`: of `ret`. */
void lanes_parse(const char *text, char *ret, size_t room);
/* Returns true if there are some, and all are TCP's. */
bool lanes_are_tcp(const char *lanes);
/* Returns true if "rc,tcp", as UCX_TLS has it, names tcp. */
bool lanes_list_names_tcp(const char *list);

#endif
