/* SPDX-License-Identifier: Apache-2.0 */
/* What plugins were compiled against stays where it was: an addition stands at
 * the end of its struct, or takes what was reserved, and counts up the minor. */
#include <stddef.h>
#include <tenrec/observer_plugin.h>
#include <tenrec/plugin.h>
#include <tenrec/value.h>

#include "../testing.h"

#if defined(__LP64__)
#define AT(type, member, at)                                                                       \
    _Static_assert(offsetof(struct type, member) == (at), #type "." #member " has moved")
#define SIZE(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type " has another size")

/* Never changes, in any ABI. */
AT(tenrec_plugin, magic, 0);
AT(tenrec_plugin, abi_major, 4);
AT(tenrec_plugin, abi_minor, 6);
AT(tenrec_plugin, size, 8);
AT(tenrec_plugin, kind, 12);

/* 1.0 */
SIZE(tenrec_dtype, 4);
SIZE(tenrec_device, 8);
SIZE(tenrec_route, 16);
SIZE(tenrec_tensor_desc, 352);
AT(tenrec_tensor_desc, device, 32);
AT(tenrec_tensor_desc, target, 40);
AT(tenrec_tensor_desc, stream, 48);
AT(tenrec_tensor_desc, shape, 64);
SIZE(tenrec_msg, 120);
AT(tenrec_msg, tensors, 56);
AT(tenrec_msg, release, 80);
SIZE(tenrec_done, 16);
AT(tenrec_member, address, 24);
AT(tenrec_agent, log_part, 24);
AT(tenrec_agent_ops, extensions, 8);
AT(tenrec_agent_ops, send, 48);
AT(tenrec_agent_ops, debug_info, 112);
AT(tenrec_host, log, 16);
AT(tenrec_host, extensions, 24);
AT(tenrec_host, send_inner, 32);
SIZE(tenrec_extension, 16);
SIZE(tenrec_value, 32);
SIZE(tenrec_plugin, 112);
AT(tenrec_plugin, extensions, 80);
AT(tenrec_host, peer_lost, 80);
AT(tenrec_host, caller_lost, 88);
AT(tenrec_tensor_desc, mapping, 320);
AT(tenrec_host, sharing_open, 96);
AT(tenrec_host, shared, 128);
SIZE(tenrec_stream, 16);
AT(tenrec_tensor_desc, source, 328);
AT(tenrec_agent_ops, devices, 120);
AT(tenrec_agent_ops, use_devices, 128);
AT(tenrec_agent_ops, maps, 136);
AT(tenrec_device_ops, stream_get, 8);
AT(tenrec_device_ops, copy, 48);
AT(tenrec_agent_ops, lead, 144);
AT(tenrec_member, token, 32);
AT(tenrec_init, host_address, 48);
AT(tenrec_init, token, 56);

/* 1.1 */
SIZE(tenrec_member, 48);
AT(tenrec_member, linked, 40);
AT(tenrec_host, exception_new, 136);
AT(tenrec_host, hold, 144);
AT(tenrec_host, budget, 152);
AT(tenrec_host, needs, 160);
SIZE(tenrec_series, 256);
SIZE(tenrec_reading, 24);
AT(tenrec_span, trace_id, 56);
AT(tenrec_span, remote, 89);
AT(tenrec_snapshot, dropped, 32);
AT(tenrec_observer_ops, leave, 24);
AT(tenrec_observer_host, is_this_host, 64);
#endif

TEST(abi_version_belongs_to_these_sizes)
{
    assert_int_equal(TENREC_ABI_MAJOR, 1);
    assert_int_equal(TENREC_ABI_MINOR, 1);
}
