/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_merge.c - the metrics of neighbours, joined into one text.
 *
 * Input: texts, each behind a byte of its length, so that a sanitizer sees a read beyond its end.
 * What was joined can be joined again, and nothing of it is lost. */
#include "fuzz.h"
#include "prometheus.h"

enum { TEXTS = 8 };

static size_t joined_len(const struct merge_text *text, size_t n, char **ret)
{
    size_t len = 0;
    FILE *to = open_memstream(ret, &len);

    fuzz_expect(to != NULL);
    fuzz_expect(merge_texts(text, n, to) >= 0);
    fclose(to);
    return len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct fuzz_input in = { data, len };
    struct merge_text text[TEXTS], again;
    size_t n = 0, whole = 0;
    char *out = NULL, *twice = NULL;

    for (; n < TEXTS && in.len > 0; n++) {
        const struct fuzz_input one = fuzz_take_bytes(&in);

        text[n] = (struct merge_text){ malloc(one.len ? one.len : 1), one.len };
        fuzz_expect(text[n].data != NULL);
        memcpy(text[n].data, one.at, one.len);
        whole += one.len;
    }
    again.len = joined_len(text, n, &out);
    fuzz_expect(again.len <= whole);
    again.data = out;
    if (again.len > 0)
        fuzz_expect(joined_len(&again, 1, &twice) == again.len ||
                    again.data[again.len - 1] != '\n');
    for (size_t i = 0; i < n; i++)
        free(text[i].data);
    free(out);
    free(twice);
    return 0;
}
