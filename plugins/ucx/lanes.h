/* SPDX-License-Identifier: Apache-2.0 */
/* lanes.h - the transports and devices of an endpoint, as text: "rc_mlx5/mlx5_0:1, tcp/eth0". No
 * UCX, no thread. */
#ifndef UCX_LANES_H
#define UCX_LANES_H

#include <stdbool.h>
#include <stddef.h>

/* Reads what UCX prints about an endpoint, each transport once. `room`: of `ret`. */
void lanes_parse(const char *text, char *ret, size_t room);
/* Returns true if there are some, and all are TCP's. */
bool lanes_are_tcp(const char *lanes);
/* Returns true if "rc,tcp", as UCX_TLS has it, names tcp. */
bool lanes_list_names_tcp(const char *list);

#endif
