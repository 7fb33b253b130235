/* SPDX-License-Identifier: Apache-2.0 */
/* Everything that the checks of `crikeep doctor` need to know of a node. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <yaml.h>

#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cli/cli.h"
#include "src/cli/cri-endpoint.h"
#include "src/cli/doctor/node.h"

/* ---- files and processes --------------------------------------------------------------------- */

char *ck_node_file(const char *root, const char *path, size_t *ret_len)
{
	CK_AUTO_FREE char *whole = ck_text_format("%s%s", root, path);
	CK_AUTO_FREE char *text = ck_must(ck_alloc(CK_DOCTOR_FILE_MAX + 1));
	CK_AUTO_CLOSE int fd = open(whole, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	size_t len = 0;
	ssize_t n = fd < 0 ? -1 : 1;
	while (n > 0 && len < CK_DOCTOR_FILE_MAX) {
		n = read(fd, text + len, CK_DOCTOR_FILE_MAX - len);
		len += n > 0 ? (size_t)n : 0;
	}
	if (ret_len)
		*ret_len = len;
	return n < 0 ? NULL : CK_TAKE(text);
}

long ck_node_process(const char *root, const char *name, char **ret_words, size_t *ret_len)
{
	CK_AUTO_FREE char *proc = ck_text_format("%s/proc", root);
	DIR *dir = opendir(proc);
	long first = 0;
	for (struct dirent *entry; dir && (entry = readdir(dir));) {
		long pid = strtol(entry->d_name, NULL, 10);
		CK_AUTO_FREE char *path = ck_text_format("/proc/%ld/comm", pid);
		CK_AUTO_FREE char *comm = pid > 0 ? ck_node_file(root, path, NULL) : NULL;
		if (!comm || (first && pid > first))
			continue;
		comm[strcspn(comm, "\n")] = '\0';
		if (strcmp(comm, name) == 0)
			first = pid;
	}
	if (dir)
		closedir(dir);
	CK_AUTO_FREE char *path = ck_text_format("/proc/%ld/cmdline", first);
	*ret_words = first ? ck_node_file(root, path, ret_len) : NULL;
	return *ret_words ? first : 0;
}

void ck_node_set(struct ck_from *what, char *value, const char *from)
{
	if (!value || !*value) {
		free(value);
		return;
	}
	free(what->value);
	free(what->from);
	*what = (struct ck_from){ value, ck_must(ck_strdup(from)) };
}

/* ---- YAML ------------------------------------------------------------------------------------ */

static yaml_node_t *yaml_find(yaml_document_t *document, const yaml_node_t *map, const char *key)
{
	if (!map || map->type != YAML_MAPPING_NODE)
		return NULL;
	for (yaml_node_pair_t *pair = map->data.mapping.pairs.start;
	     pair < map->data.mapping.pairs.top; pair++) {
		const yaml_node_t *name = yaml_document_get_node(document, pair->key);
		if (name && name->type == YAML_SCALAR_NODE &&
		    strcmp((const char *)name->data.scalar.value, key) == 0)
			return yaml_document_get_node(document, pair->value);
	}
	return NULL;
}

char *ck_node_yaml(const char *text, size_t len, const char *section, const char *key)
{
	yaml_parser_t parser;
	yaml_document_t document;
	char *value = NULL;
	if (!yaml_parser_initialize(&parser))
		ck_text_nomem();
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, len);
	if (yaml_parser_load(&parser, &document)) {
		const yaml_node_t *node = yaml_document_get_root_node(&document);
		if (section)
			node = yaml_find(&document, node, section);
		node = yaml_find(&document, node, key);
		if (node && node->type == YAML_SCALAR_NODE)
			value = ck_must(ck_strdup((const char *)node->data.scalar.value));
		yaml_document_delete(&document);
	}
	yaml_parser_delete(&parser);
	return value;
}

/* ---- crikeepd -------------------------------------------------------------------------------- */

static void add_warning(const char *text, void *userdata)
{
	struct ck_node *node = userdata;
	char *before = node->conf_warnings;
	node->conf_warnings = ck_text_format("%s%s%s", before, *before ? "; " : "", text);
	free(before);
}

