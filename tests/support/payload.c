/* SPDX-License-Identifier: Apache-2.0 */
#include "payload.h"

#include "core/tensor/tensor.h"

struct tenrec_msg *payload_message(const char *payload, size_t n, uint32_t n_tensors)
{
    struct tenrec_msg *msg = rpc_message_new(n, n_tensors);

    assert_non_null(msg);
    memcpy(msg->payload, payload, n);
    return msg;
}

struct tenrec_tensor *tensor_of(int64_t n, int32_t first)
{
    struct tenrec_tensor *t = NULL;
    int32_t *data;

    assert_int_equal(tenrec_tensor_new(TENREC_INT32, 1, &n, &t, NULL), TENREC_OK);
    data = tenrec_tensor_data(t);
    for (int64_t i = 0; i < n; i++)
        data[i] = first + (int32_t)i;
    return t;
}

struct tenrec_msg *written_call(const char *function, const struct tenrec_value *args, size_t n,
                                int64_t ms)
{
    struct tenrec_msg *msg = NULL;
    tenrec_error err;

    err.text[0] = '\0';
    if (codec_write_call(TENREC_MSG_CALL, function, args, n, ms, &(struct codec_extra){ 0 }, &msg,
                         &err))
        fail_msg("%s", err.text);
    return msg;
}
