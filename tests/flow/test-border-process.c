/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What both headers promise to the process they run in: its signals, descriptors, streams, locale,
 * directory and umask stay as they are, it may fork, and nothing remains. A life here is a cache
 * with NRI, one plugin and one pod.
 */
#define CK_TEST_SECONDS 120
#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/flow/nri-world.h"
#include "src/base/mem.h"

#define S CK_NS_PER_S

/* ---- a life ---------------------------------------------------------------------------------- */

/* @disk: not on tmpfs, so that a thread of the store writes back */
static struct nw *begin_life(bool disk)
{
	struct fixture *f = fixture_new();
	struct nw *w = nw_new();
	static char status[160];
	if (disk) {
		rmdir(f->dir);
		snprintf(f->dir, sizeof(f->dir), "%s/state", w->dir);
	}
	snprintf(status, sizeof(status), "%s/status", f->dir);
	w->options.status_path = status;
	nw_over(w, f);
	if (nw_open(w) < 0)
		fail_msg("open: %s", w->err.text);
	f->options.hooks = &w->hooks;
	fx_open(f);
	nw_start(w);
	return w;
}

/* a pod is created, its plugin is told, and it is handed back */
static void serve(struct nw *w, const char *name, const char *id)
{
	struct fx_ask ask = fx_sandbox(name);
	struct ck_reply reply = { .size = sizeof(reply) };
	struct fx_ear ear;
	struct ck_turn *turn = fx_create(w->f, &ask);
	assert_int_equal(fx_make(w->f, turn, &ask, id), CK_WAIT);
	fx_listen(&ear, turn);
	nw_settle(w);
	assert_int_equal(ear.outcome, CK_HAND_BACK);
	assert_int_equal(ck_turn_reply(turn, &reply), 0);
	assert_string_equal(reply.id, id);
	ck_turn_answered(turn, CK_DELIVERED);
	ck_turn_free(turn);
	nw_settle(w);
}

static void end_life(struct nw *w)
{
	struct fixture *f = w->f;
	fx_close(f); /* first, as the header says */
	nw_close(w);
	f->options.hooks = NULL;
	fixture_free(f);
	nw_free(w);
}

static void live(bool disk)
{
	struct nw *w = begin_life(disk);
	struct plugin *p = nw_ready(w, "10-a");
	serve(w, "web", "s1");
	assert_string_equal(plugin_story(p), "Synchronize() RunPodSandbox(s1)");
	nw_advance(w, 2 * S);
	end_life(w);
}

/* ---- nothing is changed ---------------------------------------------------------------------- */

struct process {
	struct sigaction actions[65];
	sigset_t mask;
	mode_t umask;
	char cwd[4096], locale[256];
	char **environ;
	unsigned alarm;
};

static void look_at_process(struct process *p)
{
	memset(p, 0, sizeof(*p));
	for (int i = 1; i < 65; i++)
		sigaction(i, NULL, &p->actions[i]);
	pthread_sigmask(SIG_BLOCK, NULL, &p->mask);
	p->umask = umask(0);
	umask(p->umask);
	assert_non_null(getcwd(p->cwd, sizeof(p->cwd)));
	snprintf(p->locale, sizeof(p->locale), "%s", setlocale(LC_ALL, NULL));
	p->environ = environ;
}

static void assert_same_process(const struct process *before)
{
	static struct process now;
	look_at_process(&now);
	for (int i = 1; i < 65; i++) {
		assert_ptr_equal(before->actions[i].sa_handler, now.actions[i].sa_handler);
		assert_int_equal(before->actions[i].sa_flags, now.actions[i].sa_flags);
		assert_int_equal(sigismember(&before->mask, i), sigismember(&now.mask, i));
	}
	assert_int_equal(before->umask, now.umask);
	assert_string_equal(before->cwd, now.cwd);
	assert_string_equal(before->locale, now.locale);
	assert_ptr_equal(before->environ, now.environ);
}

