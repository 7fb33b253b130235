/* SPDX-License-Identifier: Apache-2.0 */
/* The parameters of the simulated runtime: "create=5s,fail.container=2". They are one table;
 * crikeepd(8) says what they mean. */
#include <errno.h>
#include <stddef.h>

#include "src/base/limits.h"
#include "src/base/duration.h"
#include "src/sim/sim-int.h"

enum type { TEXT, SPAN, SPAN_OF_BOTH, COUNT, SIZE, CANCEL, ERROR_TEXT };

static const struct parameter {
	const char *name;
	enum type type;
	size_t at;
} parameters[] = {
#define AT(member) offsetof(struct ck_sim_conf, member)
	{ "listen", TEXT, AT(listen) },
	{ "create", SPAN_OF_BOTH, AT(create) },
	{ "create.sandbox", SPAN, AT(create[CK_SANDBOX]) },
	{ "create.container", SPAN, AT(create[CK_CONTAINER]) },
	{ "start", SPAN, AT(start) },
	{ "stop", SPAN, AT(stop) },
	{ "remove", SPAN, AT(remove) },
	{ "list", SPAN, AT(list) },
	{ "exit", SPAN, AT(exit) },
	{ "cancel", CANCEL, AT(finish) },
	{ "fail.sandbox", COUNT, AT(fail[CK_SANDBOX]) },
	{ "fail.container", COUNT, AT(fail[CK_CONTAINER]) },
	{ "fail.start", COUNT, AT(fail_start) },
	{ "fail.remove", COUNT, AT(fail_remove) },
	{ "fail.list", COUNT, AT(fail_list) },
	{ "error_text", ERROR_TEXT, AT(error_text) },
	{ "sandboxes", COUNT, AT(made[CK_SANDBOX]) },
	{ "containers", COUNT, AT(made[CK_CONTAINER]) },
	{ "padding", SIZE, AT(padding) },
	{ "images", TEXT, AT(images) },
	{ "goaway", COUNT, AT(goaway) },
	{ "max_message", SIZE, AT(max_message) },
	{ "log", TEXT, AT(log) },
	{ "state", TEXT, AT(state) },
#undef AT
};

static const char *const forms[] = {
	/* from CK_SIM_QUOTES_TEXT on */
	"quote", "quote-go", "quote-percent", "quote-hex", "quote-base64",
};

static void *place(struct ck_sim_conf *conf, const struct parameter *parameter)
{
	return (char *)conf + parameter->at;
}

static bool parse_count(const char *s, uint64_t *ret_count, const char **ret_end)
{
	char *end;
	if (*s < '0' || *s > '9')
		return false;
	errno = 0;
	unsigned long long count = strtoull(s, &end, 10);
	*ret_count = count;
	*ret_end = end;
	return errno == 0 && count <= CK_SIM_SIZE_MAX;
}

static bool parse_size(const char *s, uint64_t *ret_size)
{
	static const char *const units[] = { "", "KiB", "MiB", "GiB" };
	const char *end;
	uint64_t size;
	if (!parse_count(s, &size, &end))
		return false;
	for (size_t i = 0; i < CK_COUNT(units); i++) {
		if (strcmp(end, units[i]) != 0)
			continue;
		*ret_size = size << (10 * i);
		return size <= CK_SIM_SIZE_MAX >> (10 * i);
	}
	return false;
}

/* NULL, or a description of what was expected */
static const char *set(struct ck_sim_conf *conf, const struct parameter *parameter,
		       const char *value)
{
	void *at = place(conf, parameter);
	uint64_t *number = at;
	const char *end;
	switch (parameter->type) {
	case TEXT:
		free(*(char **)at);
		*(char **)at = ck_strdup(value);
		return *value ? NULL : "a text";
	case SPAN:
	case SPAN_OF_BOTH:
		if (!ck_duration_parse(value, number) || *number > CK_DURATION_MAX)
			return "a time such as 5s or 250ms, a year at most";
		if (parameter->type == SPAN_OF_BOTH)
			conf->create[CK_SANDBOX] = conf->create[CK_CONTAINER] = *number;
		return NULL;
	case COUNT:
		if (!parse_count(value, number, &end) || *end || *number > CK_SIM_COUNT_MAX)
			return "a number, a million at most";
		return NULL;
	case SIZE:
		return parse_size(value, number) ? NULL
						 : "a size such as 512 or 80MiB, 1GiB at most";
	case ERROR_TEXT:
		for (size_t i = 0; i < CK_COUNT(forms); i++)
			if (!strcmp(value, forms[i]))
				conf->quotes = (enum ck_sim_quotes)(CK_SIM_QUOTES_TEXT + i);
		return conf->quotes || parse_size(value, number)
			       ? NULL
			       : "quote, quote-go, quote-percent, quote-hex, quote-base64, or a "
				 "size such as 512 or 80MiB, 1GiB at most";
	case CANCEL:
		*(bool *)at = !strcmp(value, "finish");
		return *(bool *)at || !strcmp(value, "rollback") ? NULL : "finish or rollback";
	}
	return "nothing";
}

static int set_one(struct ck_sim_conf *conf, char *text, struct ck_error *err)
{
	char *value = strchr(text, '=');
	if (value)
		*value++ = '\0';
	for (size_t i = 0; i < CK_COUNT(parameters); i++) {
		if (strcmp(parameters[i].name, text) != 0)
			continue;
		const char *expected = set(conf, &parameters[i], value ? value : "");
		if (!expected && parameters[i].type == TEXT &&
		    !*(char **)place(conf, &parameters[i]))
			return ck_nomem(err);
		if (!expected)
			return 0;
		return ck_fail(err, CK_EINVAL, "simulator: %s=%s: expected %s", text,
			       value ? value : "", expected);
	}
	return ck_fail(err, CK_EINVAL, "simulator: there is no parameter '%s'", text);
}

int ck_sim_conf_parse(struct ck_sim_conf *conf, const char *text, struct ck_error *err)
{
	conf->max_message = CK_LIST_MAX;
	CK_AUTO_FREE char *copy = ck_strdup(text);
	if (!copy)
		return ck_nomem(err);
	char *rest = copy, *one;
	while ((one = strsep(&rest, ","))) {
		int r = *one ? set_one(conf, one, err) : 0;
		if (r < 0)
			return r;
	}
	if (conf->made[CK_CONTAINER] && !conf->made[CK_SANDBOX])
		return ck_fail(err, CK_EINVAL, "simulator: containers= needs sandboxes=");
	return 0;
}

void ck_sim_conf_fini(struct ck_sim_conf *conf)
{
	free(conf->listen);
	free(conf->log);
	free(conf->state);
	free(conf->images);
	*conf = (struct ck_sim_conf){ 0 };
}
