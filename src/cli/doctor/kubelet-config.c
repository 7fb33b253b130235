/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the kubelet is configured. An option of its command line counts more than the files of
 * --config-dir, the last of which counts most, and these count more than the file of --config. If
 * it does not run, its options are what systemd's unit of kubeadm takes from three files.
 */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cli/doctor/node.h"
#include "src/cli/output/text.h"

#define CONFIG_DEFAULT "/var/lib/kubelet/config.yaml" /* kubeadm's */

struct options { /* those of the command line that matter here */
	struct ck_from endpoint, timeout, gates, config, config_dir;
};

/* ---- options --------------------------------------------------------------------------------- */

/* "--name=value", or "--name" and then @next. Return: how many words that took */
static int read_option(struct options *options, const char *word, const char *next,
		       const char *from)
{
	const struct {
		const char *name;
		struct ck_from *value;
	} all[] = { { "--container-runtime-endpoint", &options->endpoint },
		    { "--runtime-request-timeout", &options->timeout },
		    { "--feature-gates", &options->gates },
		    { "--config", &options->config },
		    { "--config-dir", &options->config_dir } };
	for (size_t i = 0; i < CK_COUNT(all); i++) {
		size_t len = strlen(all[i].name);
		if (strncmp(word, all[i].name, len) != 0 || (word[len] && word[len] != '='))
			continue;
		const char *value = word[len] ? word + len + 1 : next;
		ck_node_set(all[i].value, ck_strdup(value), from);
		return word[len] ? 1 : 2;
	}
	return 1;
}

/* @words: each with a NUL after it */
static void read_words(struct options *options, const char *words, size_t len, const char *from)
{
	const char *all[CK_DOCTOR_WORDS_MAX + 1] = { NULL };
	size_t n = 0;
	for (const char *at = words; at < words + len && n < CK_DOCTOR_WORDS_MAX;
	     at += strlen(at) + 1)
		if (*at)
			all[n++] = at;
	for (size_t i = 0; i < n;)
		i += (size_t)read_option(options, all[i], all[i + 1], from);
}

/* KUBELET_KUBEADM_ARGS="--one=1 --two=2": blanks separate words, also in the quotes */
static void read_environment(struct options *options, char *text, size_t len, const char *from)
{
	for (char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (*line == '#')
			memset(line, ' ', strcspn(line, "\n"));
	for (size_t i = 0; i < len; i++)
		if (strchr(" \t\n\"'", text[i]))
			text[i] = '\0';
	for (char *args = text; args < text + len; args += strlen(args) + 1) {
		char *equals = strchr(args, '=');
		if (*args != '-' && equals) /* the name of the variable */
			memset(args, '\0', (size_t)(equals - args) + 1);
	}
	read_words(options, text, len, from);
}

static bool read_files(struct options *options, const char *root)
{
	static const char *const files[] = { "/var/lib/kubelet/kubeadm-flags.env",
					     "/etc/sysconfig/kubelet", "/etc/default/kubelet" };
	bool found = false;
	for (size_t i = 0; i < CK_COUNT(files); i++) {
		size_t len;
		CK_AUTO_FREE char *text = ck_node_file(root, files[i], &len);
		if (text)
			read_environment(options, text, len, files[i]);
		found = found || text;
	}
	return found;
}

/* ---- the configuration ----------------------------------------------------------------------- */

static bool read_config(struct ck_kubelet *kubelet, const char *root, const char *path)
{
	size_t len;
	CK_AUTO_FREE char *text = ck_node_file(root, path, &len);
	CK_AUTO_FREE char *whole = ck_text_format("%s%s", root, path);
	struct stat st;
	if (!text)
		return false;
	if (kubelet->started && stat(whole, &st) == 0 && st.st_mtime > kubelet->started) {
		free(kubelet->newer);
		kubelet->newer = ck_must(ck_strdup(path));
	}
	ck_node_set(&kubelet->endpoint, ck_node_yaml(text, len, NULL, "containerRuntimeEndpoint"),
		    path);
	ck_node_set(&kubelet->timeout, ck_node_yaml(text, len, NULL, "runtimeRequestTimeout"),
		    path);
	ck_node_set(&kubelet->cri_stats, ck_node_yaml(text, len, "featureGates", CK_CRI_STATS_GATE),
		    path);
	return true;
}

static int is_drop_in(const struct dirent *entry)
{
	const char *dot = strrchr(entry->d_name, '.');
	return dot && strcmp(dot, ".conf") == 0;
}

static void read_drop_ins(struct ck_kubelet *kubelet, const char *root, const char *path)
{
	CK_AUTO_FREE char *whole = ck_text_format("%s%s", root, path);
	struct dirent **entries = NULL;
	int n = scandir(whole, &entries, is_drop_in, alphasort);
	for (int i = 0; i < n; i++) {
		CK_AUTO_FREE char *file = ck_text_format("%s/%s", path, entries[i]->d_name);
		read_config(kubelet, root, file);
		free(entries[i]);
	}
	free(entries);
}

static void take(struct ck_from *to, struct ck_from *from)
{
	if (from->value)
		ck_node_set(to, CK_TAKE(from->value), from->from);
}

/* "A=true,PodAndContainerStatsFromCRI=false": what the gate is set to */
static void take_gate(struct ck_from *to, const struct ck_from *from)
{
	const char *at = from->value ? strstr(from->value, CK_CRI_STATS_GATE "=") : NULL;
	if (!at)
		return;
	at += sizeof(CK_CRI_STATS_GATE);
	ck_node_set(to, ck_strndup(at, strcspn(at, ",")), from->from);
}

static void free_from(struct ck_from *what)
{
	free(what->value);
	free(what->from);
}

/* in seconds of the wall clock; 0: unknown */
static int64_t started(long pid, const char *root, const struct ck_look *look)
{
	CK_AUTO_FREE char *path = ck_text_format("/proc/%ld/stat", pid);
	CK_AUTO_FREE char *line = ck_node_file(root, path, NULL);
	struct ck_process process;
	return line && ck_process_parse(line, &process)
		       ? ck_look_wall(look, process.started)
		       : 0;
}

void ck_kubelet_read(struct ck_kubelet *kubelet, const char *root, const struct ck_look *look)
{
	struct options options = { 0 };
	CK_AUTO_FREE char *words = NULL;
	size_t len;
	kubelet->pid = ck_node_process(root, "kubelet", &words, &len);
	kubelet->found = kubelet->pid;
	kubelet->started = kubelet->pid ? started(kubelet->pid, root, look) : 0;
	if (kubelet->pid)
		read_words(&options, words, len, "its command line");
	else
		kubelet->found = read_files(&options, root);
	/* a kubelet that runs without --config has none */
	if (options.config.value || !kubelet->pid)
		kubelet->found |= read_config(kubelet, root, options.config.value
								     ? options.config.value
								     : CONFIG_DEFAULT);
	if (options.config_dir.value)
		read_drop_ins(kubelet, root, options.config_dir.value);
	take(&kubelet->endpoint, &options.endpoint);
	take(&kubelet->timeout, &options.timeout);
	take_gate(&kubelet->cri_stats, &options.gates);
	free_from(&options.endpoint);
	free_from(&options.timeout);
	free_from(&options.gates);
	free_from(&options.config);
	free_from(&options.config_dir);
}

void ck_kubelet_fini(struct ck_kubelet *kubelet)
{
	free_from(&kubelet->endpoint);
	free(kubelet->newer);
	free_from(&kubelet->timeout);
	free_from(&kubelet->cri_stats);
}