static void the_process_stays_as_it_was(void **state)
{
	static struct process before;
	/* what we create belongs to us all the same, and nobody else may use it */
	mode_t mask = umask(0777);
	struct stat st;
	char path[300];
	(void)state;
	signal(SIGCHLD, SIG_IGN);
	look_at_process(&before);
	for (int disk = 0; disk <= 1; disk++) {
		struct nw *w = begin_life(disk);
		nw_ready(w, "10-a");
		serve(w, "web", "s1");
		assert_same_process(&before);
		snprintf(path, sizeof(path), "%s/crikeep.db", w->f->dir);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
		assert_int_equal(stat(w->socket, &st), 0);
		assert_int_equal(st.st_mode & 07777, 0600);
		end_life(w);
		assert_same_process(&before);
	}
	signal(SIGCHLD, SIG_DFL);
	umask(mask);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static unsigned assert_closed_by_exec(const bool before[256])
{
	unsigned n = 0;
	for (int fd = 0; fd < 256; fd++) {
		if (before[fd] || !is_open(fd))
			continue;
		n++;
		if (!(fcntl(fd, F_GETFD) & FD_CLOEXEC))
			fail_msg("descriptor %d would be inherited", fd);
	}
	return n;
}

static void every_descriptor_is_closed_by_exec(void **state)
{
	bool before[256];
	(void)state;
	for (int fd = 0; fd < 256; fd++)
		before[fd] = is_open(fd);
	for (int disk = 0; disk <= 1; disk++) {
		const struct ck_nri_launched launched = { .name = "20-b" };
		struct nw *w = begin_life(disk);
		nw_ready(w, "10-a");
		serve(w, "web", "s1");
		/* with a plugin that has connected */
		assert_true(assert_closed_by_exec(before) > 10);
		nw_close(w);
		w->options.launched = &launched;
		w->options.launched_n = 1;
		w->f->options.hooks = NULL;
		fx_close(w->f);
		if (nw_open(w) < 0)
			fail_msg("open: %s", w->err.text);
		fx_open(w->f);
		nw_start(w);
		nw_settle(w);
		assert_true(w->launched[0] >= 0); /* with a plugin that was launched */
		assert_true(assert_closed_by_exec(before) > 10);
		end_life(w);
	}
}

static unsigned long count_pages(void)
{
	unsigned long n = 0;
	FILE *file = fopen("/proc/self/statm", "re");
	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu", &n), 1);
	fclose(file);
	return n;
}

static int count_threads(void)
{
	int n = 0;
	DIR *dir = opendir("/proc/self/task");
	while (dir && readdir(dir))
		n++;
	if (dir)
		closedir(dir);
	return n;
}

/* Every second cache has its own thread, some are on a disk. To close one takes 10 ms, because of
 * its inotify; NRI has none. */
static void open_and_close(struct fixture *f, struct nw *w, unsigned i)
{
	static const char *const names[] = { "crikeep.db", "key", "owner", "wishes", "" };
	char disk[128], path[256];
	snprintf(disk, sizeof(disk), "%s/disk", w->dir);
	f->options.state_dir = i % 50 == 25 ? disk : f->dir;
	for (int again = 0; again < 4; again++) {
		if (w->nri)
			nw_close(w);
		if (nw_open(w) < 0)
			fail_msg("open: %s", w->err.text);
		nw_start(w);
	}
	assert_int_equal(ck_cache_open(&f->options, &f->cache, &f->err), 0);
	if (i % 2)
		assert_int_equal(ck_cache_run_thread(f->cache, &f->err), 0);
	assert_int_equal(ck_nri_process(w->nri, &w->err), 0);
	fx_close(f);
	nw_close(w);
	for (size_t k = 0; i % 50 == 25 && k < CK_COUNT(names); k++) { /* the directory last */
		snprintf(path, sizeof(path), "%s/%s", disk, names[k]);
		assert_int_equal(remove(path), 0);
	}
}

static void hundreds_of_lives_leave_nothing_behind(void **state)
{
	unsigned long rounds = ck_test_rounds(300), warm = 26; /* one life with both threads */
	mallopt(M_ARENA_MAX, 1); /* a second arena would take 64 MiB */
	struct fixture *f = fixture_new();
	struct nw *w = nw_new();
	(void)state;
	/* what is never freed, and stacks that are used again */
	for (unsigned i = 0; i < warm; i++)
		open_and_close(f, w, i);
	int descriptors = ck_test_descriptors(), threads = count_threads();
	unsigned long pages = count_pages();
	for (unsigned i = 0; i < rounds; i++)
		open_and_close(f, w, i);
	assert_int_equal(ck_test_descriptors(), descriptors);
	assert_int_equal(count_threads(), threads);
#ifndef CK_SANITIZERS /* sanitizers find leaks by themselves, and map memory of their own */
	unsigned long after = count_pages();
	/* one page per life is a leak, a few pages of the heap are not */
	if (after > pages + rounds / 2 + 64)
		fail_msg("%lu pages before, %lu after", pages, after);
#else
	(void)pages;
#endif
	fixture_free(f);
	nw_free(w);
}

static void two_caches_live_beside_each_other(void **state)
{
	struct fixture *a = fixture_new(), *b = fixture_new();
	struct fx_ask ask = fx_sandbox("web");
	(void)state;
	b->threaded = true;
	fx_open(a);
	fx_open(b);
	/* the same pod, created twice */
	struct ck_turn *first = fx_create(a, &ask), *second = fx_create(b, &ask);
	assert_int_equal(fx_make(a, first, &ask, "a1"), CK_HAND_BACK);
	assert_int_equal(fx_make(b, second, &ask, "b1"), CK_HAND_BACK);
	ck_turn_free(first);
	ck_turn_free(second);
	fx_close(a);
	fx_commit(b,
		  &(struct fx_ask){ .kind = CK_SANDBOX,
				    .name = "db",
				    .ns = "shop",
				    .uid = "u2",
				    .timeout = 10 * S },
		  "b2");
	fx_close(b);
	assert_string_equal(fx_rows(a), "COMMITTED a1");
	assert_string_equal(fx_rows(b), "COMMITTED b1|COMMITTED b2");
	fixture_free(a);
	fixture_free(b);
}

/* ---- closed streams -------------------------------------------------------------------------- */

/* SQLite opens /dev/null where one of these is missing */
static bool is_nobodys(int fd)
{
	struct stat st, null;
	return fstat(fd, &st) < 0 || (stat("/dev/null", &null) == 0 && st.st_rdev == null.st_rdev);
}

static void live_without_streams(bool disk, int to)
{
	struct nw *w = begin_life(disk);
	struct plugin *p = nw_ready(w, "10-a");
	for (int fd = 0; fd <= 2; fd++) {
		struct stat st;
		/* the other side of the socket is the test, not the library */
		if (is_nobodys(fd) || (fstat(fd, &st) == 0 && p->fd == fd))
			continue;
		dprintf(to, "descriptor %d is the library's\n", fd);
	}
	serve(w, "web", "s1");
	if (strcmp(plugin_story(p), "Synchronize() RunPodSandbox(s1)") || p->wrong[0])
		dprintf(to, "the plugin heard: %s, %s\n", plugin_story(p), p->wrong);
	end_life(w);
}

static void standard_streams_may_be_closed(void **state)
{
	int fds[2], status;
	char text[512] = "";
	(void)state;
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	fflush(NULL);
	pid_t pid = fork(); /* nothing is open yet, so the child may use the library */
	if (pid == 0) {
		int to = fcntl(fds[1], F_DUPFD_CLOEXEC, 100);
		close(0);
		close(1);
		close(2);
		live_without_streams(false, to);
		for (int fd = 0; fd <= 2; fd++)
			close(fd);
		live_without_streams(true, to);
		dprintf(to, "done");
		_exit(0);
	}
	close(fds[1]);
	for (size_t n = 0; n < sizeof(text) - 1;) {
		ssize_t got = read(fds[0], text + n, sizeof(text) - 1 - n);
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_string_equal(text, "done");
}

/* ---- signals --------------------------------------------------------------------------------- */

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
	(void)number;
	signals++;
}

static void close_within(struct nw *w, void *userdata)
{
	w->in_call = NULL;
	plugin_close(userdata);
}

static void a_plugin_that_is_gone_raises_no_sigpipe(void **state)
{
	struct sigaction action = { .sa_handler = count_signal }, before;
	struct nw_sent sent;
	(void)state;
	signals = 0;
	sigaction(SIGPIPE, &action, &before);
	struct nw *w = nw_started();
	nw_run(w, "s1");
	w->in_call_data = nw_ready(w, "10-a");
	/* while the pod is described: the event is sent before anybody checks who is still there */
	w->in_call = close_within;
	nw_send(w, CK_NRI_POST_UPDATE_POD_SANDBOX, "s1", &sent);
	nw_settle(w);
	assert_null(w->in_call);
	assert_int_equal(sent.ended, 1);
	assert_int_equal(nw_connected(w), 0);
	nw_sent_free(&sent);
	nw_free(w);
	sigaction(SIGPIPE, &before, NULL);
	assert_int_equal(signals, 0);
}

static void wait_for_end(struct fixture *f, struct ck_turn *turn, const char *id)
{
	struct ck_reply reply = { .size = sizeof(reply) };
	assert_int_equal(ck_turn_wait(turn, &f->err), CK_HAND_BACK);
	assert_int_equal(ck_turn_reply(turn, &reply), 0);
	assert_string_equal(reply.id, id);
	ck_turn_free(turn);
}

/* SIGUSR1 every 100 us interrupts every system call that can be interrupted */
static void a_storm_of_signals_interrupts_nothing(void **state)
{
	struct sigaction action = { .sa_handler = count_signal }, before;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	const struct itimerspec often = { .it_value.tv_nsec = 100000,
					  .it_interval.tv_nsec = 100000 };
	timer_t timer;
	(void)state;
	signals = 0;
	assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	assert_int_equal(timer_settime(timer, 0, &often, NULL), 0);
	for (int i = 0; i < 3 || (signals < 100 && i < 1000); i++) {
		live(i % 2);
		struct fixture *f = fixture_new();
		struct fx_ask ask = fx_sandbox("web");
		fx_with_hooks(f, "10-cpu");
		f->threaded = true;
		fx_open(f);
		for (int attempt = 0; attempt < 10; attempt++) {
			char id[16];
			snprintf(id, sizeof(id), "s%d", attempt);
			ask.attempt = (uint32_t)attempt;
			struct ck_turn *turn;
			int r = fx_begin(f, &ask, &turn);
			if (r == CK_WAIT) /* until the previous one has gone */
				r = ck_turn_wait(turn, &f->err);
			assert_int_equal(r, CK_CREATE);
			r = fx_make(f, turn, &ask, id);
			assert_true(r == CK_WAIT || r == CK_HAND_BACK);
			wait_for_end(f, turn, id);
			fx_condition(f, id, CK_CONDITION_DEAD);
			assert_int_equal(
				ck_object_seen(f->cache, CK_SANDBOX, id, CK_CONDITION_DEAD), 0);
		}
		fixture_free(f);
	}
	timer_delete(timer);
	sigaction(SIGUSR1, &before, NULL);
	assert_true(signals >= 100);
}

static int show_none(const struct ck_nri_plugin *plugin, void *userdata)
{
	(void)plugin, (void)userdata;
	return 1;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

#ifdef CK_SANITIZERS
#define SMALL   (1024 * 1024) /* frames with sanitizers are larger; this shows at least that it
 * runs */
#define SMALLER SMALL
#else
#define SMALL   (64 * 1024)
#define SMALLER (16 * 1024)
#endif

struct small { /* what is called on a small stack, and what it passes to the next call */
	void (*call)(struct small *small);
	struct nw *w;
	unsigned char bytes[256];
	struct ck_request request;
	struct ck_turn *turn;
	int r;
};

static void small_open(struct small *s)
{
	s->r = ck_nri_open(&s->w->options, &s->w->nri, NULL);
	s->r = s->r < 0 ? s->r : ck_nri_hooks(s->w->nri, &s->w->hooks);
	s->r = s->r < 0 ? s->r : ck_cache_open(&s->w->f->options, &s->w->f->cache, NULL);
	s->r = s->r < 0 ? s->r : ck_nri_start(s->w->nri, s->w->f->cache, NULL);
}

static void small_turn(struct small *s)
{
	s->r = ck_cache_process(s->w->f->cache, NULL);
	s->r = s->r < 0 ? s->r : ck_nri_process(s->w->nri, NULL);
}

static void small_make(struct small *s)
{
	const struct ck_result result = { .size = sizeof(result), .id = "s1" };
	s->r = ck_turn_begin(s->w->f->cache, &s->request, &s->turn, NULL);
	if (s->r == CK_CREATE)
		s->r = ck_turn_stage(s->turn, "sandbox network creation");
	s->r = s->r < 0 ? s->r : ck_turn_finish(s->turn, &result, NULL);
}

static void small_look(struct small *s)
{
	const struct ck_object object = {
		.size = sizeof(object), .kind = CK_SANDBOX, .id = "s1", .pod_name = "web"
	};
	struct ck_view *view;
	const char *id;
	s->r = ck_view_begin(s->w->f->cache, &view, NULL);
	if (s->r < 0)
		return;
	bool right = ck_view_hides(view, &object) == 0;
	right = right && ck_view_resolve(view, CK_SANDBOX, "s", &id) == 1;
	right = right && ck_view_listed(view, CK_SANDBOX, &object, 1) == 0;
	right = right && ck_nri_plugins(s->w->nri, show_none, NULL) == 1;
	s->r = right ? 0 : -CK_EIO;
	ck_view_free(view);
	ck_turn_answered(s->turn, CK_DELIVERED);
	ck_turn_free(s->turn);
}

static void small_close(struct small *s)
{
	s->r = ck_cache_close(s->w->f->cache, NULL);
	s->w->f->cache = NULL;
	ck_nri_close(s->w->nri);
	s->w->nri = NULL;
}

static void *small_main(void *userdata)
{
	struct small *s = userdata;
	s->call(s);
	return NULL;
}

/* the least possible may be more: 128 KiB on arm64 */
static size_t stack_of(size_t wanted)
{
	long least = sysconf(_SC_THREAD_STACK_MIN);
	return least > 0 && (size_t)least > wanted ? (size_t)least : wanted;
}

static int on_small_stack(struct small *s, void (*call)(struct small *small))
{
	pthread_attr_t attr;
	pthread_t thread;
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstacksize(&attr, stack_of(SMALL)), 0);
	s->call = call;
	assert_int_equal(pthread_create(&thread, &attr, small_main, s), 0);
	pthread_join(thread, NULL);
	pthread_attr_destroy(&attr);
	return s->r;
}

static void a_small_stack_is_enough(void **state)
{
	struct fx_ask ask = fx_sandbox("web");
	(void)state;
	for (int disk = 0; disk <= 1; disk++) {
		struct nw *w = begin_life(disk);
		struct fixture *f = w->f;
		struct small s = { .w = w };
		struct fx_ear ear = { .n = 0 };
		fx_close(f);
		nw_close(w); /* an existing database is opened: its pages are checked */
		assert_int_equal(on_small_stack(&s, small_open), 0);
		struct plugin *p = nw_join(w, "10-a");
		for (int i = 0; i < 100 && !p->synchronized; i++) {
			assert_true(on_small_stack(&s, small_turn) >= 0);
			plugin_step(p);
		}
		assert_true(p->synchronized);
		s.request = (struct ck_request){ .size = sizeof(s.request),
						 .kind = CK_SANDBOX,
						 .bytes = s.bytes };
		s.request.len = fx_bytes(&ask, s.bytes, sizeof(s.bytes));
		fx_exists(f, &ask, "s1");
		assert_int_equal(on_small_stack(&s, small_make), CK_WAIT);
		fx_listen(&ear, s.turn);
		for (int i = 0; i < 100 && !ear.n; i++) {
			assert_true(on_small_stack(&s, small_turn) >= 0);
			plugin_step(p);
		}
		assert_int_equal(ear.outcome, CK_HAND_BACK);
		assert_int_equal(on_small_stack(&s, small_look), 0);
		assert_int_equal(on_small_stack(&s, small_close), 0);
		f->options.hooks = NULL;
		fixture_free(f);
		nw_free(w);
	}
}

static struct {
	void (*list)(struct ck_job *job, const struct ck_filter *filter, void *userdata);
	size_t stack;
} asked;

static void measure_stack(struct ck_job *job, const struct ck_filter *filter, void *userdata)
{
	pthread_attr_t attr;
	if (pthread_getattr_np(pthread_self(), &attr) == 0) {
		pthread_attr_getstacksize(&attr, &asked.stack);
		pthread_attr_destroy(&attr);
	}
	asked.list(job, filter, userdata);
}

/* if small stacks are the host's default, the library's threads still have larger ones */
static void its_threads_have_stacks_of_their_own(void **state)
{
	pthread_attr_t attr, before;
	struct nw *w = nw_new();
	struct fixture *f = fixture_new();
	struct fx_ask ask = fx_sandbox("web");
	char disk[100];
	(void)state;
	assert_int_equal(pthread_getattr_default_np(&before), 0);
	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstacksize(&attr, stack_of(SMALLER)), 0);
	assert_int_equal(pthread_setattr_default_np(&attr), 0);
	rmdir(f->dir);
	snprintf(disk, sizeof(disk), "%s/state", w->dir);
	snprintf(f->dir, sizeof(f->dir), "%s", disk);
	f->threaded = true;
	asked.list = f->host.list;
	f->host.list = measure_stack; /* in the library's thread */
	fx_open(f);
	fx_commit(f, &ask, "s1");
	fx_close(f);
	assert_true(asked.stack >= CK_THREAD_STACK);
	assert_int_equal(pthread_setattr_default_np(&before), 0);
	assert_string_equal(fx_rows(f), "COMMITTED s1");
	fixture_free(f);
	nw_free(w);
	pthread_attr_destroy(&before);
	pthread_attr_destroy(&attr);
}

