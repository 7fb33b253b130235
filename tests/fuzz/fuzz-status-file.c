/* SPDX-License-Identifier: Apache-2.0 */
/* A status file in any bytes: refused with its line, or it is read as it would be written, and
 * again. */
#include <stdlib.h>
#include <string.h>

#include "hooks/status-file.h"
#include "src/base/mem.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct ck_nri_status *status, *again;
	CK_AUTO_BYTES struct ck_bytes text = { 0 }, twice = { 0 };
	struct ck_error err;

	if (ck_status_parse((const char *)data, size, &status, &err) < 0) {
		if (err.code != CK_EMALFORMED || strncmp(err.text, "line ", 5) ||
		    !memchr(err.text, '\0', sizeof(err.text)))
			abort();
		return 0;
	}
	for (size_t i = 0; i < status->n; i++) {
		const struct ck_nri_plugin *plugin = &status->plugins[i];
		if (strlen(plugin->name) > CK_NRI_NAME_MAX ||
		    strlen(plugin->last_error) > CK_TEXT_MAX || plugin->pid < 0 ||
		    plugin->policy < CK_NRI_IGNORE || plugin->policy > CK_NRI_REQUIRED)
			abort();
	}
	if (ck_status_print(status, &text) < 0 || text.len > CK_STATUS_FILE_MAX ||
	    ck_status_parse((const char *)text.p, text.len, &again, &err) < 0 ||
	    ck_status_print(again, &twice) < 0 || text.len != twice.len ||
	    memcmp(text.p, twice.p, text.len))
		abort();
	ck_status_free(status);
	ck_status_free(again);
	return 0;
}
