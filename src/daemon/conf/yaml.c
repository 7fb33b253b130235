/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crikeep.yaml: keys, and keys in sections, whose values are scalars or lists of scalars. The rest
 * of YAML is not needed and refused: anchors, aliases, tags, a second document. Each error names
 * file, line and key.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/daemon/conf/conf-int.h"

#define NAME_MAX_LEN 64u /* of a key with its section */

struct file {
	struct ck_conf *conf;
	const char *path, *text;
	size_t len;
	yaml_parser_t parser;
	yaml_event_t event;            /* the current one */
	size_t keys[CK_CONF_KEYS];     /* lines on which they were set */
	size_t sections[CK_CONF_KEYS]; /* the same for sections, at the index of their first key */
	struct ck_error *err;
};

/* ---- errors ---------------------------------------------------------------------------------- */

static size_t line_of(const struct file *file)
{
	return file->event.start_mark.line + 1;
}

/* @name: "" for an error of the whole file */
__attribute__((format(printf, 4, 5))) static int wrong(struct file *file, size_t line,
						       const char *name, const char *fmt, ...)
{
	char what[CK_ERROR_TEXT], shown[CK_CONF_SHOWN];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	ck_conf_shown(name, shown);
	return ck_fail(file->err, CK_EINVAL, "%s:%zu: %s%s%s", file->path, line, shown,
		       *name ? ": " : "", what);
}

/* libyaml's text; it never contains a part of the file */
static int syntax_error(struct file *file)
{
	const yaml_parser_t *parser = &file->parser;
	size_t line = parser->problem_mark.line + 1, at = parser->problem_mark.index;
	if (parser->error == YAML_MEMORY_ERROR)
		return ck_nomem(file->err);
	if (parser->error == YAML_READER_ERROR) { /* libyaml only knows the byte here */
		line = 1;
		for (size_t i = 0; i < file->len && i < parser->problem_offset; i++)
			line += file->text[i] == '\n';
		return wrong(file, line, "", "%s; the file must be UTF-8", parser->problem);
	}
	/* characters before it may have several bytes: the mark's index counts characters, so this
	 * is only a hint */
	bool tab = at < file->len && file->text[at] == '\t';
	return wrong(file, line, "", "%s%s%s%s", parser->problem ? parser->problem : "not YAML",
		     parser->context ? " " : "", parser->context ? parser->context : "",
		     tab ? " (indent with blanks, not with tabs)" : "");
}

/* ---- events ---------------------------------------------------------------------------------- */

static int check_plain(struct file *file, const char *name, const void *anchor, const void *tag)
{
	if (anchor)
		return wrong(file, line_of(file), name, "anchors (&) are not allowed here");
	if (tag)
		return wrong(file, line_of(file), name, "tags (!) are not allowed here");
	return 0;
}

/* @name: what it belongs to, for errors */
static int next(struct file *file, const char *name)
{
	yaml_event_delete(&file->event);
	memset(&file->event, 0, sizeof(file->event));
	if (!yaml_parser_parse(&file->parser, &file->event))
		return syntax_error(file);
	const yaml_event_t *event = &file->event;
	switch (event->type) {
	case YAML_ALIAS_EVENT:
		return wrong(file, line_of(file), name, "aliases (*) are not allowed here");
	case YAML_SCALAR_EVENT:
		return check_plain(file, name, event->data.scalar.anchor, event->data.scalar.tag);
	case YAML_SEQUENCE_START_EVENT:
		return check_plain(file, name, event->data.sequence_start.anchor,
				   event->data.sequence_start.tag);
	case YAML_MAPPING_START_EVENT:
		return check_plain(file, name, event->data.mapping_start.anchor,
				   event->data.mapping_start.tag);
	default:
		return 0;
	}
}

/* empty, ~ or null, without quotes */
static bool is_null(const yaml_event_t *event)
{
	const char *value = (const char *)event->data.scalar.value;
	return event->type == YAML_SCALAR_EVENT &&
	       event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (!*value || strcmp(value, "~") == 0 || strcmp(value, "null") == 0);
}

