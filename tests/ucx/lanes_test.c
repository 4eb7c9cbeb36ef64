/* SPDX-License-Identifier: Apache-2.0 */
/* lanes_test.c - what the plugin reads in the texts that UCX prints for people. */
#include "resources.h"

#include "../testing.h"

static const char endpoint[] =
    "#\n# UCP endpoint worker1\n#\n"
    "#               peer: host1:4242\n"
    "#                 lane[0]: cm rdmacm\n"
    "#                 lane[1]:  3:rc_mlx5/mlx5_0:1.0 md[2]      -> md[2]/ib/sysdev[0] am\n"
    "#                 lane[2]:  3:rc_mlx5/mlx5_0:1.1 md[2]      -> md[2]/ib/sysdev[0] rma_bw#0\n"
    "#                 lane[3]:  7:tcp/eth0.100.0 md[1] -> md[1]/tcp/sysdev[255] rma_bw#1\n";

/* A machine that has all, as UCX prints it. */
static const char context[] = "#\n# UCP context\n#\n"
                              "#     component 0  :  self\n#     component 1  :  tcp\n"
                              "#     component 2  :  ib\n#\n"
                              "#            md 0  :  component 0  self \n#\n"
                              "#      resource 0  :  md 0  dev 0  flags -- self/memory0\n"
                              "#      resource 1  :  md 1  dev 1  flags -- tcp/eth0\n"
                              "#      resource 2  :  md 2  dev 2  flags -- rc_mlx5/mlx5_0:1\n"
                              "#      resource 3  :  md 2  dev 3  flags -- rc_mlx5/mlx5_1:1\n#\n";

static void assert_lanes(const char *text, const char *expected)
{
    char lanes[128];

    lanes_parse(text, lanes, sizeof lanes);
    assert_string_equal(lanes, expected);
}

TEST(lanes_are_read_once_each_and_without_their_path)
{
    assert_lanes(endpoint, "rc_mlx5/mlx5_0:1, tcp/eth0.100");
    assert_lanes(
        "# lane[0]: 2:tcp/eth1.0 md\n# lane[1]: 3:tcp/eth10.0 md\n# lane[2]: 2:tcp/eth1.1 md\n",
        "tcp/eth1, tcp/eth10");
    assert_lanes("# lane[0]: 2:tcp/eth10.0 md\n# lane[1]: 3:tcp/eth1.0 md\n",
                 "tcp/eth10, tcp/eth1");
}

TEST(lanes_of_a_text_of_another_form_are_none)
{
    static const char *const text[] = { "",
                                        "lane[",
                                        "lane[0]",
                                        "lane[0]:",
                                        "lane[0]: 1",
                                        "lane[0]: 1:",
                                        "lane[0]: cm tcp\nx]: 1:tcp/lo.0" };

    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++)
        assert_lanes(text[i], "");
}

TEST(lanes_beyond_the_room_are_left_out)
{
    char lanes[12];

    lanes_parse("lane[0]: 1:tcp/lo.0\nlane[1]: 2:tcp/eth0.0\n", lanes, sizeof lanes);
    assert_string_equal(lanes, "tcp/lo");
}

TEST(lanes_of_tcp_alone_are_a_fallback)
{
    assert_true(lanes_are_tcp("tcp/eth0"));
    assert_true(lanes_are_tcp("tcp/eth0, tcp/eth1"));
    assert_false(lanes_are_tcp(""));
    assert_false(lanes_are_tcp("rc_mlx5/mlx5_0:1, tcp/eth0"));
    assert_false(lanes_are_tcp("tcp/eth0, rc_mlx5/mlx5_0:1"));
}

TEST(lanes_of_tcp_are_meant_when_a_list_names_it)
{
    assert_true(lanes_list_names_tcp("tcp"));
    assert_true(lanes_list_names_tcp("rc,tcp"));
    assert_true(lanes_list_names_tcp("tcp,self"));
    assert_false(lanes_list_names_tcp(""));
    assert_false(lanes_list_names_tcp("all"));
    assert_false(lanes_list_names_tcp("^tcp"));
    assert_false(lanes_list_names_tcp("rc,tcpx"));
}

TEST(resources_name_the_devices_of_each_transport)
{
    char text[sizeof context], devices[64];
    const struct resources r = { strcpy(text, context) };

    assert_true(resources_has(&r, "rc_mlx5", devices, sizeof devices));
    assert_string_equal(devices, "mlx5_0:1, mlx5_1:1");
    assert_true(resources_has(&r, "tcp", devices, sizeof devices));
    assert_string_equal(devices, "eth0");
    assert_false(resources_has(&r, "rc", devices, sizeof devices));
    assert_true(resources_has_component(&r, "ib"));
    assert_false(resources_has_component(&r, "i"));
    assert_false(resources_has_component(&r, "memory0"));
}

TEST(resources_are_stepped_through_in_their_order)
{
    static const char *const expected[] = { "self/memory0", "tcp/eth0", "rc_mlx5/mlx5_0:1",
                                            "rc_mlx5/mlx5_1:1" };
    char text[sizeof context], transport[64], device[64], both[130];
    const struct resources r = { strcpy(text, context) };
    size_t at = 0, n = 0;

    for (; resources_next(&r, &at, transport, device); n++) {
        assert_true(n < 4);
        snprintf(both, sizeof both, "%s/%s", transport, device);
        assert_string_equal(both, expected[n]);
    }
    assert_int_equal(n, 4);
}

TEST(resources_tell_fast_transports_from_those_of_one_host_and_tcp)
{
    static const char *const fast[] = { "rc_mlx5", "rc_verbs", "dc_mlx5", "ud_verbs", "srd" };
    static const char *const other[] = { "tcp", "self", "posix", "cma", "rdmacm", "cuda_ipc", "" };

    for (size_t i = 0; i < sizeof fast / sizeof fast[0]; i++)
        assert_true(resources_is_fast(fast[i]));
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
        assert_false(resources_is_fast(other[i]));
}

TEST(resources_without_the_component_have_no_infiniband)
{
    char text[] = "#     component 0  :  tcp\n", why[RESOURCES_WHY];
    const struct resources r = { text };

    resources_why_no_ib(&r, why);
    assert_string_equal(why, "this UCX was built without InfiniBand");
}
