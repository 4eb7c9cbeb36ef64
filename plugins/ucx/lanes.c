/* SPDX-License-Identifier: Apache-2.0 */
/* lanes.c - which transports and devices UCX chose for an endpoint. UCX tells it to people only,
 * so this reads its text: a line "lane[0]: 2:tcp/eth0.0 md[1] ..." for each of them. */
#include "ucx.h"

#include <stdlib.h>

/* Adds the transport at `at`, "tcp/eth0", unless it is there. */
static void lanes_add(char *lanes, size_t room, const char *at)
{
    const size_t len = strcspn(at, ". \t\n"), used = strlen(lanes);
    char one[64];

    if (len == 0 || len >= sizeof one)
        return;
    memcpy(one, at, len);
    one[len] = '\0';
    if (!strstr(lanes, one) && used + len + 3 < room)
        snprintf(lanes + used, room - used, "%s%s", used ? ", " : "", one);
}

void lanes_read(struct conn *c)
{
    struct ucx *u = c->u;
    char *text = NULL, lanes[UCX_TEXT] = "";
    size_t len;
    FILE *out = open_memstream(&text, &len);

    if (!out)
        return;
    ucp_ep_print_info(c->ep, out);
    if (fclose(out) == 0)
        for (const char *at = text; (at = strstr(at, "lane[")); at++) {
            const char *colon = strstr(at, "]:");

            colon = colon ? strchr(colon + 2, ':') : NULL;
            if (colon)
                lanes_add(lanes, sizeof lanes, colon + 1);
        }
    free(text);
    pthread_mutex_lock(&u->lock);
    memcpy(c->lanes, lanes, sizeof lanes);
    pthread_mutex_unlock(&u->lock);
    u->host->log(u->self, TENREC_LOG_INFO, "%s by %s", c->label,
                 *lanes ? lanes : "transports that UCX does not name");
}
