/* SPDX-License-Identifier: Apache-2.0 */
#include "stranger.h"

#include "../testing.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <ucp/api/ucp.h>

struct note {
    unsigned char header[256];
    unsigned char data[];
};

static ucp_context_h context;
static ucp_worker_h worker;
static ucp_ep_h ep;
static bool cut;
static int under_way, answers;
static unsigned char last_header[256], last_data[2048];
static size_t last_header_len, last_len;

static void on_error(void *arg, ucp_ep_h of, ucs_status_t status)
{
    (void)arg, (void)of, (void)status;
    cut = true;
}

static void on_sent(void *request, ucs_status_t status, void *arg)
{
    (void)status;
    under_way--;
    free(arg);
    ucp_request_free(request);
}

static ucs_status_t on_answer(void *arg, const void *header, size_t header_len, void *data,
                              size_t len, const ucp_am_recv_param_t *param)
{
    (void)arg, (void)param;
    answers++;
    last_header_len = header_len < sizeof last_header ? header_len : sizeof last_header;
    memcpy(last_header, header, last_header_len);
    last_len = len < sizeof last_data ? len : sizeof last_data;
    if (last_len)
        memcpy(last_data, data, last_len);
    return UCS_OK;
}

void stranger_open(const char *address)
{
    const ucp_params_t params = { .field_mask = UCP_PARAM_FIELD_FEATURES,
                                  .features = UCP_FEATURE_AM };
    const ucp_worker_params_t worker_params = { .field_mask = 0 };
    struct sockaddr_in to = { .sin_family = AF_INET };
    ucp_ep_params_t ep_params = {
        .field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE,
        .flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER,
        .err_mode = UCP_ERR_HANDLING_MODE_PEER,
        .err_handler = { on_error, NULL },
        .sockaddr = { (const struct sockaddr *)&to, sizeof to },
    };
    const ucp_am_handler_param_t handler = { .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID |
                                                           UCP_AM_HANDLER_PARAM_FIELD_CB,
                                             .id = 1,
                                             .cb = on_answer };
    ucp_config_t *config;

    assert_int_equal(strncmp(address, "ucx://127.0.0.1:", 16), 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons((uint16_t)atoi(address + 16));
    assert_int_equal(ucp_config_read(NULL, NULL, &config), UCS_OK);
    assert_int_equal(ucp_config_modify(config, "NET_DEVICES", "lo"), UCS_OK);
    assert_int_equal(ucp_init(&params, config, &context), UCS_OK);
    ucp_config_release(config);
    assert_int_equal(ucp_worker_create(context, &worker_params, &worker), UCS_OK);
    assert_int_equal(ucp_worker_set_am_recv_handler(worker, &handler), UCS_OK);
    cut = false;
    under_way = answers = 0;
    assert_int_equal(ucp_ep_create(worker, &ep_params, &ep), UCS_OK);
}

void stranger_send(const void *header, size_t header_len, const void *data, size_t len)
{
    struct note *note = malloc(sizeof *note + len);
    const ucp_request_param_t param = { .op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                        UCP_OP_ATTR_FIELD_USER_DATA |
                                                        UCP_OP_ATTR_FIELD_FLAGS,
                                        .flags = UCP_AM_SEND_FLAG_REPLY,
                                        .cb.send = on_sent,
                                        .user_data = note };
    ucs_status_ptr_t st;

    if (cut) {
        free(note);
        return;
    }
    assert_true(header_len <= sizeof note->header);
    if (header_len)
        memcpy(note->header, header, header_len);
    if (len)
        memcpy(note->data, data, len);
    st = ucp_am_send_nbx(ep, 1, note->header, header_len, note->data, len, &param);
    if (UCS_PTR_IS_PTR(st))
        under_way++;
    else
        free(note);
}

void stranger_say(const struct head *h, const void *data, size_t len)
{
    unsigned char wire[HEAD_LEN];

    head_write(wire, h);
    stranger_send(wire, sizeof wire, data, len);
}

bool stranger_is_cut(void)
{
    for (int i = 0; i < 100 && ucp_worker_progress(worker); i++)
        ;
    return cut;
}

int stranger_answers(void)
{
    stranger_is_cut();
    return answers;
}

size_t stranger_answer(struct head *ret, void *data, size_t room)
{
    tenrec_error err;

    assert_status(head_read(last_header, last_header_len, ret, &err), &err);
    memcpy(data, last_data, last_len < room ? last_len : room);
    return last_len;
}

void stranger_flush(void)
{
    assert_becomes(stranger_is_cut() || under_way == 0);
}

void stranger_close(void)
{
    const ucp_request_param_t param = { .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                        .flags = UCP_EP_CLOSE_FLAG_FORCE };
    ucs_status_ptr_t st = ucp_ep_close_nbx(ep, &param);

    if (UCS_PTR_IS_PTR(st)) {
        assert_becomes(
            (ucp_worker_progress(worker), ucp_request_check_status(st) != UCS_INPROGRESS));
        ucp_request_free(st);
    }
    assert_becomes((ucp_worker_progress(worker), under_way == 0));
    ucp_worker_destroy(worker);
    ucp_cleanup(context);
}