/* ---- fork ------------------------------------------------------------------------------------ */

static void answered(const struct ck_nri_result *result, void *userdata)
{
	(void)result, (void)userdata;
}

static int nri_in_child(struct nw *w, struct ck_nri_job *job)
{
	const struct ck_told told = {
		.size = sizeof(told), .kind = CK_SANDBOX, .id = "s2", .pod_name = "x"
	};
	const struct ck_nri_call call = nw_call_of(w, CK_NRI_POST_UPDATE_POD_SANDBOX, "s1");
	struct ck_hooks hooks = { .size = sizeof(hooks) };
	struct ck_cache *cache = NULL;
	char names[64];
	const int answers[] = {
		ck_nri_start(w->nri, cache, NULL),
		ck_nri_fd(w->nri),
		ck_nri_process(w->nri, NULL),
		ck_nri_hooks(w->nri, &hooks),
		ck_nri_send(w->nri, &call, answered, NULL, NULL),
		ck_nri_adjusting(w->nri, names, sizeof(names)),
		ck_nri_plugins(w->nri, show_none, NULL),
		w->hooks.choose(&told, names, sizeof(names), w->hooks.userdata),
	};
	for (size_t i = 0; i < CK_COUNT(answers); i++)
		if (answers[i] != -CK_EFORK)
			return (int)i + 1;
	if (ck_nri_timeout(w->nri) != UINT64_MAX ||
	    ck_nri_listens(w->nri, CK_NRI_RUN_POD_SANDBOX, CK_SANDBOX, "s1"))
		return 90;
	w->hooks.released(&told, w->hooks.userdata);
	ck_nri_job_done(job, 0, NULL, 0);
	ck_nri_stop(w->nri);
	ck_nri_close(w->nri);
	return access(w->socket, F_OK) ? 91 : 0; /* it belongs to the parent */
}

