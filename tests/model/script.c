/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A script names things by label, or by their place among the jobs in flight. So it keeps its
 * meaning when lines are taken out of it.
 */
#include <setjmp.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/mem.h"
#include "tests/model/history.h"
#include "tests/model/script.h"

/* ---- printing -------------------------------------------------------------------------------- */

static void print_request(const struct request *req, FILE *to)
{
	fprintf(to, "%s of pod%u%s uid%u%s attempt %u",
		req->kind == CK_SANDBOX ? "sandbox" : "container", req->pod, req->name ? "-b" : "",
		req->pod, req->uid ? "-b" : "", req->attempt);
	if (req->kind == CK_CONTAINER && req->in >= 0)
		fprintf(to, " in #%d", req->in);
	else if (req->kind == CK_CONTAINER)
		fprintf(to, " in a sandbox nobody knows");
	fprintf(to, ", request %c%s", 'A' + req->fp.base, req->fp.cosmetic ? " relabelled" : "");
}

static void print_seconds(uint64_t ns, FILE *to)
{
	fprintf(to, "%llu.%03llu s", (unsigned long long)(ns / S),
		(unsigned long long)(ns % S / MS));
}

static void print_step(unsigned number, const struct step *s, FILE *to)
{
	static const char *const conditions[] = { "UNKNOWN", "READY", "RUNNING", "DEAD", "ABSENT" };
	static const char *const lists[] = { "as it was when asked", "failed", "as it is now" };
	static const char *const destroys[] = { "done", "failed", "", "done, but no answer came",
						"stopped so far" };
	static const char *const starts[] = { "succeeds, and is heard of", "succeeds", "is refused",
					      "ends without an answer" };

	fprintf(to, "#%3u  ", number);
	switch (s->op) {
	case STEP_NONE:
		fprintf(to, "nothing");
		break;
	case STEP_BEGIN:
		fprintf(to, "#%d begins: ", s->label);
		print_request(&s->req, to);
		fprintf(to, ", timeout ");
		print_seconds(s->time, to);
		fprintf(to, "%s", s->arg ? ", already over" : "");
		break;
	case STEP_LEAVE:
		fprintf(to, "#%d: its caller goes", s->label);
		break;
	case STEP_DROP:
		fprintf(to, "#%d is dropped", s->label);
		break;
	case STEP_REPORT:
		fprintf(to, "#%d: the answer %s", s->label, s->arg ? "arrived" : "was lost");
		break;
	case STEP_STAGE:
		fprintf(to, "#%d names its stage", s->label);
		break;
	case STEP_FINISH:
		fprintf(to, "#%d: made%s", s->label, s->arg ? "" : ", but it does not hear it");
		break;
	case STEP_FAIL:
		fprintf(to, "#%d: failed%s", s->label, s->arg ? "" : ", but it does not hear it");
		break;
	case STEP_LOSE:
		fprintf(to, "#%d loses its creation", s->label);
		break;
	case STEP_REMOVE_BEGIN:
		fprintf(to, "#%d: RemovePodSandbox of #%d", s->label, s->req.in);
		break;
	case STEP_INSPECTED:
		fprintf(to, "question %u: %s", s->nth, s->arg ? "answered" : "failed");
		break;
	case STEP_LISTED_ENTRY:
		fprintf(to, "list by key %u: %s", s->nth, lists[s->arg]);
		break;
	case STEP_DESTROYED:
		fprintf(to, "destroy %u: %s", s->nth, destroys[s->arg]);
		break;
	case STEP_HOOKED:
		fprintf(to, "hook %u: %s", s->nth, s->arg ? "agrees" : "refuses");
		break;
	case STEP_LISTED:
		fprintf(to, "whole list %u: %s", s->nth, lists[s->arg]);
		break;
	case STEP_VIEW_OPEN:
		fprintf(to, "view %u: somebody lists %s", s->nth,
			s->req.kind == CK_SANDBOX ? "sandboxes" : "containers");
		break;
	case STEP_VIEW_CLOSE:
		fprintf(to, "view %u: %s", s->nth, s->arg == HOW_FAILED ? "failed" : "answered");
		break;
	case STEP_EXTERNAL:
		fprintf(to, "#%d: somebody else makes ", s->label);
		print_request(&s->req, to);
		fprintf(to, ", %s%s", conditions[s->arg], s->nth ? ", whatever there is" : "");
		break;
	case STEP_CONDITION:
		fprintf(to, "#%d becomes %s", s->label, conditions[s->arg]);
		break;
	case STEP_SEEN:
		fprintf(to, "#%d is seen", s->label);
		break;
	case STEP_USED:
		fprintf(to, "#%d is named by a call", s->label);
		break;
	case STEP_STARTING:
		fprintf(to, "#%d: StartContainer", s->label);
		break;
	case STEP_START_BEGIN:
		fprintf(to, "#%d: its start begins", s->label);
		break;
	case STEP_START_END:
		fprintf(to, "#%d: its start %s", s->label, starts[s->arg]);
		break;
	case STEP_STOPPING:
		fprintf(to, "#%d: StopPodSandbox", s->label);
		break;
	case STEP_FORGET:
		fprintf(to, "#%d: the kubelet has removed it", s->label);
		break;
	case STEP_EVICT:
		fprintf(to, "admin %s entry %u", s->arg ? "releases" : "evicts", s->nth);
		break;
	case STEP_TIME:
		print_seconds(s->time, to);
		fprintf(to, " later");
		break;
	case STEP_STALL:
		fprintf(to, "the loop stands still for ");
		print_seconds(s->time, to);
		break;
	case STEP_NEXT:
		fprintf(to, "the next timer");
		break;
	case STEP_DISK:
		fprintf(to, "the disk is %s", s->arg ? "full" : "well");
		break;
	case STEP_NEW_DATABASE:
		fprintf(to, "a new database");
		break;
	case STEP_PLUGIN:
		fprintf(to, "the required plugin is %s", s->arg ? "gone" : "back");
		break;
	case STEP_CRASH:
		fprintf(to, "kill -9%s%s%s", s->arg & CRASH_LATE ? " just after the write" : "",
			s->arg & CRASH_REBOOT ? ", and a reboot" : "",
			s->arg & CRASH_NEW_KEY ? ", and another digest key" : "");
		break;
	}
	fprintf(to, "%s\n", s->more ? ", and" : "");
}

