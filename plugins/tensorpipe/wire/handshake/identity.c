/* SPDX-License-Identifier: Apache-2.0 */
/* identity.c - text form of a Tenrec peer's identity. */
#include "wire/handshake/identity.h"
#include "wire/handshake/brochure.h"
#include <inttypes.h>

void identity_write(char buf[IDENTITY_MAX], const struct identity *identity)
{
    snprintf(buf, IDENTITY_MAX, "tenrec:%" PRIu32 ":%" PRId32 ":%" PRIx64 ":%" PRIx64,
             identity->version, identity->rank, identity->incarnation, identity->capabilities);
    if (identity->proof || identity->max_message)
        snprintf(buf + strlen(buf), IDENTITY_MAX - strlen(buf), ":%" PRIx64, identity->proof);
    if (identity->max_message)
        snprintf(buf + strlen(buf), IDENTITY_MAX - strlen(buf), ":%" PRIx64 ":%" PRIx64,
                 identity->max_message, identity->max_object);
}

/* Takes one field up to ':' or the end as a number of that base. */
static bool take_field(struct nop_bytes *rest, unsigned int base, uint64_t max, uint64_t *ret)
{
    uint64_t value = 0;
    size_t i;

    for (i = 0; i < rest->len && rest->data[i] != ':'; i++) {
        unsigned int c = rest->data[i], digit = base;
        if (c >= '0' && c <= '9')
            digit = c - '0';
        else if (c >= 'a' && c <= 'f')
            digit = c - 'a' + 10;
        if (digit >= base || value > (max - digit) / base)
            return false;
        value = value * base + digit;
    }
    if (i == 0)
        return false;
    *ret = value;
    if (i < rest->len)
        i++; /* the colon */
    rest->data += i;
    rest->len -= i;
    return true;
}

/* "-1" or a member's id. */
static bool take_rank(struct nop_bytes *rest, tenrec_peer *ret)
{
    uint64_t value;
    bool negative = rest->len > 0 && rest->data[0] == '-';

    if (negative) {
        rest->data++;
        rest->len--;
    }
    if (!take_field(rest, 10, INT16_MAX, &value) || (negative && value != 1))
        return false;
    *ret = negative ? TENREC_ANONYMOUS : (tenrec_peer)value;
    return true;
}

/* Fields that later versions have added; a peer that leaves them out ends before them. */
static bool take_later_fields(struct nop_bytes *rest, struct identity *ret)
{
    if (rest->len > 0 && !take_field(rest, 16, UINT64_MAX, &ret->proof))
        return false;
    return rest->len == 0 || (take_field(rest, 16, UINT64_MAX, &ret->max_message) &&
                              take_field(rest, 16, UINT64_MAX, &ret->max_object));
}

tenrec_status identity_read(struct nop_bytes text, struct identity *ret, tenrec_error *err)
{
    static const char head[] = "tenrec:";
    struct nop_bytes rest = text;
    struct identity identity = { .proof = 0 };
    uint64_t version = 0;

    if (text.len >= sizeof head && memcmp(text.data, head, sizeof head - 1) == 0) {
        rest.data += sizeof head - 1;
        rest.len -= sizeof head - 1;
        if (take_field(&rest, 10, UINT32_MAX, &version) && version > 0 &&
            take_rank(&rest, &identity.rank) &&
            take_field(&rest, 16, UINT64_MAX, &identity.incarnation) &&
            take_field(&rest, 16, UINT64_MAX, &identity.capabilities) &&
            take_later_fields(&rest, &identity)) {
            identity.version = (uint32_t)version;
            *ret = identity;
            return TENREC_OK;
        }
    }
    return tenrec_fail(err, TENREC_EPROTOCOL,
                       "identity \"%.*s\": expected tenrec:<version>:<rank>:<incarnation>:"
                       "<capabilities>[:<proof>[:<max_message>:<max_object>]]",
                       NOP_PRINT(text));
}

tenrec_status identity_of_client(const struct brochure *b, struct identity *ret, tenrec_error *err)
{
    struct nop_bytes text;

    *ret = (struct identity){ .rank = TENREC_ANONYMOUS };
    return brochure_find_transport(b, IDENTITY_ENTRY, &text) ? identity_read(text, ret, err)
                                                             : TENREC_OK;
}

tenrec_status identity_of_listener(const struct answer *a, struct identity *ret, tenrec_error *err)
{
    struct wire_device_map map;
    struct nop_device device;
    struct nop_bytes text;

    *ret = (struct identity){ .rank = TENREC_ANONYMOUS };
    if (!wire_channels_find(a->channels, a->n_channels, IDENTITY_ENTRY, &map) ||
        !wire_device_map_next(&map, &device, &text))
        return TENREC_OK;
    return identity_read(text, ret, err);
}
