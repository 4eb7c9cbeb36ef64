/* SPDX-License-Identifier: Apache-2.0 */
#include "group/membership/requests.h"

#include "core/base/memory.h"
#include "group/membership/lease.h"

#include <stdlib.h>
#include <string.h>

void ticket_keys_finish(struct ticket_keys *k)
{
    if (k->value)
        store_values_free(k->value, k->n);
    free(k->text);
    free(k->key);
    free(k->value);
}

tenrec_status ticket_keys_init(struct ticket_keys *k, size_t most, tenrec_error *err)
{
    *k = (struct ticket_keys){ .text = memory_new(most + 1, sizeof *k->text),
                               .key = memory_new(most + 1, sizeof *k->key),
                               .value = memory_new(most + 1, sizeof *k->value) };
    if (k->text && k->key && k->value)
        return TENREC_OK;
    return tenrec_fail(err, TENREC_ENOMEM, "no memory for the requests of %zu workers", most);
}

void ticket_keys_add(struct ticket_keys *k, const struct lease *l, int64_t ticket,
                     enum lease_word word)
{
    lease_word_key(l, ticket, word, k->text[k->n]);
    k->key[k->n] = k->text[k->n];
    k->n++;
}

/* Out of memory the owner of the ticket polls. */
void ticket_keys_set(struct ticket_keys *k, const struct lease *l, int64_t ticket,
                     enum lease_word word, const char *text)
{
    struct store_value *v = &k->value[k->n];

    v->data = memory_text(text);
    v->len = v->data ? strlen(text) : 0;
    if (v->data)
        ticket_keys_add(k, l, ticket, word);
}
