/* SPDX-License-Identifier: Apache-2.0 */
/* A culprit in words, and as a tree. Names and paths are untrusted; who prints makes them safe. */
#include <stdio.h>
#include <string.h>

#include "src/base/duration.h"
#include "src/base/mem.h"
#include "src/cli/culprit/culprit.h"
#include "src/cli/output/print.h"

static const struct {
	const char *word, *text; /* for programs, which crikeep(1) lists; for people */
} kinds[] = {
	[CK_CULPRIT_RUNTIME] = { "runtime", "the runtime, " },
	[CK_CULPRIT_CNI_PLUGIN] = { "cni_plugin", "CNI plugin " },
	[CK_CULPRIT_OCI_RUNTIME] = { "oci_runtime", "" },
	[CK_CULPRIT_MONITOR] = { "monitor", "" },
	[CK_CULPRIT_SHIM] = { "shim", "" },
	[CK_CULPRIT_NRI_PLUGIN] = { "nri_plugin", "NRI plugin " },
};

static const char *const hangs[] = {
	[CK_HANG_STOPPED] = "stopped",
	[CK_HANG_DISK] = "disk",
	[CK_HANG_LOCK] = "lock",
	[CK_HANG_RUNS] = "runs",
};

static void tell_waiting(const struct ck_waiting *waiting, FILE *out)
{
	fprintf(out, "waits in the kernel (state D%s%s) for a disk, a file system or a device",
		*waiting->where ? ", in " : "", waiting->where);
	if (*waiting->path)
		fprintf(out, ", at %s", waiting->path);
}

static void tell_lock(const struct ck_culprit *culprit, FILE *out)
{
	const struct ck_process *holder = &culprit->holder;
	fprintf(out, "waits for a lock%s%s, ", *culprit->waiting.path ? " on " : "",
		culprit->waiting.path);
	if (!holder->pid)
		fprintf(out, "whose holder is unknown");
	else
		fprintf(out, "which process %ld (%s) holds%s", holder->pid, holder->name,
			ck_process_stopped(holder) ? "; that process is stopped by a signal or a "
						     "debugger"
						   : "");
}

static const struct ck_process *last_of(const struct ck_culprit *culprit)
{
	return &culprit->chain[culprit->chain_n - 1];
}

char *ck_culprit_text(const struct ck_culprit *culprit, uint64_t now)
{
	const struct ck_process *first = &culprit->chain[0], *last = last_of(culprit);
	char span[CK_TEXT_SPAN];
	char *text = NULL;
	size_t len;
	FILE *out = ck_must(open_memstream(&text, &len));
	fprintf(out, "%s%s (process %ld)", kinds[culprit->kind].text, first->name, first->pid);
	if (last != first)
		fprintf(out, ", in its child process %s (%ld)", last->name, last->pid);
	fprintf(out, ", which ");
	switch (culprit->hang) {
	case CK_HANG_STOPPED:
		fprintf(out, "is stopped by a signal or a debugger (state T)");
		break;
	case CK_HANG_DISK:
		tell_waiting(&culprit->waiting, out);
		break;
	case CK_HANG_LOCK:
		tell_lock(culprit, out);
		break;
	case CK_HANG_RUNS:
		fprintf(out, culprit->kind == CK_CULPRIT_NRI_PLUGIN ? "has not answered"
								    : "has not ended");
		break;
	}
	fprintf(out, ". It began %s ago.",
		ck_text_span(ck_duration_between(last->started, now), span));
	if (!culprit->certain)
		fprintf(out, " Whether just this creation waits there is not known.");
	if (fclose(out))
		ck_text_nomem();
	return text;
}

/* Somebody types the hint into a shell, and another process chose the path. */
static const char *path_for_shell(const struct ck_culprit *culprit)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789/._-";
	const char *path = culprit->waiting.path;
	return *path && !path[strspn(path, plain)] ? path : NULL;
}

char *ck_culprit_hint(const struct ck_culprit *culprit)
{
	const struct ck_process *last = last_of(culprit);
	const char *path = path_for_shell(culprit);
	switch (culprit->hang) {
	case CK_HANG_STOPPED:
		return ck_text_format("'kill -CONT %ld' lets it go on.", last->pid);
	case CK_HANG_DISK:
		return ck_text_format("look at that file system and its disk: 'dmesg', "
				      "'findmnt%s%s'. No signal ends a process in state D.",
				      path ? " -T " : "", path ? path : "");
	case CK_HANG_LOCK:
		if (!culprit->holder.pid)
			return NULL;
		return ck_text_format(ck_process_stopped(&culprit->holder)
					      ? "'kill -CONT %ld' lets the holder go on."
					      : "look at what process %ld waits for, or end it.",
				      culprit->holder.pid);
	case CK_HANG_RUNS:
		if (culprit->kind == CK_CULPRIT_CNI_PLUGIN)
			return ck_text_format("look in the log of CNI plugin %s and of what it "
					      "asks, an IPAM or network daemon.",
					      culprit->chain[0].name);
		if (culprit->kind == CK_CULPRIT_NRI_PLUGIN)
			return ck_text_format("look in the log of plugin %s.",
					      culprit->chain[0].name);
		return NULL;
	}
	return NULL;
}

static struct json_object *process_tree(const struct ck_process *process, uint64_t now)
{
	const char state[2] = { process->state, '\0' };
	struct json_object *object = ck_tree_object();
	ck_tree_put_int(object, "pid", process->pid);
	ck_tree_put_text(object, "name", process->name);
	ck_tree_put_text(object, "state", state);
	ck_tree_put_seconds(object, "running_seconds",
			    (int64_t)(ck_duration_between(process->started, now) & INT64_MAX));
	return object;
}

struct json_object *ck_culprit_tree(const struct ck_culprit *culprit, uint64_t now)
{
	CK_AUTO_FREE char *text = ck_culprit_text(culprit, now);
	const struct ck_waiting *waiting = &culprit->waiting;
	struct json_object *object = ck_tree_object(), *chain = ck_tree_array();
	for (size_t i = 0; i < culprit->chain_n; i++)
		ck_tree_add(chain, process_tree(&culprit->chain[i], now));
	ck_tree_put_text(object, "what", kinds[culprit->kind].word);
	ck_tree_put_text(object, "hangs", hangs[culprit->hang]);
	ck_tree_put_bool(object, "certain", culprit->certain);
	ck_tree_put(object, "processes", chain);
	ck_tree_put_text(object, "kernel_function", *waiting->where ? waiting->where : NULL);
	ck_tree_put_text(object, "path", *waiting->path ? waiting->path : NULL);
	ck_tree_put(object, "lock_holder",
		    culprit->holder.pid ? process_tree(&culprit->holder, now) : NULL);
	ck_tree_put_text(object, "text", text);
	return object;
}
