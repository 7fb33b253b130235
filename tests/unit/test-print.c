/* SPDX-License-Identifier: Apache-2.0 */
/* What people and machines read: untrusted text made safe, spans, sizes, times, tables, JSON and
 * YAML. */
#include <locale.h>
#include <string.h>
#include <time.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/duration.h"
#include "src/cli/output/print.h"
#include "src/cli/output/text.h"
#include "tests/unit/harness.h"

static void assert_clean(const char *s, const char *want)
{
	CK_AUTO_FREE char *clean = ck_text_clean(s);
	assert_string_equal(clean, want);
}

static void assert_valid(const char *s, const char *want)
{
	CK_AUTO_FREE char *valid = ck_text_valid(s);
	assert_string_equal(valid, want);
}

static const char *in_utf8(void)
{
	return setlocale(LC_ALL, "C.UTF-8");
}

/* ---- text ------------------------------------------------------------------------------------ */

static void controls_are_escaped(void **state)
{
	(void)state;
	in_utf8();
	assert_clean("", "");
	assert_clean("plain, caf\xc3\xa9, \xf0\x9f\x90\xb3",
		     "plain, caf\xc3\xa9, \xf0\x9f\x90\xb3");
	assert_clean("a\nb\tc\x1b[31md\x7f", "a\\x0ab\\x09c\\x1b[31md\\x7f");
	/* CSI as one character */
	assert_clean("\xc2\x9b" "31m", "\\xc2\\x9b31m");
	/* right-to-left override */
	assert_clean("\xe2\x80\xae" "gpj.exe", "\\xe2\\x80\\xaegpj.exe");
	/* nothing to see */
	assert_clean("a\xe2\x80\x8b" "b\xef\xbb\xbf", "a\\xe2\\x80\\x8bb\\xef\\xbb\\xbf");
	assert_clean("\xf3\xa0\x81\x81", "\\xf3\\xa0\\x81\\x81");               /* a tag */
}

static void bytes_that_are_no_text_are_escaped(void **state)
{
	(void)state;
	in_utf8();
	assert_clean("\xff", "\\xff");
	assert_clean("\x80", "\\x80");
	assert_clean("\xc3", "\\xc3");                         /* cut off */
	assert_clean("\xe2\x82", "\\xe2\\x82");
	assert_clean("\xe2\x82z", "\\xe2\\x82z");
	assert_clean("\xc0\xaf", "\\xc0\\xaf");                /* '/' in two bytes */
	assert_clean("\xe0\x80\xaf", "\\xe0\\x80\\xaf");
	assert_clean("\xed\xa0\x80", "\\xed\\xa0\\x80");       /* half of a UTF-16 pair */
	assert_clean("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"); /* above U+10FFFF */
	assert_clean("\xf8\x88\x80\x80\x80", "\\xf8\\x88\\x80\\x80\\x80");
	assert_valid("ok\xff" "ok\xe2\x82", "ok\xef\xbf\xbdok\xef\xbf\xbd\xef\xbf\xbd");
	/* what JSON can escape stays what it was */
	assert_valid("\x1b\xe2\x80\xae", "\x1b\xe2\x80\xae");
}

static void without_utf8_all_but_ascii_is_escaped(void **state)
{
	(void)state;
	setlocale(LC_ALL, "C");
	assert_clean("caf\xc3\xa9", "caf\\xc3\\xa9");
	assert_int_equal(ck_text_width("caf"), 3);
	in_utf8();
}

static void width_counts_columns(void **state)
{
	(void)state;
	in_utf8();
	assert_int_equal(ck_text_width(""), 0);
	assert_int_equal(ck_text_width("caf\xc3\xa9"), 4);
	/* two characters of two columns */
	assert_int_equal(ck_text_width("\xe6\xbc\xa2\xe5\xad\x97"), 4);
	assert_int_equal(ck_text_width("e\xcc\x81"), 1);                /* an accent of its own */
}

/* ---- numbers --------------------------------------------------------------------------------- */

