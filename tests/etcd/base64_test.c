/* SPDX-License-Identifier: Apache-2.0 */
/* base64_test.c - bytes in JSON; what a server sends may be malformed. */
#include "store/base64.h"

#include "../testing.h"

#include <stdlib.h>

TEST(base64_of_known_bytes)
{
    static const char *const rows[][3] = {
        { "", "", "" },
        { "", "f", "Zg==" },
        { "f", "o", "Zm8=" },
        { "", "foo", "Zm9v" },
        { "fo", "ob", "Zm9vYg==" },
        { "fooba", "r", "Zm9vYmFy" },
        { "", "\xff\xef\xbe", "/+++" },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *text = base64_encode(rows[i][0], rows[i][1], strlen(rows[i][1])), *data;
        size_t len;
        assert_string_equal(text, rows[i][2]);
        data = base64_decode(text, &len);
        assert_int_equal(len, strlen(rows[i][0]) + strlen(rows[i][1]));
        assert_memory_equal(data, rows[i][0], strlen(rows[i][0]));
        assert_string_equal(data + strlen(rows[i][0]), rows[i][1]);
        free(data);
        free(text);
    }
}

TEST(base64_that_is_malformed_is_refused)
{
    static const char *const rows[] = { "Z",    "Zg",    "Zg=",  "Zg==Zg==", "Z===",
                                        "====", "Zm9\n", "Zm9-", "Zm=v",     "Zm9vZ\x80==" };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t len = 7;
        char *data = base64_decode(rows[i], &len);
        assert_null(data);
        assert_int_equal(len, 0);
    }
}
