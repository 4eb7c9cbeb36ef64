/* SPDX-License-Identifier: Apache-2.0 */
#include "tensors.h"

#include "../support/message_hooks.h"
#include <stdlib.h>

void tensor_fill(unsigned char *data, size_t len, unsigned seed)
{
    for (size_t i = 0; i < len; i++)
        data[i] = (unsigned char)(i * 31 + (i >> 8) + seed);
}

void call_tensors(struct node *n, const size_t *sizes, uint32_t count)
{
    struct tenrec_msg *msg = message_of(TENREC_MSG_CALL, "t", 1, count, NULL, 0);
    unsigned char *data[TENSORS_MAX];
    struct call c = { .id = 0 };

    for (uint32_t i = 0; i < count; i++) {
        struct tenrec_tensor_desc *t = tenrec_msg_tensor(msg, i);

        data[i] = malloc(sizes[i] + 1);
        tensor_fill(data[i], sizes[i], i);
        t->data = data[i];
        t->bytes = sizes[i];
        t->shape[0] = (int64_t)sizes[i];
    }
    if (call_sync(n, 1, msg, &c))
        fail_msg("call: %s", c.err.text);
    assert_int_equal(c.answer->n_tensors, count);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(tenrec_msg_tensor(c.answer, i)->bytes, sizes[i]);
        assert_memory_equal(tenrec_msg_tensor(c.answer, i)->data, data[i], sizes[i]);
    }
    call_finish(&c);
    /* The request goes when the peer says that it has it. */
    assert_becomes(atomic_load(&n->told) == atomic_load(&n->next_id));
    for (uint32_t i = 0; i < count; i++)
        free(data[i]);
}