static void a_child_cannot_touch_nri(void **state)
{
	int status;
	(void)state;
	struct nw *w = nw_started();
	struct plugin *p = nw_ready(w, "10-a");
	struct nw_sent sent;
	nw_run(w, "s1");
	w->hold[NW_DESCRIBE] = true;
	nw_send(w, CK_NRI_STOP_POD_SANDBOX, "s1", &sent);
	nw_settle(w);
	assert_int_equal(w->held_n, 1);
	pid_t pid = fork();
	if (pid == 0)
		_exit(nri_in_child(w, w->held[0].job));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		fail_msg("in the child call %d was not refused", WEXITSTATUS(status));
	assert_int_equal(nw_release(w, NW_DESCRIBE), 1);
	nw_settle(w);
	assert_int_equal(sent.ended, 1);
	assert_int_equal(plugin_count(p, CK_NRI_STOP_POD_SANDBOX, "s1"), 1);
	assert_false(p->ended);
	nw_sent_free(&sent);
	nw_free(w);
}

/* its descriptors, locks and memory go with it, and those of the parent stay */
static void a_child_may_end_as_it_likes(void **state)
{
	int fds[2], status;
	(void)state;
	struct nw *w = begin_life(true);
	struct plugin *p = nw_ready(w, "10-a");
	serve(w, "web", "s1");
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
#ifdef CK_SANITIZERS
		_exit(0);
#else
		exit(0); /* with everything that is registered for it */
#endif
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	pid = fork();
	if (pid == 0)
		kill(getpid(), SIGKILL);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	serve(w, "db", "s2");
	assert_string_equal(plugin_story(p), "Synchronize() RunPodSandbox(s1) RunPodSandbox(s2)");

	/* a child that lives on keeps the directory owned until it ends */
	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		char byte;
		close(fds[1]);
		_exit(read(fds[0], &byte, 1) == 0 ? 0 : 1);
	}
	close(fds[0]);
	fx_close(w->f);
	w->f->options.hooks = NULL;
	assert_int_equal(ck_cache_open(&w->f->options, &w->f->cache, &w->f->err), -CK_EOWNED);
	w->f->cache = NULL;
	close(fds[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fx_open(w->f);
	assert_null(strstr(w->f->log, "damaged"));
	assert_string_equal(fx_rows(w->f), "COMMITTED s1|COMMITTED s2");
	end_life(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_process_stays_as_it_was),
		cmocka_unit_test(every_descriptor_is_closed_by_exec),
		cmocka_unit_test(hundreds_of_lives_leave_nothing_behind),
		cmocka_unit_test(two_caches_live_beside_each_other),
		cmocka_unit_test(standard_streams_may_be_closed),
		cmocka_unit_test(a_plugin_that_is_gone_raises_no_sigpipe),
		cmocka_unit_test(a_storm_of_signals_interrupts_nothing),
		cmocka_unit_test(a_small_stack_is_enough),
		cmocka_unit_test(its_threads_have_stacks_of_their_own),
		cmocka_unit_test(a_child_cannot_touch_nri),
		cmocka_unit_test(a_child_may_end_as_it_likes),
	};
	return CK_TEST_MAIN(tests);
}