void history_print(const struct history *h, FILE *to)
{
	const struct ck_rules *rules = &h->config.rules;

	fprintf(to, "# seed %llu: %s\n", (unsigned long long)h->seed, h->failure);
	fprintf(to, "# hooks %s, hand_back %s, on_annotation_change %s, inspect %s, list %s, %s,\n",
		!rules->hooks       ? "none"
		: h->config.told[0] ? "told"
				    : "nobody to tell",
		rules->hand_back == CK_OFFER ? "offer" : "repeat",
		rules->on_annotation_change == CK_ANNOTATION_EVICT ? "evict" : "hand_back",
		rules->can_inspect ? "yes" : "no", rules->can_list ? "yes" : "no",
		rules->skip_first_list ? "serving at once" : "serving after the first lists");
	fprintf(to, "# %s%s, ttl %llu s, create deadline %llu s, grace %llu s\n",
		rules->is_runtime ? "the host is the runtime, " : "",
		rules->mode == CK_MODE_IDENTITY ? "identity" : "normalized",
		(unsigned long long)(rules->ttl / S),
		(unsigned long long)(rules->create_deadline / S),
		(unsigned long long)(rules->lost_grace / S));
	for (unsigned i = 0; i < h->n; i++)
		print_step(i + 1, &h->steps[i], to);
}

/* ---- playing --------------------------------------------------------------------------------- */

static void play_step(struct world *w, const struct step *s)
{
	w->more = s->more;
	switch (s->op) {
	case STEP_NONE:
		break;
	case STEP_BEGIN:
		world_begin(w, s->label, &s->req, s->time, s->arg);
		break;
	case STEP_LEAVE:
		world_leave(w, s->label);
		break;
	case STEP_DROP:
		world_drop(w, s->label);
		break;
	case STEP_REPORT:
		world_report(w, s->label, s->arg);
		break;
	case STEP_STAGE:
		world_stage(w, s->label);
		break;
	case STEP_FINISH:
		world_finish(w, s->label, s->arg);
		break;
	case STEP_FAIL:
		world_fail(w, s->label, CK_GRPC_INTERNAL, s->arg);
		break;
	case STEP_LOSE:
		world_lose(w, s->label);
		break;
	case STEP_REMOVE_BEGIN:
		world_remove_begin(w, s->label, s->req.in, s->time);
		break;
	case STEP_INSPECTED:
		world_inspected(w, s->nth, s->arg);
		break;
	case STEP_LISTED_ENTRY:
		world_listed_entry(w, s->nth, (enum how)s->arg);
		break;
	case STEP_DESTROYED:
		world_destroyed(w, s->nth, (enum how)s->arg);
		break;
	case STEP_HOOKED:
		world_hooked(w, s->nth, s->arg);
		break;
	case STEP_LISTED:
		world_listed(w, s->nth, (enum how)s->arg);
		break;
	case STEP_VIEW_OPEN:
		world_view_open(w, s->nth, s->req.kind);
		break;
	case STEP_VIEW_CLOSE:
		world_view_close(w, s->nth, (enum how)s->arg);
		break;
	case STEP_EXTERNAL:
		world_external(w, s->label, &s->req, (enum ck_condition)s->arg, s->nth);
		break;
	case STEP_CONDITION:
		world_condition(w, s->label, (enum ck_condition)s->arg);
		break;
	case STEP_SEEN:
		world_seen(w, s->label);
		break;
	case STEP_USED:
		world_used(w, s->label);
		break;
	case STEP_STARTING:
		world_starting(w, s->label);
		break;
	case STEP_START_BEGIN:
		world_start_begin(w, s->label);
		break;
	case STEP_START_END:
		world_start_end(w, s->label, (enum ck_start_end)s->arg);
		break;
	case STEP_STOPPING:
		world_stopping(w, s->label);
		break;
	case STEP_FORGET:
		world_forget(w, s->label);
		break;
	case STEP_EVICT:
		world_evict(w, s->nth, s->arg);
		break;
	case STEP_TIME:
		world_time(w, s->time);
		break;
	case STEP_STALL:
		world_stall(w, s->time);
		break;
	case STEP_NEXT:
		world_next(w);
		break;
	case STEP_DISK:
		world_disk(w, s->arg);
		break;
	case STEP_NEW_DATABASE:
		world_new_database(w);
		break;
	case STEP_PLUGIN:
		w->plugin_absent = s->arg;
		break;
	case STEP_CRASH:
		world_crash(w, s->arg);
		break;
	}
}