static void spans_have_two_units(void **state)
{
	static const struct { uint64_t ns; const char *want;
	} cases[] = {
		{ 0, "<1s" },
		{ 999999999, "<1s" },
		{ CK_NS_PER_S, "1s" },
		{ 59 * CK_NS_PER_S, "59s" },
		{ 60 * CK_NS_PER_S, "1m" },
		{ 372 * CK_NS_PER_S, "6m12s" },
		{ 3600 * CK_NS_PER_S, "1h" },
		{ 3659 * CK_NS_PER_S, "1h" },
		{ 11059 * CK_NS_PER_S, "3h4m" },
		{ 86400 * CK_NS_PER_S, "1d" },
		{ 183600 * CK_NS_PER_S, "2d3h" },
		{ UINT64_MAX, "213503d23h" },
	};
	char buf[CK_TEXT_SPAN];
	(void)state;
	for (size_t i = 0; i < CK_COUNT(cases); i++)
		assert_string_equal(ck_text_span(cases[i].ns, buf), cases[i].want);
}

static void spans_are_read(void **state)
{
	static const struct { const char *s; uint64_t ns;
	} cases[] = {
		{ "30s", 30 * CK_NS_PER_S },
		{ "10m", 600 * CK_NS_PER_S },
		{ "1h30m", 5400 * CK_NS_PER_S },
		{ "2d", 172800 * CK_NS_PER_S },
		{ "250ms", 250 * CK_NS_PER_MS },
		{ "2.5s", 2500 * CK_NS_PER_MS },
		{ "0.001s", CK_NS_PER_MS },
		{ "1m1ms", 60001 * CK_NS_PER_MS },
		{ "0s", 0 },
		{ "1.5h", 5400 * CK_NS_PER_S },
		{ "0.0000000004s", 0 },
		{ "1d2h3m4s5ms", 93784005 * CK_NS_PER_MS },
	};
	static const char *const bad[] = {
		"",        "s",    "10",    "-1s",   "1s ",           " 1s",
		"10min",   "1.s",  ".5s",   "1 s",   "5s1m",          "1s1s",
		"1ss",     "1e3s", "0x10s", "1h-5m", "300000000000d", "99999999999999999999s",
		"106752d", "1s\n",
	};
	uint64_t ns;
	(void)state;
	for (size_t i = 0; i < CK_COUNT(cases); i++) {
		assert_true(ck_duration_parse(cases[i].s, &ns));
		assert_true(ns == cases[i].ns);
	}
	ns = 42;
	for (size_t i = 0; i < CK_COUNT(bad); i++) {
		if (ck_duration_parse(bad[i], &ns))
			fail_msg("'%s' was read as %llu", bad[i], (unsigned long long)ns);
		assert_true(ns == 42);
	}
}

static void sizes_have_units(void **state)
{
	char buf[CK_TEXT_SPAN];
	(void)state;
	assert_string_equal(ck_text_size(0, buf), "0 B");
	assert_string_equal(ck_text_size(1023, buf), "1023 B");
	assert_string_equal(ck_text_size(4096, buf), "4.0 KiB");
	assert_string_equal(ck_text_size(157u << 20, buf), "157 MiB");
	assert_string_equal(ck_text_size(UINT64_MAX, buf), "16 EiB");
}

static void times_are_rfc3339(void **state)
{
	char buf[CK_TEXT_SPAN];
	(void)state;
	assert_string_equal(ck_text_time(0, buf), "1970-01-01T00:00:00Z");
	assert_string_equal(ck_text_time(1714572430, buf), "2024-05-01T14:07:10Z");
	assert_string_equal(ck_text_time(INT64_MAX, buf), "");
	assert_string_equal(ck_text_time(INT64_MIN, buf), "");
	assert_string_equal(ck_text_time(253402300800, buf), ""); /* the year 10000 */
	setenv("TZ", "UTC", 1);
	tzset();
	assert_string_equal(ck_text_clock(1714572430, 1714572499, buf), "14:07:10");
	assert_string_equal(ck_text_clock(1714572430, 1714672499, buf), "May 01 14:07");
	assert_string_equal(ck_text_clock(INT64_MAX, 0, buf), "?");
}

