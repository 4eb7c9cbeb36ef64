/* SPDX-License-Identifier: Apache-2.0 */
/* table_test.c - layout, order and texts of `tenrec top`. */
#include "top/table.h"
#include "top/view.h"

#include "../../testing.h"

#include <locale.h>
#include <math.h>
#include <string.h>
#include <wchar.h>

static int columns_of(const char *line)
{
    wchar_t wide[TABLE_LINE_MAX];
    const size_t n = mbstowcs(wide, line, TABLE_LINE_MAX);

    assert_true(n != (size_t)-1);
    return wcswidth(wide, n);
}

static void a_text_has_exactly_the_columns_asked_for(void **state)
{
    static const char *const text[] = { "",
                                        "worker0",
                                        "a name that is too long for it",
                                        "\x1b[31mred\n",
                                        "\xff\xfe\x80",
                                        "gr\xc3\xbc\xc3\x9f",
                                        "\xe5\xb7\xa5\xe4\xbd\x9c\xe8\x80\x85\xe5\xb7\xa5",
                                        "\xe5\xb7" };
    char line[TABLE_LINE_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++)
        for (int width = 1; width < 14; width++) {
            table_fit(line, sizeof line, text[i], width, i % 2);
            assert_int_equal(columns_of(line), width);
            assert_null(strpbrk(line, "\x1b\n\r"));
        }
}

static void a_number_is_short_at_any_size(void **state)
{
    static const struct {
        enum table_kind kind;
        double number;
        const char *text;
    } row[] = {
        { TABLE_COUNT, 0, "0" },
        { TABLE_COUNT, 999, "999" },
        { TABLE_COUNT, 999.7, "1.00k" },
        { TABLE_RATE, 0.5, "0.50" },
        { TABLE_RATE, 123456, "123k" },
        { TABLE_RATE, 12.34, "12.3" },
        { TABLE_BYTES, 1024, "1.00K" },
        { TABLE_BYTES, 3.5e9, "3.26G" },
        { TABLE_SECONDS, 12e-6, "12us" },
        { TABLE_SECONDS, 3.4e-3, "3.40ms" },
        { TABLE_SECONDS, 0.99999, "1.00s" },
        { TABLE_SECONDS, 120, "120s" },
        { TABLE_SECONDS, NAN, "-" },
    };
    char text[16];

    (void)state;
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++) {
        table_number(text, row[i].kind, row[i].number);
        assert_string_equal(text, row[i].text);
        assert_true(strlen(text) <= 6);
    }
}

static void columns_with_the_lowest_priority_go_first(void **state)
{
    struct table_layout wide, middle, narrow;

    (void)state;
    table_lay_out(&view_workers_columns, 240, &wide);
    assert_int_equal(wide.n, view_workers_columns.n_columns);
    table_lay_out(&view_workers_columns, 80, &middle);
    table_lay_out(&view_workers_columns, 12, &narrow);
    assert_true(narrow.n < middle.n && middle.n < wide.n);
    assert_int_equal(narrow.n, 1);
    for (int width = 12; width < 240; width++) {
        struct table_layout l;
        int sum = -1;

        table_lay_out(&view_workers_columns, width, &l);
        for (int i = 0; i < l.n; i++)
            sum += l.width[i] + 1;
        assert_true(sum <= width);
    }
}

static const struct table_column two[] = { { "name", "NAME", 4, 9, TABLE_TEXT },
                                           { "load", "LOAD", 4, 9, TABLE_RATE } };

static void fill(struct table_row row[4])
{
    memset(row, 0, 4 * sizeof *row);
    row[0].cell[0].text = "b";
    row[0].cell[1].number = 1;
    row[1].cell[0].text = "a";
    row[1].cell[1].number = NAN;
    row[2].cell[0].text = "d";
    row[2].cell[1].number = 7;
    row[3].cell[0].text = "c";
    row[3].cell[1].number = 1;
}

static void assert_order(const struct table *t, const char *names)
{
    for (size_t i = 0; i < t->n; i++)
        assert_int_equal(t->row[i].cell[0].text[0], names[i]);
}

static void rows_are_sorted_with_unknown_numbers_last(void **state)
{
    struct table_row row[4];
    struct table t = { two, 2, row, 4 };

    (void)state;
    fill(row);
    table_sort(&t, 1);
    assert_order(&t, "dbca");
    table_sort(&t, 0);
    assert_order(&t, "abcd");
}

static const char *cell_text(const struct table *t, size_t row, enum view_column column)
{
    return t->row[row].cell[column].text;
}

static double cell_number(const struct table *t, size_t row, enum view_column column)
{
    return t->row[row].cell[column].number;
}

static void hosts_have_the_sums_of_their_workers_and_the_worst(void **state)
{
    struct sample_worker worker[] = {
        { .name = "w0", .host = "b", .reading = { .answered = true } },
        { .name = "w1", .host = "a", .reading = { .answered = true } },
        { .name = "w2", .host = "b", .reading = { .answered = true } },
        { .name = "w3", .host = "b", .state = SAMPLE_LOST },
        { .name = "w4", .state = SAMPLE_SILENT },
    };
    const struct sample now = { .worker = worker, .n = 5 };
    struct view v;

    (void)state;
    worker[0].reading.number[READING_QUEUED] = 2;
    worker[2].reading.number[READING_QUEUED] = 5;
    view_hosts(NULL, &now, table_column_find(&view_workers_columns, "queued"), &v);
    table_sort(&v.table, VIEW_NAME);
    assert_int_equal(v.table.n, 3);
    assert_string_equal(cell_text(&v.table, 0, VIEW_NAME), "?");
    assert_string_equal(cell_text(&v.table, 0, VIEW_STATE), "1 silent");
    assert_true(isnan(cell_number(&v.table, 0, VIEW_QUEUED)));
    assert_string_equal(cell_text(&v.table, 1, VIEW_NAME), "a");
    assert_true(cell_number(&v.table, 1, VIEW_QUEUED) == 0);
    assert_string_equal(cell_text(&v.table, 2, VIEW_NAME), "b");
    assert_string_equal(cell_text(&v.table, 2, VIEW_STATE), "2 up, 1 lost");
    assert_string_equal(cell_text(&v.table, 2, VIEW_WAYS), "w2");
    assert_true(cell_number(&v.table, 2, VIEW_ID) == 3);
    assert_true(cell_number(&v.table, 2, VIEW_QUEUED) == 7);
    view_finish(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_has_exactly_the_columns_asked_for),
        cmocka_unit_test(a_number_is_short_at_any_size),
        cmocka_unit_test(columns_with_the_lowest_priority_go_first),
        cmocka_unit_test(rows_are_sorted_with_unknown_numbers_last),
        cmocka_unit_test(hosts_have_the_sums_of_their_workers_and_the_worst),
    };

    setlocale(LC_CTYPE, "C.UTF-8");
    return cmocka_run_group_tests_name("top_table", tests, NULL, NULL);
}