/* the text of a scalar; borrowed until the next event */
static int scalar(struct file *file, const char *name, const char **ret_text)
{
	const yaml_event_t *event = &file->event;
	const char *text = (const char *)event->data.scalar.value;
	if (event->type != YAML_SCALAR_EVENT)
		return wrong(file, line_of(file), name, "expected one value");
	if (strlen(text) != event->data.scalar.length)
		return wrong(file, line_of(file), name, "the value contains a NUL");
	*ret_text = text;
	return 0;
}

/* ---- values ---------------------------------------------------------------------------------- */

static int store(struct file *file, const struct ck_conf_key *key, size_t line,
		 const char *const *items, size_t n)
{
	char *origin = NULL;
	if (asprintf(&origin, "%s:%zu", file->path, line) < 0)
		return ck_nomem(file->err);
	int r = ck_conf_key_set(file->conf, key, items, n, origin, file->err);
	free(origin);
	return r;
}

static int read_list(struct file *file, const struct ck_conf_key *key, size_t line)
{
	/* ck_conf_key_set() refuses one item too many */
	char **items = ck_alloc((CK_CONF_ITEMS_MAX + 1) * sizeof(*items));
	size_t n = 0;
	int r = items ? next(file, key->name) : ck_nomem(file->err);
	while (r == 0 && file->event.type != YAML_SEQUENCE_END_EVENT) {
		const char *text = "";
		r = scalar(file, key->name, &text);
		if (r == 0 && is_null(&file->event))
			r = wrong(file, line_of(file), key->name,
				  "an item of the list has no value");
		if (r == 0 && n <= CK_CONF_ITEMS_MAX && !(items[n++] = ck_strdup(text)))
			r = ck_nomem(file->err);
		r = r ? r : next(file, key->name);
	}
	r = r ? r : store(file, key, line, (const char *const *)items, n);
	for (size_t i = 0; i < n; i++)
		free(items[i]);
	free(items);
	return r;
}