static void assert_time(const char *text, int64_t want)
{
	int64_t got = -1, now = 1714672499; /* 2024-05-02T17:54:59Z */
	assert_int_equal(ck_text_parse_time(text, now, &got), want >= 0);
	assert_int_equal(got, want);
}

static void what_is_printed_as_a_time_is_read_as_one(void **state)
{
	(void)state;
	setenv("TZ", "XYZ-2", 1); /* two hours ahead of UTC */
	tzset();
	assert_time("2024-05-01T14:07:10Z", 1714572430);
	assert_time("2024-05-01T16:07:10", 1714572430);
	assert_time("2024-05-01 16:07:10", 1714572430);
	assert_time("2024-05-01 16:07", 1714572420);
	assert_time("2024-05-02", 1714600800);
	assert_time("16:07:10", 1714658830);
	assert_time("16:07", 1714658820);
	assert_time("May 01 16:07", 1714572420);
	assert_time("May 03 16:07", 1683122820); /* of the last year */
	static const char *const none[] = { "", "yesterday", "16", "16:07:10Z", "16:07 ", "2024",
					    "2024-13-01", "25:00", "2024-05-01T14:07:10+02:00" };
	for (size_t i = 0; i < CK_COUNT(none); i++)
		assert_time(none[i], -1);
	setenv("TZ", "UTC", 1);
	tzset();
}

/* ---- trees ----------------------------------------------------------------------------------- */

static struct json_object *sample(void)
{
	struct json_object *tree = ck_tree_object(), *array = ck_tree_array();
	ck_tree_put_text(tree, "name",
			 "a\"b\\c\n\x1b\x7f\xc2\x9b\xe2\x80\xae\xf3\xa0\x81\x81\xff/\xc3\xa9");
	ck_tree_put_text(tree, "nothing", NULL);
	ck_tree_put_text(tree, "bool_like", "no");
	ck_tree_put_int(tree, "number", -5);
	ck_tree_put_count(tree, "large", UINT64_MAX);
	ck_tree_put_bool(tree, "yes", true);
	ck_tree_put_seconds(tree, "seconds", INT64_C(372123456789));
	ck_tree_put_seconds(tree, "before", INT64_C(-1500000000));
	ck_tree_put_time(tree, "at", 1714572430);
	ck_tree_put_time(tree, "never", INT64_MAX);
	ck_tree_put_hex(tree, "hex", "\x00\xff\x10", 3);
	ck_tree_put(tree, "empty", ck_tree_array());
	ck_tree_add(array, ck_tree_text("1e3"));
	ck_tree_put(tree, "list", array);
	return tree;
}

static void assert_printed(enum ck_output how, const char *want)
{
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	ck_tree_print(out, how, sample());
	fclose(out);
	assert_string_equal(text, want);
	free(text);
}

static void json_is_escaped(void **state)
{
	(void)state;
	assert_printed(CK_OUTPUT_JSON, "{\n"
				       "  \"name\": "
				       "\"a\\\"b\\\\c\\n\\u001b\\u007f\\u009b\\u202e\\udb40\\udc41"
				       "\xef\xbf\xbd/\xc3\xa9\",\n"
				       "  \"nothing\": null,\n"
				       "  \"bool_like\": \"no\",\n"
				       "  \"number\": -5,\n"
				       "  \"large\": 9223372036854775807,\n"
				       "  \"yes\": true,\n"
				       "  \"seconds\": 372.123,\n"
				       "  \"before\": -1.500,\n"
				       "  \"at\": \"2024-05-01T14:07:10Z\",\n"
				       "  \"never\": null,\n"
				       "  \"hex\": \"00ff10\",\n"
				       "  \"empty\": [],\n"
				       "  \"list\": [\n"
				       "    \"1e3\"\n"
				       "  ]\n"
				       "}\n");
}