static sigjmp_buf died;
static volatile sig_atomic_t playing;

static void on_signal(int sig)
{
	if (playing)
		siglongjmp(died, sig);
	signal(sig, SIG_DFL);
	raise(sig);
}

void history_catch_signals(void)
{
	static const int signals[] = { SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGALRM };
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_NODEFER };
	for (size_t i = 0; i < CK_COUNT(signals); i++)
		sigaction(signals[i], &action, NULL);
}

bool script_play(struct history *h, coverage *cells, next_step *next, FILE *trace)
{
	static struct world world; /* too large for a stack */
	struct world *w = &world;
	const struct step *s;

	h->failure[0] = '\0';
	int sig = sigsetjmp(died, 0);
	if (sig) { /* the memory of the crashed machine is leaked */
		playing = 0;
		alarm(0);
		snprintf(h->failure, sizeof(h->failure), "%s (%s)",
			 sig == SIGALRM ? "there is no end to it" : "the machine died",
			 strsignal(sig));
		return false;
	}
	playing = 1;
	alarm(20);
	world_init(w, &h->config, cells);
	for (unsigned i = 0; !w->failure[0] && (s = next(w, h, i)); i++) {
		if (trace)
			print_step(i + 1, s, trace);
		play_step(w, s);
		if (trace)
			world_print(w, trace);
	}
	if (!w->failure[0])
		world_drain(w);
	memcpy(h->failure, w->failure, sizeof(h->failure));
	world_fini(w);
	playing = 0;
	alarm(0);
	return !h->failure[0];
}

static const struct step *next_written(struct world *w, struct history *h, unsigned i)
{
	(void)w;
	return i < h->n ? &h->steps[i] : NULL;
}

bool history_play(struct history *h, FILE *trace)
{
	return script_play(h, NULL, next_written, trace);
}

/* ---- making it shorter ----------------------------------------------------------------------- */

/* of the same rule and about the same thing; numbers may differ */
static bool same_complaint(const char *a, const char *b)
{
	for (; *a && *b; a++, b++) {
		while (*a >= '0' && *a <= '9')
			a++;
		while (*b >= '0' && *b <= '9')
			b++;
		if (*a != *b)
			return false;
		if (!*a)
			return true;
	}
	return *a == *b;
}

static void without(struct history *h, const struct history *from, unsigned at, unsigned len)
{
	*h = *from;
	memmove(&h->steps[at], &h->steps[at + len], (h->n - at - len) * sizeof(h->steps[0]));
	h->n -= len;
}

void history_shrink(struct history *h)
{
	static struct history shorter;

	for (unsigned len = h->n / 2; len; len = len == 1 ? 0 : (len + 1) / 2)
		for (unsigned at = 0; at + len <= h->n;) {
			without(&shorter, h, at, len);
			if (!history_play(&shorter, NULL) &&
			    same_complaint(shorter.failure, h->failure))
				*h = shorter;
			else
				at++;
		}
	for (unsigned i = 0; i < h->n; i++) { /* whole rounds first */
		shorter = *h;
		if (!shorter.steps[i].more)
			continue;
		shorter.steps[i].more = false;
		if (!history_play(&shorter, NULL) && same_complaint(shorter.failure, h->failure))
			*h = shorter;
	}
	for (unsigned at = 0; at < h->n;) { /* then single steps */
		without(&shorter, h, at, 1);
		if (!history_play(&shorter, NULL) && same_complaint(shorter.failure, h->failure)) {
			*h = shorter;
			at = 0;
		} else {
			at++;
		}
	}
	history_play(h, NULL);
}
