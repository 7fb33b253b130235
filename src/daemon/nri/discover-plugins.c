/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds plugins as other runtimes do, with one difference: there, an executable with an odd name or
 * an unreadable configuration disables NRI for all plugins.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/mem.h"
#include "src/base/utf8.h"
#include "src/daemon/nri/discover-plugins.h"

#define SHOWN 128u /* of a file's name, in a line of the log */

struct ck_plugin_file {
	struct ck_plugin_file *next;
	char *path, *config;
	char *argv[2], *env[4];
	char name[CK_NRI_NAME_MAX + 1]; /* NN-name */
	char env_name[sizeof("NRI_PLUGIN_NAME=") + CK_NRI_NAME_MAX],
		env_index[sizeof("NRI_PLUGIN_IDX=NN")];
};

struct finding {
	const char *dir, *config_dir;
	ck_plugins_odd_cb *odd;
	void *userdata;
};

__attribute__((format(printf, 4, 5))) static void
odd(const struct finding *finding, enum ck_log_level level, const char *name, const char *fmt, ...)
{
	char text[CK_ERROR_TEXT], shown[SHOWN];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	ck_utf8_clean(name, false, shown, sizeof(shown));
	char line[CK_ERROR_TEXT + SHOWN];
	snprintf(line, sizeof(line), "%s/%s: %s", finding->dir, shown, text);
	finding->odd(level, line, finding->userdata);
}

static void file_free(struct ck_plugin_file *file)
{
	free(file->path);
	free(file->config);
	free(file);
}

/* ---- configuration --------------------------------------------------------------------------- */

/* it becomes a string of a message; plugins refuse a message with a string that is not UTF-8 */
static bool is_text(const char *text, size_t len)
{
	uint32_t c;
	if (strlen(text) != len)
		return false;
	for (size_t n; *text; text += n)
		if (!(n = ck_utf8_next(text, &c)))
			return false;
	return true;
}

/* 1: it was read; 0: it does not exist */
static int read_file(const char *path, char **ret_text, struct ck_error *err)
{
	/* opening a FIFO must not block */
	CK_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st;
	if (fd < 0 && errno == ENOENT)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return ck_fail_errno(err, CK_EIO, errno, "%s", path);
	if (!S_ISREG(st.st_mode))
		return ck_fail(err, CK_EIO, "%s: not a regular file", path);
	if (st.st_size > (off_t)CK_NRI_CONFIG_MAX)
		return ck_fail(err, CK_ETOOBIG, "%s: longer than %u bytes", path,
			       CK_NRI_CONFIG_MAX);
	size_t size = (size_t)st.st_size, len = 0;
	CK_AUTO_FREE char *text = ck_alloc(size + 1);
	if (!text)
		return ck_nomem(err);
	for (ssize_t n = 1; n && len < size;) {
		n = read(fd, text + len, size - len);
		if (n < 0 && errno != EINTR)
			return ck_fail_errno(err, CK_EIO, errno, "%s", path);
		len += n > 0 ? (size_t)n : 0;
	}
	if (!is_text(text, len))
		return ck_fail(err, CK_EMALFORMED, "%s: not UTF-8", path);
	*ret_text = CK_TAKE(text);
	return 1;
}

/* NN-name.conf, else name.conf, else none */
static int read_config(const struct finding *finding, struct ck_plugin_file *file,
		       struct ck_error *err)
{
	const char *names[] = { file->name, file->name + 3 };
	int r = 0;
	for (size_t i = 0; *finding->config_dir && r == 0 && i < CK_COUNT(names); i++) {
		char *path = NULL;
		if (asprintf(&path, "%s/%s.conf", finding->config_dir, names[i]) < 0)
			return ck_nomem(err);
		r = read_file(path, &file->config, err);
		free(path);
	}
	return r < 0 ? r : 0;
}

/* ---- one file -------------------------------------------------------------------------------- */

static bool is_name(const char *name)
{
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.+-";
	return name[0] >= '0' && name[0] <= '9' && name[1] >= '0' && name[1] <= '9' &&
	       name[2] == '-' && name[3] && !name[3 + strspn(name + 3, allowed)] &&
	       strlen(name) <= CK_NRI_NAME_MAX;
}

static bool is_webassembly(const char *path)
{
	static const char magic[] = { '\0', 'a', 's', 'm', 1, 0, 0, 0 };
	char begin[sizeof(magic)];
	CK_AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	return fd >= 0 && read(fd, begin, sizeof(begin)) == (ssize_t)sizeof(begin) &&
	       !memcmp(begin, magic, sizeof(magic));
}