static void yaml_keeps_strings_strings(void **state)
{
	(void)state;
	assert_printed(CK_OUTPUT_YAML,
		       "name: \"a\\\"b\\\\c\\n\\e\\x7F\\x9B\\u202E\\U000E0041\\uFFFD/\\xE9\"\n"
		       "nothing: null\n"
		       "bool_like: \"no\"\n"
		       "number: -5\n"
		       "large: 9223372036854775807\n"
		       "yes: true\n"
		       "seconds: 372.123\n"
		       "before: -1.500\n"
		       "at: \"2024-05-01T14:07:10Z\"\n"
		       "never: null\n"
		       "hex: \"00ff10\"\n"
		       "empty: []\n"
		       "list:\n"
		       "- \"1e3\"\n");
}

static void a_full_stream_is_left_to_its_owner(void **state)
{
	(void)state;
	for (int how = CK_OUTPUT_JSON; how <= CK_OUTPUT_YAML; how++) {
		FILE *out = fopen("/dev/full", "w");
		assert_non_null(out);
		setvbuf(out, NULL, _IONBF, 0);
		ck_tree_print(out, (enum ck_output)how, sample());
		assert_true(ferror(out));
		fclose(out);
	}
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void assert_table(size_t width, const char *want)
{
	static const struct ck_column columns[] = {
		{ "N", CK_COLUMN_RIGHT, 0 },
		{ "NAME", CK_COLUMN_CUT, 0 },
		{ "KIND", 0, 1 },
		{ "ID", 0, 2 },
	};
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	struct ck_table *table = ck_table_new(columns, CK_COUNT(columns));
	for (int i = 9; i < 11; i++) {
		ck_table_cellf(table, "%d", i);
		ck_table_cell(table, i == 9 ? "caf\xc3\xa9 de la\ngare" : "");
		ck_table_cell(table, "sandbox");
		ck_table_cell(table, i == 9 ? NULL : "9f3a4b21c0de9");
	}
	ck_table_print(out, table, width);
	fclose(out);
	assert_string_equal(text, want);
	free(text);
}

static void tables_are_aligned(void **state)
{
	(void)state;
	in_utf8();
	assert_table(0, " N NAME               KIND    ID\n"
			" 9 caf\xc3\xa9 de la\\x0agare sandbox -\n"
			"10 -                  sandbox 9f3a4b21c0de9\n");
}

static void narrow_tables_lose_columns_then_letters(void **state)
{
	(void)state;
	in_utf8();
	assert_table(43, " N NAME               KIND    ID\n"
			 " 9 caf\xc3\xa9 de la\\x0agare sandbox -\n"
			 "10 -                  sandbox 9f3a4b21c0de9\n");
	assert_table(42, " N NAME               KIND\n"
			 " 9 caf\xc3\xa9 de la\\x0agare sandbox\n"
			 "10 -                  sandbox\n");
	assert_table(25, " N NAME\n"
			 " 9 caf\xc3\xa9 de la\\x0agare\n"
			 "10 -\n");
	assert_table(10, " N NAME\n"
			 " 9 caf\xc3\xa9 de\n"
			 "10 -\n");
}

static void assert_cut(size_t width, const char *want)
{
	static const struct ck_column columns[] = {
		{ "A", CK_COLUMN_CUT, 0 },
		{ "B", CK_COLUMN_CUT | CK_COLUMN_RIGHT, 0 },
	};
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	struct ck_table *table = ck_table_new(columns, CK_COUNT(columns));
	ck_table_cell(table, "\xe6\x97\xa5\xe6\x9c\xac"); /* two characters of two columns */
	ck_table_cell(table, "12345");
	ck_table_cell(table, "e\xcc\x81x"); /* an accent of no column on the e */
	ck_table_cell(table, "12");
	ck_table_print(out, table, width);
	fclose(out);
	assert_string_equal(text, want);
	free(text);
}

static void the_widest_column_is_cut_between_characters(void **state)
{
	(void)state;
	in_utf8();
	assert_cut(10, "A        B\n\xe6\x97\xa5\xe6\x9c\xac 12345\ne\xcc\x81x      12\n");
	assert_cut(9, "A       B\n\xe6\x97\xa5\xe6\x9c\xac 1234\ne\xcc\x81x     12\n");
	assert_cut(8, "A      B\n\xe6\x97\xa5  1234\ne\xcc\x81x    12\n");
	assert_cut(3, "A B\n  1\ne\xcc\x81 1\n"); /* no room for half a character */
	assert_cut(1, "A B\n  1\ne\xcc\x81 1\n"); /* the names of the columns stay */
}

static void assert_continued(size_t width, const char *cell, const char *want)
{
	static const struct ck_column columns[] = {
		{ "N", CK_COLUMN_RIGHT, 0 },
		{ "EVENT", CK_COLUMN_FOLD, 0 },
	};
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	struct ck_table *table = ck_table_new(columns, CK_COUNT(columns));
	ck_table_cell(table, "12");
	ck_table_cell(table, cell);
	ck_table_print(out, table, width);
	fclose(out);
	assert_string_equal(text, want);
	free(text);
}

static void a_long_cell_is_continued_below_itself(void **state)
{
	(void)state;
	in_utf8();
	assert_continued(0, "the request changed: a.b", " N EVENT\n12 the request changed: a.b\n");
	assert_continued(16, "the request changed: a.b",
			 " N EVENT\n12 the request\n   changed: a.b\n");
	assert_continued(14, "changed: config.image", /* no blank to break at */
			 " N EVENT\n12 changed:\n   config.imag\n   e\n");
	assert_continued(1, "\xe6\x97\xa5\xe6\x9c\xac\xe6\x97\xa5", /* columns keep their names */
			 " N EVENT\n12 \xe6\x97\xa5\xe6\x9c\xac\n   \xe6\x97\xa5\n");
	assert_continued(16, "", " N EVENT\n12 -\n");
}

static void an_empty_table_is_nothing(void **state)
{
	static const struct ck_column columns[] = { { "A", 0, 0 } };
	char *text = NULL;
	size_t len;
	(void)state;
	FILE *out = open_memstream(&text, &len);
	ck_table_print(out, ck_table_new(columns, CK_COUNT(columns)), 80);
	fclose(out);
	assert_string_equal(text, "");
	free(text);
}

static void paragraphs_are_folded(void **state)
{
	char *text = NULL;
	size_t len;
	(void)state;
	FILE *out = open_memstream(&text, &len);
	ck_print_folded(out, "one two  three\x1b averyveryverylongword end", 2, 12);
	ck_print_folded(out, "", 2, 12);
	ck_print_line(out, "%s and %d", "\x1b[0m", 5);
	fclose(out);
	assert_string_equal(text, "  one two\n"
				  "  three\\x1b\n"
				  "  averyveryverylongword\n"
				  "  end\n"
				  "\n"
				  "\\x1b[0m and 5\n");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(controls_are_escaped),
		cmocka_unit_test(bytes_that_are_no_text_are_escaped),
		cmocka_unit_test(without_utf8_all_but_ascii_is_escaped),
		cmocka_unit_test(width_counts_columns),
		cmocka_unit_test(spans_have_two_units),
		cmocka_unit_test(spans_are_read),
		cmocka_unit_test(sizes_have_units),
		cmocka_unit_test(times_are_rfc3339),
		cmocka_unit_test(what_is_printed_as_a_time_is_read_as_one),
		cmocka_unit_test(json_is_escaped),
		cmocka_unit_test(yaml_keeps_strings_strings),
		cmocka_unit_test(a_full_stream_is_left_to_its_owner),
		cmocka_unit_test(tables_are_aligned),
		cmocka_unit_test(narrow_tables_lose_columns_then_letters),
		cmocka_unit_test(the_widest_column_is_cut_between_characters),
		cmocka_unit_test(a_long_cell_is_continued_below_itself),
		cmocka_unit_test(an_empty_table_is_nothing),
		cmocka_unit_test(paragraphs_are_folded),
	};
	return CK_TEST_MAIN(tests);
}
