/* SPDX-License-Identifier: Apache-2.0 */
/* Plugins on disk: which files are launched, with which name, environment and configuration, and
 * what is passed over. */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/harness.h"
#include "src/base/fault.h"
#include "src/base/mem.h"
#include "src/daemon/nri/discover-plugins.h"

static char top[256], plugin_dir[300], config_dir[300], said[8192];
static struct ck_plugins plugins;

static int set_up(void **state)
{
	const char *tmp = getenv("TMPDIR");
	(void)state;
	snprintf(top, sizeof(top), "%s/plugins.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(top));
	snprintf(plugin_dir, sizeof(plugin_dir), "%s/plugins", top);
	snprintf(config_dir, sizeof(config_dir), "%s/conf.d", top);
	assert_int_equal(mkdir(plugin_dir, 0700), 0);
	assert_int_equal(mkdir(config_dir, 0700), 0);
	said[0] = '\0';
	return 0;
}

static int remove_it(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	(void)st;
	(void)flag;
	(void)ftw;
	return remove(path);
}

static int tear_down(void **state)
{
	(void)state;
	ck_plugins_fini(&plugins);
	return nftw(top, remove_it, 8, FTW_DEPTH | FTW_PHYS);
}

static void put(const char *dir, const char *name, const void *content, size_t len, mode_t mode)
{
	char path[1024];
	snprintf(path, sizeof(path), "%s/%s", dir, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, len), len);
	assert_int_equal(fchmod(fd, mode), 0);
	close(fd);
}

static void plugin(const char *name)
{
	put(plugin_dir, name, "#!/bin/sh\n", 10, 0755);
}

static void config(const char *name, const char *text)
{
	put(config_dir, name, text, strlen(text), 0600);
}

static void odd(enum ck_log_level level, const char *text, void *userdata)
{
	size_t len = strlen(said),
	       skip = strncmp(text, plugin_dir, strlen(plugin_dir)) ? 0 : strlen(plugin_dir) + 1;
	(void)userdata;
	snprintf(said + len, sizeof(said) - len, "%d %s\n", (int)level, text + skip);
}

static int find(void)
{
	struct ck_error err = { 0 };
	int r = ck_plugins_find(&plugins, plugin_dir, config_dir, odd, NULL, &err);
	assert_true(r == 0 || err.text[0]);
	return r;
}

static void plugins_are_found_in_the_order_of_their_names(void **state)
{
	(void)state;
	plugin("20-b");
	plugin("10-z.d_+-");
	plugin("10-a");
	plugin("9-late");
	config("10-a.conf", "of 10-a\n");
	config("a.conf", "of a");
	config("b.conf", "of b");
	assert_int_equal(find(), 0);
	assert_int_equal(plugins.n, 3);
	assert_string_equal(plugins.launched[0].name, "10-a");
	assert_string_equal(plugins.launched[1].name, "10-z.d_+-");
	assert_string_equal(plugins.launched[2].name, "20-b");
	assert_string_equal(plugins.launched[0].config, "of 10-a\n");
	assert_null(plugins.launched[1].config);
	assert_string_equal(plugins.launched[2].config, "of b");
	assert_string_equal(said, "4 9-late: can be executed, but is not named as a plugin, such "
				  "as 10-name: not launched\n");
}

static void its_environment_is_three_variables(void **state)
{
	char path[1024];
	(void)state;
	plugin("07-a-b.c");
	assert_int_equal(find(), 0);
	const struct ck_launch_item *item = &plugins.items[0];
	snprintf(path, sizeof(path), "%s/07-a-b.c", plugin_dir);
	assert_string_equal(item->argv[0], path);
	assert_null(item->argv[1]);
	assert_string_equal(item->env[0], "NRI_PLUGIN_NAME=a-b.c");
	assert_string_equal(item->env[1], "NRI_PLUGIN_IDX=07");
	assert_string_equal(item->env[2], "NRI_PLUGIN_SOCKET=3");
	assert_null(item->env[3]);
}

static void what_is_no_plugin_keeps_no_other_from_its_start(void **state)
{
	static const char wasm[] = { '\0', 'a', 's', 'm', 1, 0, 0, 0, 9 };
	char path[1024], name[CK_NRI_NAME_MAX + 3];
	(void)state;
	memset(name, 'x', sizeof(name));
	memcpy(name, "10-", 3);
	name[CK_NRI_NAME_MAX + 1] = '\0';
	plugin(name); /* one too long */
	plugin("10-");
	plugin("10-a b");
	plugin("aa-x");
	plugin("10-good");
	plugin(".10-hidden");
	put(plugin_dir, "10-no-x", "", 0, 0644);
	put(plugin_dir, "README", "", 0, 0644);
	put(plugin_dir, "30-wasm", wasm, sizeof(wasm), 0755);
	snprintf(path, sizeof(path), "%s/10-dir", plugin_dir);
	assert_int_equal(mkdir(path, 0755), 0);
	snprintf(path, sizeof(path), "%s/40-gone", plugin_dir);
	assert_int_equal(symlink("/nowhere/at-all", path), 0);
	snprintf(path, sizeof(path), "%s/50-link", plugin_dir);
	assert_int_equal(symlink("10-good", path), 0);
	assert_int_equal(find(), 0);
	assert_int_equal(plugins.n, 2);
	assert_string_equal(plugins.launched[0].name, "10-good");
	assert_string_equal(plugins.launched[1].name, "50-link");
	assert_non_null(strstr(said, "10-: can be"));
	assert_non_null(strstr(said, "10-a b: can be"));
	assert_non_null(strstr(said, "aa-x: can be"));
	assert_non_null(strstr(said, "30-wasm: a WebAssembly plugin"));
	assert_non_null(strstr(said, "40-gone: No such file"));
	assert_non_null(strstr(said, "4 10-xxxx"));
	assert_null(strstr(said, "hidden"));
	assert_null(strstr(said, "no-x"));
	assert_null(strstr(said, "10-dir"));
}

