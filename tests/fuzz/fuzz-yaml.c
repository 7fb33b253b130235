/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crikeep.yaml in any bytes. What is read is printed and read again, with the same result; what is
 * refused has an error that names the file and can be shown on a terminal.
 */
#include <stdlib.h>
#include <string.h>

#include "src/base/utf8.h"
#include "src/daemon/conf/conf.h"
#include "tests/fuzz/fuzz.h"

static void assert_shown(const char *text)
{
	if (strncmp(text, "F:", 2) != 0 && strcmp(text, "out of memory") != 0)
		abort();
	while (*text) {
		uint32_t c;
		size_t n = ck_utf8_next(text, &c);
		if (!n || ck_utf8_unsafe(c))
			abort();
		text += n;
	}
}

/* the lines without what is behind " # F:", which says where a value was */
static void drop_origins(char *text)
{
	char *to = text;
	for (char *from = text; *from;) {
		if (strncmp(from, " # F:", 5) == 0)
			from += strcspn(from, "\n");
		else
			*to++ = *from++;
	}
	*to = '\0';
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ck_conf conf = { 0 }, again = { 0 };
	struct ck_error err = { 0 };
	if (ck_conf_init(&conf, &err) < 0 || ck_conf_init(&again, &err) < 0)
		abort();
	again.confined = conf.confined = true; /* no group is looked up */
	int r = ck_conf_file(&conf, "F", (const char *)data, size, &err);
	if (r < 0) {
		assert_shown(err.text);
	} else {
		char *printed = ck_conf_print(&conf);
		if (!printed || ck_conf_file(&again, "F", printed, strlen(printed), &err) < 0)
			abort();
		char *second = ck_conf_print(&again);
		if (!second)
			abort();
		drop_origins(printed);
		drop_origins(second);
		if (strcmp(printed, second) != 0)
			abort();
		free(printed);
		free(second);
		if (ck_conf_check(&conf, NULL, NULL, &err) < 0 && !*err.text)
			abort();
	}
	ck_conf_fini(&conf);
	ck_conf_fini(&again);
	return 0;
}
