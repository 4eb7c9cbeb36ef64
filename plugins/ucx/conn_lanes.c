/* SPDX-License-Identifier: Apache-2.0 */
/* conn_lanes.c - which transports and devices UCX chose for a connection. */
#include "conn.h"
#include "resources.h"
#include "ucx.h"

#include <stdlib.h>

void conn_read_lanes(struct conn *c)
{
    struct ucx *u = c->u;
    char *text = NULL, lanes[UCX_TEXT] = "";
    size_t len;
    FILE *out = open_memstream(&text, &len);

    if (!out)
        return;
    ucp_ep_print_info(c->ep, out);
    if (fclose(out) == 0)
        lanes_parse(text, lanes, sizeof lanes);
    free(text);
    pthread_mutex_lock(&u->lock);
    memcpy(c->shared.lanes, lanes, sizeof lanes);
    pthread_mutex_unlock(&u->lock);
    u->host->log(u->self, TENREC_LOG_INFO, "%s by %s", c->label,
                 *lanes ? lanes : "transports that UCX does not name");
}
