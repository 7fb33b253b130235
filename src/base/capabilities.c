/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <linux/securebits.h>
#include <sys/capability.h>
#include <sys/prctl.h>

#include "src/base/capabilities.h"

int ck_capabilities_drop(struct ck_error *err)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1L, 0L, 0L, 0L) < 0)
		return ck_fail_errno(err, CK_EIO, errno, "forbid new privileges");
	cap_t now, none = cap_init();
	if (!none)
		return ck_nomem(err);
	/* These calls may fail for an ordinary user and for root in a container. Such a process
	 * cannot gain a capability either, because new privileges are off. */
	for (cap_value_t cap = 0; cap < cap_max_bits(); cap++)
		cap_drop_bound(cap);
	prctl(PR_SET_SECUREBITS,
	      SECBIT_NOROOT | SECBIT_NOROOT_LOCKED | SECBIT_NO_SETUID_FIXUP |
		      SECBIT_NO_SETUID_FIXUP_LOCKED | SECBIT_KEEP_CAPS_LOCKED |
		      SECBIT_NO_CAP_AMBIENT_RAISE | SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED,
	      0L, 0L, 0L);
	cap_reset_ambient();
	int r = cap_set_proc(none) < 0 ? ck_fail_errno(err, CK_EIO, errno, "drop capabilities") : 0;
	now = r < 0 ? NULL : cap_get_proc();
	if (r >= 0 && (!now || cap_compare(now, none)))
		r = ck_fail(err, CK_EIO, "some capabilities were not dropped");
	cap_free(now);
	cap_free(none);
	return r;
}