/* as crikeepd, which is running or not, was or would be started */
static void read_conf(struct ck_node *node)
{
	static char name[] = "crikeepd", config[] = "--config";
	char *argv[CK_DOCTOR_WORDS_MAX] = { name };
	CK_AUTO_FREE char *words = NULL;
	size_t len = 0;
	int argc = 1;
	if (node->config) {
		argv[argc++] = config;
		argv[argc++] = (char *)node->config;
	} else if (ck_node_process(node->root, name, &words, &len)) {
		for (char *at = words + strlen(words) + 1;
		     at < words + len && argc < (int)CK_DOCTOR_WORDS_MAX; at += strlen(at) + 1)
			argv[argc++] = at;
	}
	node->conf_warnings = ck_must(ck_strdup(""));
	struct ck_error *err = &node->conf_err, nomem;
	node->conf_read = ck_conf_init(&node->conf, err);
	if (node->conf_read == 0)
		node->conf_read = ck_conf_read(&node->conf, node->root, argc, argv, err);
	if (node->conf_read == 0)
		node->conf_read = ck_conf_check(&node->conf, add_warning, node, err);
	if (node->conf_read == 0)
		return;
	ck_conf_fini(&node->conf);
	if (ck_conf_init(&node->conf, &nomem) < 0)
		ck_text_nomem();
}

static int read_health(struct ck_node *node)
{
	const struct ck_conf *conf = &node->conf;
	node->state_dir = ck_text_format("%s%s", node->root, conf->state_dir);
	node->endpoint = ck_text_format("unix://%s%s", node->root, conf->listen);
	node->metrics = ck_text_format("%s%s", node->root, conf->metrics);
	if (strcmp(ck_cli.state_dir, CK_CLI_STATE_DIR) == 0)
		ck_cli.state_dir = node->state_dir;
	ck_cri.endpoint = node->endpoint;
	node->health.metrics_path = node->metrics;
	int r = ck_health_take(&node->health);
	if (r < 0)
		return r;
	ck_problems_find(&node->health, &node->problems);
	node->embedded = node->health.seen && strcmp(node->health.process.name, "crikeepd") != 0;
	return 0;
}

/* ---- systemd --------------------------------------------------------------------------------- */

static const char *const unit_names[] = { [CK_UNIT_SERVICE] = "crikeepd.service",
					     [CK_UNIT_SOCKET] = "crikeepd.socket",
					     [CK_UNIT_BYPASS] = "crikeepd-bypass.socket" };

/* "ActiveState=active" */
static void read_property(struct ck_unit_state *unit, const char *line)
{
	const struct {
		const char *name;
		char *value;
	} all[] = { { "Id=", unit->id },
		    { "LoadState=", unit->load },
		    { "ActiveState=", unit->active },
		    { "UnitFileState=", unit->file },
		    { "Result=", unit->result } };
	for (size_t i = 0; i < CK_COUNT(all); i++)
		if (strncmp(line, all[i].name, strlen(all[i].name)) == 0)
			snprintf(all[i].value, sizeof(unit->id), "%s", line + strlen(all[i].name));
}

/* systemctl tells of each unit in a paragraph, in any order */
static void read_units(struct ck_node *node)
{
	CK_AUTO_FREE char *booted = ck_text_format("%s/run/systemd/system", node->root);
	struct ck_unit_state unit = { 0 };
	char line[256];
	FILE *in = access(booted, F_OK) == 0
			   /* NOLINTNEXTLINE(cert-env33-c): the command is a constant */
			   ? popen("systemctl show --property=Id,LoadState,ActiveState,"
				   "UnitFileState,Result crikeepd.service crikeepd.socket "
				   "crikeepd-bypass.socket 2>/dev/null",
				   "re")
			   : NULL;
	for (bool more = in; more;) {
		more = fgets(line, sizeof(line), in);
		line[more ? strcspn(line, "\n") : 0] = '\0';
		read_property(&unit, line);
		if (*line)
			continue;
		for (size_t i = 0; i < CK_UNITS; i++)
			if (strcmp(unit.id, unit_names[i]) == 0)
				node->units[i] = unit;
		unit = (struct ck_unit_state){ 0 };
	}
	node->systemd = in && pclose(in) == 0 && *node->units[CK_UNIT_SERVICE].load;
}

/* ---- the whole ------------------------------------------------------------------------------- */

int ck_node_read(struct ck_node *node)
{
	size_t len;
	CK_AUTO_FREE char *crictl = ck_node_file(node->root, "/etc/crictl.yaml", &len);
	read_conf(node);
	int r = read_health(node);
	if (r < 0)
		return r;
	ck_kubelet_read(&node->kubelet, node->root, &node->health.look);
	if (crictl)
		ck_node_set(&node->crictl, ck_node_yaml(crictl, len, NULL, "runtime-endpoint"),
			    "/etc/crictl.yaml");
	read_units(node);
	return 0;
}

void ck_node_fini(struct ck_node *node)
{
	ck_conf_fini(&node->conf);
	free(node->conf_warnings);
	ck_problems_fini(&node->problems);
	ck_health_fini(&node->health);
	ck_kubelet_fini(&node->kubelet);
	free(node->state_dir);
	free(node->endpoint);
	free(node->metrics);
	free(node->crictl.value);
	free(node->crictl.from);
}
