/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_DAEMON_WORLD_H
#define CK_TESTS_DAEMON_WORLD_H
/*
 * A real crikeepd before a real (if simulated) runtime, each a process of its own, in a directory
 * of the test's. Asserts by itself: what is started here starts.
 */
#include <stdbool.h>
#include <sys/types.h>

#define WORLD_PATH 96 /* a socket's path must fit into 107 bytes */

struct world {
	char dir[WORLD_PATH];
	/* crikeepd's */
	char cri[WORLD_PATH], unfiltered[WORLD_PATH], metrics[WORLD_PATH], state[WORLD_PATH];
	/* the simulator's */
	char runtime[WORLD_PATH], runtime_log[WORLD_PATH], runtime_state[WORLD_PATH];
	char config[WORLD_PATH]; /* empty, unless the test writes it */
	char log[WORLD_PATH]; /* crikeepd's standard error, appended to by each life */
	int log_fd;           /* its standard error, instead of log; 0: log. Borrowed */
	bool repeat;          /* with --hand-back=repeat; false: crikeepd's default, offer */
	/* a program with arguments that starts crikeepd, whose path follows; NULL-terminated; NULL:
	 * nobody does. It is then .daemon */
	const char *const *under;
	void (*before)(void); /* called where crikeepd is about to be; NULL: nothing */
	pid_t daemon, sim;    /* 0: not running */
};

void world_init(struct world *w);
/* ends what runs, which must end well: in a build with sanitizers this is where leaks are told */
void world_fini(struct world *w);

/* world_sim - with @parameters ("create=5s"; NULL or "" none) besides listen=, log= and state=;
 * waits for its socket */
void world_sim(struct world *w, const char *parameters);
/* world_daemon - crikeepd before it, with further flags (NULL-terminated; NULL: none); waits until
 * it serves */
void world_daemon(struct world *w, const char *const *flags);
/* world_daemon_fails - the same, but it is expected to end by itself. Its exit status; what it said
 * is in the log */
int world_daemon_fails(struct world *w, const char *const *flags);
/* world_kill - @signal to *@pid, and wait for its end: exit status, or 128 + the signal that ended
 * it. *@pid is 0 then */
int world_kill(pid_t *pid, int signal);

/* its text, to be freed; "" if it is not there */
char *world_file(const char *path);
/* does crikeepd's log have it? */
bool world_logged(const struct world *w, const char *text);
/* lines of the simulator's log that have " what " ("begin sandbox") */
unsigned world_count(const struct world *w, const char *what);
/* world_until - wait until @what has happened @n times at the simulator; fails after @seconds
 * (times CK_TEST_SLOW) */
void world_until(const struct world *w, const char *what, unsigned n, unsigned seconds);
/* @text in the file at @path */
void world_until_in(const struct world *w, const char *path, const char *text, unsigned n,
		    unsigned seconds);
void world_until_logged(const struct world *w, const char *text, unsigned seconds);
char *world_metrics(const struct world *w); /* all, to be freed */
/* of the metrics socket; fails if it is not there */
double world_metric(const struct world *w, const char *name_and_labels);
#endif