static void make_environment(struct ck_plugin_file *file)
{
	static char socket[] = "NRI_PLUGIN_SOCKET=3"; /* what the launcher gives it */
	snprintf(file->env_name, sizeof(file->env_name), "NRI_PLUGIN_NAME=%s", file->name + 3);
	snprintf(file->env_index, sizeof(file->env_index), "NRI_PLUGIN_IDX=%.2s", file->name);
	file->env[0] = file->env_name;
	file->env[1] = file->env_index;
	file->env[2] = socket;
	file->argv[0] = file->path;
}

/* 1: @ret_file is a plugin; 0: it is none, or it cannot be launched and odd was called */
static int look_at(const struct finding *finding, const char *name,
		   struct ck_plugin_file **ret_file, struct ck_error *err)
{
	struct stat st;
	struct ck_error why = { 0 };
	struct ck_plugin_file *file = CK_NEW(struct ck_plugin_file);
	if (!file || asprintf(&file->path, "%s/%s", finding->dir, name) < 0) {
		free(file);
		return ck_nomem(err);
	}
	int r = 0;
	if (stat(file->path, &st) < 0) {
		odd(finding, CK_LOG_WARNING, name, "%s: not launched", strerror(errno));
	} else if (!S_ISREG(st.st_mode) || !(st.st_mode & 0111)) {
		/* such as a README */
	} else if (!is_name(name)) {
		odd(finding, CK_LOG_WARNING, name,
		    "can be executed, but is not named as a plugin, such as 10-name: not launched");
	} else if (is_webassembly(file->path)) {
		odd(finding, CK_LOG_WARNING, name,
		    "a WebAssembly plugin, which is not supported: not launched");
	} else {
		snprintf(file->name, sizeof(file->name), "%s", name);
		r = read_config(finding, file, &why);
		if (r == 0) {
			make_environment(file);
			*ret_file = file;
			return 1;
		}
		if (r != -CK_ENOMEM)
			odd(finding, CK_LOG_ERROR, name, "%s: not launched", why.text);
	}
	file_free(file);
	return r == -CK_ENOMEM ? ck_nomem(err) : 0;
}

/* ---- all ------------------------------------------------------------------------------------- */

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int not_hidden(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void add(struct ck_plugins *plugins, struct ck_plugin_file *file)
{
	file->next = plugins->files;
	plugins->files = file;
	plugins->items[plugins->n] =
		(struct ck_launch_item){ .argv = file->argv, .env = file->env };
	plugins->launched[plugins->n++] =
		(struct ck_nri_launched){ .name = file->name, .config = file->config };
}

int ck_plugins_find(struct ck_plugins *plugins, const char *dir, const char *config_dir,
		    ck_plugins_odd_cb *odd_cb, void *userdata, struct ck_error *err)
{
	const struct finding finding = { dir, config_dir, odd_cb, userdata };
	struct dirent **names = NULL;
	int r = 0, n = *dir ? scandir(dir, &names, not_hidden, by_name) : 0;
	if (n < 0 && errno == ENOENT)
		return 0;
	if (n < 0)
		return ck_fail_errno(err, CK_EIO, errno, "look for plugins in '%s'", dir);
	for (int i = 0; r >= 0 && i < n; i++) {
		struct ck_plugin_file *file = NULL;
		r = look_at(&finding, names[i]->d_name, &file, err);
		if (file && plugins->n == CK_NRI_PLUGINS_MAX) {
			odd(&finding, CK_LOG_ERROR, names[i]->d_name,
			    "more than %u plugins: not launched", CK_NRI_PLUGINS_MAX);
			file_free(file);
		} else if (file) {
			add(plugins, file);
		}
	}
	for (int i = 0; i < n; i++)
		free(names[i]);
	free(names);
	return r < 0 ? r : 0;
}

void ck_plugins_fini(struct ck_plugins *plugins)
{
	for (struct ck_plugin_file *file = plugins->files, *next; file; file = next) {
		next = file->next;
		file_free(file);
	}
	*plugins = (struct ck_plugins){ 0 };
}

int ck_plugins_socket_dir(const char *socket_path, struct ck_error *err)
{
	CK_AUTO_FREE char *path = ck_strdup(socket_path);
	if (!path)
		return ck_nomem(err);
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		struct stat st;
		int r = mkdir(path, 0700);
		if (r < 0 && errno == EEXIST && stat(path, &st) == 0 && !S_ISDIR(st.st_mode))
			errno = ENOTDIR;
		if (r < 0 && errno != EEXIST)
			return ck_fail_errno(err, CK_EIO, errno,
					     "cannot create the directory '%s'", path);
		*slash = '/';
	}
	return 0;
}
