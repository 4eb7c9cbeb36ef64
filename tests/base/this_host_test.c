/* SPDX-License-Identifier: Apache-2.0 */
#include "core/base/resolve.h"

#include "../testing.h"

TEST(address_is_local_when_no_other_host_reaches_it)
{
    static const char *const local[] = { "",
                                         "uv://127.0.0.1:80",
                                         "tcp://[::1]:80",
                                         "tcp://localhost:80",
                                         "http://localhost/v1/traces",
                                         "http://127.0.0.1/v1/traces",
                                         "[::1]",
                                         "::1",
                                         "localhost",
                                         "unix:///run/it",
                                         "shm:///run/it",
                                         "127.1.2.3:5" };
    static const char *const remote[] = { "uv://10.0.0.1:80",
                                          "tcp://[fd00::1]:80",
                                          "0.0.0.0:80",
                                          "somewhere",
                                          "127.example.org:80",
                                          "tcp://localhost.example.org:80",
                                          "::10",
                                          "http://127.0.0.1.evil.invalid/" };

    for (size_t i = 0; i < sizeof local / sizeof local[0]; i++)
        if (!this_host_has(local[i]))
            fail_msg("'%s' is not of this host", local[i]);
    for (size_t i = 0; i < sizeof remote / sizeof remote[0]; i++)
        if (this_host_has(remote[i]))
            fail_msg("'%s' is of this host", remote[i]);
}
