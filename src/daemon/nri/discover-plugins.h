/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_DAEMON_NRI_DISCOVER_PLUGINS_H
#define CK_DAEMON_NRI_DISCOVER_PLUGINS_H
/*
 * NRI's files: the plugins to launch with their configuration, and the directory of the socket.
 * They are read before the daemon is confined. Only root can write there, so the files are trusted;
 * but one odd file does not keep other plugins from being launched.
 */
#include "src/crikeep-nri.h"
#include "src/base/limits.h"
#include "src/daemon/nri/launcher.h"

struct ck_plugins { /* zeroed, then ck_plugins_fini(); its strings are its own */
	struct ck_plugin_file *files;
	/* in name order; for ck_launcher_start() */
	struct ck_launch_item items[CK_NRI_PLUGINS_MAX];
	struct ck_nri_launched launched[CK_NRI_PLUGINS_MAX];  /* the same; for ck_nri_open() */
	size_t n;
};
/*
 * ck_plugins_find - files NN-name with an execute bit in @dir, each with the content of
 * NN-name.conf or else name.conf in @config_dir. A directory that does not exist, or "", holds
 * none.
 * @odd is called for each file that is left out, with the reason
 * Return: 0, -CK_EIO (@dir cannot be read), -CK_ENOMEM
 */
typedef void ck_plugins_odd_cb(enum ck_log_level level, const char *text, void *userdata);
int ck_plugins_find(struct ck_plugins *plugins, const char *dir, const char *config_dir,
		    ck_plugins_odd_cb *odd, void *userdata, struct ck_error *err);
void ck_plugins_fini(struct ck_plugins *plugins);
/* ck_plugins_socket_dir - create the missing directories above @socket_path, with mode 0700. 0,
 * -CK_EIO, -CK_ENOMEM */
int ck_plugins_socket_dir(const char *socket_path, struct ck_error *err);
#endif