static int read_value(struct file *file, const struct ck_conf_key *key, size_t line)
{
	const yaml_event_t *event = &file->event;
	const char *text;
	if (is_null(event))
		return wrong(file, line, key->name,
			     "it has no value; remove the line to use the default");
	if (event->type == YAML_MAPPING_START_EVENT)
		return wrong(file, line, key->name, "it takes a value, not keys below it");
	if (ck_conf_key_is_list(key)) {
		if (event->type != YAML_SEQUENCE_START_EVENT)
			return wrong(file, line, key->name, "expected a list: [ONE, OTHER]");
		return read_list(file, key, line);
	}
	if (event->type == YAML_SEQUENCE_START_EVENT)
		return wrong(file, line, key->name, "it takes one value, not a list");
	int r = scalar(file, key->name, &text);
	return r ? r : store(file, key, line, &text, 1);
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* the first key of section @name, or NULL */
static const struct ck_conf_key *find_section(const char *name)
{
	size_t len = strlen(name);
	for (size_t i = 0; i < CK_CONF_KEYS; i++) {
		if (strncmp(ck_conf_keys[i].name, name, len) == 0 &&
		    ck_conf_keys[i].name[len] == '.')
			return &ck_conf_keys[i];
	}
	return NULL;
}

static int seen(struct file *file, size_t *line, const char *name)
{
	if (*line)
		return wrong(file, line_of(file), name, "it is already on line %zu", *line);
	*line = line_of(file);
	return 0;
}

static int read_keys(struct file *file, const char *section);

static int read_section(struct file *file, const char *name)
{
	int r = next(file, name);
	if (r < 0 || is_null(&file->event)) /* all its keys are commented out */
		return r;
	if (file->event.type != YAML_MAPPING_START_EVENT)
		return wrong(file, line_of(file), name, "it takes keys below it, not a value");
	return read_keys(file, name);
}

/* the event is a key */
static int read_key(struct file *file, const char *section)
{
	char name[NAME_MAX_LEN];
	char *whole = NULL;
	const char *text = "";
	size_t line = line_of(file);
	int r = file->event.type == YAML_SCALAR_EVENT
			? scalar(file, section, &text)
			: wrong(file, line, section, "expected a key: NAME: VALUE");
	if (r < 0)
		return r;
	if (strchr(text, '.'))
		return wrong(
			file, line, text,
			"key names have no dots here: write the rest as a key below the section");
	const struct ck_conf_key *first = *section ? NULL : find_section(text);
	if (first) {
		snprintf(name, sizeof(name), "%s", text);
		r = seen(file, &file->sections[first - ck_conf_keys], name);
		return r ? r : read_section(file, name);
	}
	if (asprintf(&whole, "%s%s%s", section, *section ? "." : "", text) < 0)
		return ck_nomem(file->err);
	const struct ck_conf_key *key = ck_conf_key_find(whole);
	if (!key) {
		char *origin = NULL;
		r = asprintf(&origin, "%s:%zu", file->path, line) < 0
			    ? ck_nomem(file->err)
			    : ck_conf_key_unknown(whole, origin, file->err);
		free(origin);
	}
	free(whole);
	if (!key)
		return r;
	r = seen(file, &file->keys[key - ck_conf_keys], key->name);
	r = r ? r : next(file, key->name);
	return r ? r : read_value(file, key, line);
}

/* read up to the end of a mapping. @section: "" at the top */
static int read_keys(struct file *file, const char *section)
{
	for (;;) {
		int r = next(file, section);
		if (r < 0 || file->event.type == YAML_MAPPING_END_EVENT)
			return r;
		r = read_key(file, section);
		if (r < 0)
			return r;
	}
}

static int read_document(struct file *file)
{
	int r = next(file, "");
	if (r < 0)
		return r;
	if (is_null(&file->event)) /* "---" only */
		return next(file, "");
	if (file->event.type != YAML_MAPPING_START_EVENT)
		return wrong(file, line_of(file), "", "expected lines of the form NAME: VALUE");
	r = read_keys(file, "");
	return r ? r : next(file, "");
}

static int read_stream(struct file *file)
{
	int r = next(file, ""); /* the start of the stream */
	r = r ? r : next(file, "");
	if (r == 0 && file->event.type == YAML_DOCUMENT_START_EVENT)
		r = read_document(file);
	if (r == 0 && file->event.type == YAML_DOCUMENT_END_EVENT)
		r = next(file, "");
	if (r == 0 && file->event.type != YAML_STREAM_END_EVENT)
		r = wrong(file, line_of(file), "", "only one document is allowed");
	return r;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int read_text(const char *path, char **ret_text, size_t *ret_len, struct ck_error *err)
{
	/* do not block on a FIFO */
	CK_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return ck_fail_errno(err, CK_EIO, errno, "%s", path);
	if (!S_ISREG(st.st_mode))
		return ck_fail(err, CK_EINVAL, "%s: not a regular file", path);
	CK_AUTO_FREE char *text = ck_alloc(CK_CONF_FILE_MAX + 1);
	size_t len = 0;
	ssize_t n = 1;
	if (!text)
		return ck_nomem(err);
	while (n && len <= CK_CONF_FILE_MAX) {
		n = read(fd, text + len, CK_CONF_FILE_MAX + 1 - len);
		if (n < 0 && errno != EINTR)
			return ck_fail_errno(err, CK_EIO, errno, "%s", path);
		len += n > 0 ? (size_t)n : 0;
	}
	*ret_text = CK_TAKE(text);
	*ret_len = len;
	return 0;
}

int ck_conf_file(struct ck_conf *conf, const char *path, const char *text, size_t len,
		 struct ck_error *err)
{
	CK_AUTO_FREE char *own = NULL;
	if (!text) {
		int r = read_text(path, &own, &len, err);
		if (r < 0)
			return r;
	}
	struct file file = {
		.conf = conf, .path = path, .text = text ? text : own, .len = len, .err = err
	};
	if (len > CK_CONF_FILE_MAX)
		return ck_fail(err, CK_EINVAL, "%s: longer than %u bytes", path, CK_CONF_FILE_MAX);
	if (!yaml_parser_initialize(&file.parser))
		return ck_nomem(err);
	yaml_parser_set_encoding(&file.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&file.parser, (const unsigned char *)file.text, len);
	int r = read_stream(&file);
	yaml_event_delete(&file.event);
	yaml_parser_delete(&file.parser);
	return r;
}
