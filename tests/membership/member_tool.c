/* SPDX-License-Identifier: Apache-2.0 */
/* A member of a dynamic group in a store, which does what lines on stdin say, and answers
 * each by one line; the other side of torch_group_test.py. A failed call answers
 * "error CODE: text".
 *
 *   open URL LEASE_MS | reserve ID NAME MS | join ADDRESS | leave MS | serve */
#include "core/base/clock.h"
#include "group/membership/membership.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS 20000
#define MAX_WORDS 4

static struct tenrec_store *store;
static struct tenrec_store_server *server;
static struct membership_list list;
static tenrec_error err;

static void answer(tenrec_status st, const char *text)
{
    if (st == TENREC_OK)
        printf("ok %s\n", text);
    else
        printf("error %s: %s\n", tenrec_status_name(st), err.text);
    fflush(stdout);
}

static tenrec_status open_list(const char *url, const char *lease_ms)
{
    tenrec_status st = tenrec_store_open(url, MS, &store, &err);

    return st == TENREC_OK
               ? membership_list_open(store, "default", "", (uint64_t)atoi(lease_ms), &list, &err)
               : st;
}

static void run(char **w)
{
    const uint64_t soon = clock_deadline_ms(MS);
    struct membership_view v = { .version = 0 };
    uint16_t port = 0;
    char text[16];

    if (strcmp(w[0], "serve") == 0) {
        tenrec_status st = tenrec_store_server_new("127.0.0.1", 0, &server, &port, &err);
        snprintf(text, sizeof text, "%u", (unsigned)port);
        answer(st, text);
    } else if (strcmp(w[0], "open") == 0) {
        answer(open_list(w[1], w[2]), "");
    } else if (strcmp(w[0], "reserve") == 0) {
        answer(membership_list_reserve(&list, (tenrec_peer)atoi(w[1]), w[2],
                                       clock_deadline_ms((uint64_t)atoi(w[3])), &err),
               list.name);
    } else if (strcmp(w[0], "join") == 0) {
        answer(membership_list_join(&list, w[1], NULL, soon, &v, &err), list.name);
    } else if (strcmp(w[0], "leave") == 0) {
        answer(membership_list_leave(&list, clock_deadline_ms((uint64_t)atoi(w[1])), &v, &err),
               list.name);
    } else {
        snprintf(err.text, sizeof err.text, "no such word");
        answer(TENREC_EINVAL, "");
    }
    membership_view_finish(&v);
}

int main(void)
{
    char line[512];

    while (fgets(line, sizeof line, stdin)) {
        char *w[MAX_WORDS + 1] = { NULL }, *save = NULL;
        int n = 0;
        for (char *word = strtok_r(line, " \n", &save); word && n < MAX_WORDS;
             word = strtok_r(NULL, " \n", &save))
            w[n++] = word;
        while (n < MAX_WORDS)
            w[n++] = "";
        run(w);
    }
    membership_list_close(&list);
    tenrec_store_close(store);
    tenrec_store_server_drop(server);
    return 0;
}