static void a_plugin_whose_configuration_cannot_be_read_is_not_launched(void **state)
{
	char path[1024];
	(void)state;
	plugin("10-a");
	plugin("20-b");
	plugin("30-c");
	plugin("40-d");
	plugin("50-e");
	put(config_dir, "a.conf", "\xff\xfe", 2, 0600);
	put(config_dir, "b.conf", "a\0b", 3, 0600);
	put(config_dir, "c.conf", "", 0, 0600);
	snprintf(path, sizeof(path), "%s/c.conf", config_dir);
	assert_int_equal(truncate(path, CK_NRI_CONFIG_MAX + 1), 0);
	snprintf(path, sizeof(path), "%s/40-d.conf", config_dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	config("50-e.conf", "");
	assert_int_equal(find(), 0);
	assert_int_equal(plugins.n, 1);
	assert_string_equal(plugins.launched[0].name, "50-e");
	assert_string_equal(plugins.launched[0].config, "");
	assert_non_null(strstr(said, "3 10-a: "));
	assert_non_null(strstr(said, "/a.conf: not UTF-8: not launched\n"));
	assert_non_null(strstr(said, "/b.conf: not UTF-8: not launched\n"));
	assert_non_null(strstr(said, "/c.conf: longer than 1048576 bytes: not launched\n"));
	assert_non_null(strstr(said, "/40-d.conf: not a regular file: not launched\n"));
}

static void a_directory_that_is_not_there_holds_none(void **state)
{
	struct ck_error err = { 0 };
	(void)state;
	assert_int_equal(ck_plugins_find(&plugins, "/nowhere/at-all", "", odd, NULL, &err), 0);
	assert_int_equal(ck_plugins_find(&plugins, "", "", odd, NULL, &err), 0);
	assert_int_equal(plugins.n, 0);
	assert_int_equal(ck_plugins_find(&plugins, "/dev/null", "", odd, NULL, &err), -CK_EIO);
	assert_non_null(strstr(err.text, "/dev/null"));
}

static void more_than_can_be_told_are_left_out(void **state)
{
	char name[16];
	(void)state;
	for (unsigned i = 0; i < CK_NRI_PLUGINS_MAX + 2; i++) {
		snprintf(name, sizeof(name), "%02u-p", i);
		plugin(name);
	}
	assert_int_equal(find(), 0);
	assert_int_equal(plugins.n, CK_NRI_PLUGINS_MAX);
	assert_string_equal(said, "3 60-p: more than 60 plugins: not launched\n3 61-p: more than "
				  "60 plugins: not launched\n");
}

static void the_sockets_directory_is_made_for_root_alone(void **state)
{
	struct ck_error err = { 0 };
	struct stat st;
	char path[1024], dir[1024];
	mode_t mask = umask(0);
	(void)state;
	snprintf(path, sizeof(path), "%s/run/nri/nri.sock", top);
	assert_int_equal(ck_plugins_socket_dir(path, &err), 0);
	assert_int_equal(ck_plugins_socket_dir(path, &err), 0);
	umask(mask);
	snprintf(dir, sizeof(dir), "%s/run/nri", top);
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	snprintf(dir, sizeof(dir), "%s/run", top);
	assert_int_equal(stat(dir, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(ck_plugins_socket_dir("/dev/null/x/nri.sock", &err), -CK_EIO);
	assert_int_equal(ck_plugins_socket_dir("/dev/null/nri.sock", &err), -CK_EIO);
	assert_non_null(strstr(err.text, "'/dev/null': Not a directory"));
}

static void no_memory_is_an_error(void **state)
{
	struct ck_error err = { 0 };
	bool hit = true;
	(void)state;
	plugin("10-a");
	config("a.conf", "x");
	for (unsigned nth = 1; hit; nth++) {
		ck_fault_arm(CK_FAULT_ALLOC, nth, false);
		int r = ck_plugins_find(&plugins, plugin_dir, config_dir, odd, NULL, &err);
		hit = ck_fault_hit();
		ck_fault_arm(0, 0, false);
		assert_int_equal(r, hit ? -CK_ENOMEM : 0);
		assert_int_equal(plugins.n, hit ? 0 : 1);
		ck_plugins_fini(&plugins);
	}
	assert_string_equal(said, "");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(plugins_are_found_in_the_order_of_their_names),
		TEST(its_environment_is_three_variables),
		TEST(what_is_no_plugin_keeps_no_other_from_its_start),
		TEST(a_plugin_whose_configuration_cannot_be_read_is_not_launched),
		TEST(a_directory_that_is_not_there_holds_none),
		TEST(more_than_can_be_told_are_left_out),
		TEST(the_sockets_directory_is_made_for_root_alone),
		TEST(no_memory_is_an_error),
	};
	return CK_TEST_MAIN(tests);
}
