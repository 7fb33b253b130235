/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside a confined process: what an intruder would try, each in a child of its own that was
 * confined as the daemon is; and the whole life of a cache, which must not notice. The attempts
 * bypass libc where libc would refuse first.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <linux/sockios.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "cache/gauges.h"
#include "cache/store/store-int.h"
#include "cache/admin-request.h"
#include "tests/flow/fixture.h"
#include "src/base/mem.h"
#include "src/rpc/address.h"
#include "src/daemon/confine/confine.h"
#include "src/daemon/metrics.h"

#define S CK_NS_PER_S

/* ---- a place to be confined to --------------------------------------------------------------- */

struct place {
	char top[128];     /* closed to it, but for what lies below */
	char foreign[160]; /* a file of it */
	char state[160], sockets[160], config[160];
	char listen[192], file[192], none[1];
	struct ck_conf conf;
};

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
}

static int set_up(void **state)
{
	struct place *p = calloc(1, sizeof(*p));
	const char *tmp = getenv("TMPDIR");
	assert_non_null(p);
	snprintf(p->top, sizeof(p->top), "%s/confine.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(p->top));
	snprintf(p->foreign, sizeof(p->foreign), "%s/foreign", p->top);
	snprintf(p->state, sizeof(p->state), "%s/state", p->top);
	snprintf(p->sockets, sizeof(p->sockets), "%s/sockets", p->top);
	snprintf(p->config, sizeof(p->config), "%s/config", p->top);
	snprintf(p->listen, sizeof(p->listen), "%s/cri.sock", p->sockets);
	snprintf(p->file, sizeof(p->file), "%s/crikeep.yaml", p->config);
	assert_int_equal(mkdir(p->sockets, 0755), 0);
	assert_int_equal(mkdir(p->config, 0755), 0);
	write_file(p->foreign, "secret");
	write_file(p->file, "cache: {}\n");
	p->conf = (struct ck_conf){
		.confine = true,
		.state_dir = p->state, /* made by ck_confine() */
		.listen = p->listen,
		.unfiltered = p->none,
		.metrics = p->none,
		.file = p->file,
		.cri_socket.group.gid = (gid_t)-1,
		.unfiltered_socket.group.gid = (gid_t)-1,
		.metrics_socket.group.gid = (gid_t)-1,
	};
	*state = p;
	return 0;
}

static int tear_down(void **state)
{
	struct place *p = *state;
	char command[256];
	snprintf(command, sizeof(command), "rm -rf '%s'", p->top);
	assert_int_equal(system(command), 0);
	free(p);
	return 0;
}

static void confine(const struct ck_conf *conf)
{
	struct ck_error err = { 0 };
	char text[256];
	if (ck_confine(conf, text, sizeof(text), &err) < 0) {
		fprintf(stderr, "%s\n", err.text);
		_exit(99);
	}
}

/* ---- rights ---------------------------------------------------------------------------------- */

/* a line of /proc/PID/status, read from outside: "CapEff" */
static const char *status_of(pid_t pid, const char *field)
{
	static char value[64];
	char path[64], line[256];
	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	FILE *in = fopen(path, "r");
	assert_non_null(in);
	value[0] = '\0';
	while (fgets(line, sizeof(line), in))
		if (strncmp(line, field, strlen(field)) == 0 && line[strlen(field)] == ':')
			snprintf(value, sizeof(value), "%.*s",
				 (int)strcspn(line + strlen(field) + 2, "\n"),
				 line + strlen(field) + 2);
	fclose(in);
	return value;
}

static void no_right_is_left(void **state)
{
	const struct place *p = *state;
	int fds[2], end[2];
	char byte;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(pipe(end), 0);
	pid_t pid = fork();
	if (pid == 0) {
		close(end[1]);
		confine(&p->conf);
		_exit(write(fds[1], "x", 1) != 1 || read(end[0], &byte, 1) != 0);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	static const char *const sets[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb" };
	for (size_t i = 0; i < CK_COUNT(sets); i++)
		/* an ordinary user cannot shrink the bounding set */
		if (geteuid() == 0 || strcmp(sets[i], "CapBnd"))
			assert_string_equal(status_of(pid, sets[i]), "0000000000000000");
	assert_string_equal(status_of(pid, "NoNewPrivs"), "1");
#ifndef CK_SANITIZERS
	assert_string_equal(status_of(pid, "Seccomp"), "2");
#endif
	struct rlimit core = { 1, 1 };
	assert_int_equal(prlimit(pid, RLIMIT_CORE, NULL, &core), 0);
	assert_int_equal(core.rlim_max, 0);
	close(end[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(end[0]);
	close(fds[0]);
}

#ifndef CK_SANITIZERS
static void others_of_its_user_cannot_look_into_it(void **state)
{
	const struct place *p = *state;
	int fds[2], end[2];
	char byte, path[64];
	struct stat st;
	assert_int_equal(chmod(p->top, 0777), 0);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(pipe(end), 0);
	pid_t pid = fork();
	if (pid == 0) {
		close(end[1]);
		if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
			_exit(98);
		prctl(PR_SET_DUMPABLE, 1L, 0L, 0L, 0L); /* as after exec */
		confine(&p->conf);
		_exit(write(fds[1], "x", 1) != 1 || read(end[0], &byte, 1) != 0);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &byte, 1), 1);
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)pid);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 0); /* not its user's */
	close(end[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(end[0]);
	close(fds[0]);
}
#endif

static void it_can_be_switched_off(void **state)
{
	struct place *p = *state;
	char text[256];
	p->conf.confine = false;
	assert_int_equal(ck_confine(&p->conf, text, sizeof(text), NULL), 0);
	assert_string_equal(text, "not confined");
	assert_string_equal(status_of(getpid(), "NoNewPrivs"), "0");
}

#ifndef CK_SANITIZERS /* the rest is what such a build leaves out */

/* how a child ended that was confined and then did @attempt: what that returned (0 to 98), or 128 +
 * a signal */
static int inside(const struct place *p, int (*attempt)(const struct place *p))
{
	int status;
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		/* a failed assertion must not lead back into the parent's tests */
		setenv("CMOCKA_TEST_ABORT", "1", 1);
		confine(&p->conf);
		_exit(attempt(p));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

#define DEAD (128 + SIGSYS)

/* ---- paths ----------------------------------------------------------------------------------- */

static int failure(long r)
{
	return r == -1 ? errno : 0;
}

static int open_shadow(const struct place *p)
{
	(void)p;
	return failure(open("/etc/shadow", O_RDONLY));
}

static int open_foreign(const struct place *p)
{
	return failure(open(p->foreign, O_RDONLY));
}

static int open_library(const struct place *p)
{
	(void)p;
	return failure(open("/etc/passwd", O_RDONLY));
}

static int write_foreign(const struct place *p)
{
	return failure(open(p->foreign, O_WRONLY));
}

static int truncate_foreign(const struct place *p)
{
	return failure(open(p->foreign, O_WRONLY | O_TRUNC));
}

static int make_outside(const struct place *p)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/new", p->top);
	return failure(open(path, O_WRONLY | O_CREAT, 0600));
}

static int remove_foreign(const struct place *p)
{
	return failure(unlink(p->foreign));
}

static int list_outside(const struct place *p)
{
	return failure(open(p->top, O_RDONLY | O_DIRECTORY));
}

static int move_out(const struct place *p)
{
	char from[256], to[256];
	snprintf(from, sizeof(from), "%s/mine", p->state);
	snprintf(to, sizeof(to), "%s/mine", p->top);
	int fd = open(from, O_WRONLY | O_CREAT, 0600);
	return fd < 0 ? 98 : failure(rename(from, to));
}

/* opened for reading, which is allowed, and emptied by it */
static int truncate_config(const struct place *p)
{
	return failure(open(p->file, O_RDONLY | O_TRUNC));
}

static int climb_out(const struct place *p)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/../foreign", p->state);
	return failure(open(path, O_RDONLY));
}

static int link_out(const struct place *p)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/link", p->state);
	return failure(symlink(p->foreign, path));
}

static int write_config(const struct place *p)
{
	return failure(open(p->file, O_WRONLY));
}

static int write_beside_socket(const struct place *p)
{
	char path[256];
	snprintf(path, sizeof(path), "%s/file", p->sockets);
	return failure(open(path, O_WRONLY | O_CREAT, 0600));
}

static void other_paths_are_closed(void **state)
{
	const struct place *p = *state;
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) <= 0)
		skip(); /* this kernel has no Landlock */
	if (geteuid() == 0 && access("/etc/shadow", F_OK) == 0)
		assert_int_equal(inside(p, open_shadow), EACCES);
	assert_int_equal(inside(p, open_foreign), EACCES);
	assert_int_equal(inside(p, open_library), EACCES);
	assert_int_equal(inside(p, write_foreign), EACCES);
	assert_int_equal(inside(p, truncate_foreign), EACCES);
	assert_int_equal(inside(p, make_outside), EACCES);
	assert_int_equal(inside(p, remove_foreign), EACCES);
	assert_int_equal(inside(p, list_outside), EACCES);
	assert_int_not_equal(inside(p, move_out), 0); /* EXDEV or EACCES, by ABI */
	assert_int_equal(inside(p, climb_out), EACCES);
	assert_int_equal(inside(p, link_out), ENOSYS);
	assert_int_equal(inside(p, write_config), EACCES);
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) >= 3)
		assert_int_equal(inside(p, truncate_config), EACCES);
	assert_int_equal(inside(p, write_beside_socket), EACCES);
	struct stat st;
	assert_int_equal(stat(p->foreign, &st), 0);
	assert_int_equal(st.st_size, strlen("secret"));
}

static int use_own_paths(const struct place *p)
{
	char path[256], beside[256];
	snprintf(path, sizeof(path), "%s/file", p->state);
	snprintf(beside, sizeof(beside), "%s/crikeep.yaml.other", p->config);
	int fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || ftruncate(fd, 10) < 0 || unlink(path) < 0)
		return 1;
	/* what an editor put beside it */
	if (open(p->file, O_RDONLY) < 0 || open(beside, O_RDONLY) < 0)
		return 2;
	struct ck_error err = { 0 };
	int listener = ck_unix_listen(p->listen, 0660, p->conf.cri_socket.group.gid, &err);
	if (listener < 0) {
		fprintf(stderr, "%s\n", err.text);
		return 3;
	}
	struct stat st;
	if (stat(p->listen, &st) < 0 ||
	    (p->conf.cri_socket.group.gid != (gid_t)-1 &&
	     st.st_gid != p->conf.cri_socket.group.gid))
		return 4;
	if (ck_unix_connect(p->listen, NULL) < 0 || unlink(p->listen) < 0)
		return 5;
	return 0;
}

static void its_own_paths_are_open(void **state)
{
	struct place *p = *state;
	char beside[256];
	snprintf(beside, sizeof(beside), "%s/crikeep.yaml.other", p->config);
	write_file(beside, "cache: {}\n");
	assert_int_equal(inside(p, use_own_paths), 0);
	if (geteuid() == 0) { /* CAP_CHOWN is gone, and its group can still be given to a socket */
		p->conf.cri_socket.group.gid = 12345;
		assert_int_equal(inside(p, use_own_paths), 0);
	}
}

static int read_device(const struct place *p)
{
	(void)p;
	return failure(open("/sys/dev/char/1:3/uevent", O_RDONLY));
}

/* plugins give them by number */
static void names_of_devices_can_be_read(void **state)
{
	struct place *p = *state;
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) <= 0 ||
	    access("/sys/dev/char/1:3/uevent", R_OK) < 0)
		skip();
	assert_int_equal(inside(p, read_device), EACCES);
	p->conf.nri.enabled = true;
	assert_int_equal(inside(p, read_device), EACCES);
	p->conf.nri.adjust = CK_NRI_BEFORE_CREATE;
	assert_int_equal(inside(p, read_device), 0);
}

/* a file directly in /etc, say: its neighbours are not ours */
static void a_directory_of_everybody_stays_closed(void **state)
{
	static char passwd[] = "/etc/passwd";
	struct place *p = *state;
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, 1) <= 0)
		skip();
	p->conf.file = passwd;
	assert_int_equal(inside(p, open_library), 0);
	if (geteuid() == 0 && access("/etc/shadow", F_OK) == 0)
		assert_int_equal(inside(p, open_shadow), EACCES);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static int call_exec(const struct place *p)
{
	(void)p;
	return failure(syscall(SYS_execve, "/bin/true", NULL, NULL));
}

static int call_execveat(const struct place *p)
{
	(void)p;
	return failure(syscall(SYS_execveat, AT_FDCWD, "/bin/true", NULL, NULL, 0));
}

static int call_fork(const struct place *p)
{
	(void)p;
	return failure(fork());
}

static int call_clone_process(const struct place *p)
{
	(void)p;
	return failure(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
}

static int call_clone3(const struct place *p)
{
	struct clone_args args = { .exit_signal = SIGCHLD };
	(void)p;
	return failure(syscall(SYS_clone3, &args, sizeof(args)));
}

static int call_spawn(const struct place *p)
{
	static char path[] = "/bin/true";
	static char *const argv[] = { path, NULL };
	pid_t pid;
	(void)p;
	return posix_spawn(&pid, path, NULL, NULL, argv, NULL);
}

static int call_ptrace(const struct place *p)
{
	(void)p;
	return failure(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static int call_vm_readv(const struct place *p)
{
	char byte;
	struct iovec iov = { &byte, 1 };
	(void)p;
	return failure(process_vm_readv(getppid(), &iov, 1, &iov, 1, 0));
}

static int call_mount(const struct place *p)
{
	return failure(syscall(SYS_mount, "none", p->state, "tmpfs", 0, NULL));
}

static int call_unshare(const struct place *p)
{
	(void)p;
	return failure(syscall(SYS_unshare, 0x10000000 /* CLONE_NEWUSER */));
}

static int call_setuid(const struct place *p)
{
	(void)p;
	return failure(syscall(SYS_setuid, 0));
}

static int call_module(const struct place *p)
{
	(void)p;
	return failure(syscall(SYS_init_module, NULL, 0, ""));
}

static int call_kexec(const struct place *p)
{
	(void)p;
	return failure(syscall(SYS_kexec_load, 0, 0, NULL, 0));
}

static int call_bpf(const struct place *p)
{
	(void)p;
	return failure(syscall(SYS_bpf, 0, NULL, 0));
}

static int call_io_uring(const struct place *p)
{
	(void)p;
	return failure(syscall(SYS_io_uring_setup, 1, NULL));
}

static int call_keyctl(const struct place *p)
{
	(void)p;
	return failure(syscall(SYS_keyctl, 0, 0, 0, 0, 0));
}

static int call_open_by_handle(const struct place *p)
{
	(void)p;
	return failure(syscall(SYS_open_by_handle_at, -1, NULL, 0));
}

static void dangerous_calls_end_the_process(void **state)
{
	static int (*const calls[])(const struct place *p) = {
		call_exec,     call_execveat, call_fork,           call_clone_process,
		call_ptrace,   call_vm_readv, call_mount,          call_unshare,
		call_setuid,   call_module,   call_kexec,          call_bpf,
		call_io_uring, call_keyctl,   call_open_by_handle,
	};
	const struct place *p = *state;
	for (size_t i = 0; i < CK_COUNT(calls); i++) {
		int end = inside(p, calls[i]);
		if (end != DEAD)
			fail_msg("attempt %zu ended with %d", i, end);
	}
	/* dead, or an error: libc chooses the way */
	assert_int_not_equal(inside(p, call_spawn), 0);
}

/*
 * The call itself: where libc takes socketcall no filter sees the family, and of the two calls one
 * alone has an error of its own.
 */
#if defined(__i386__) || defined(__s390__)
#define NO_FAMILY ENOSYS
#else
#define NO_FAMILY EAFNOSUPPORT
#endif

static int socket_of_the_internet(const struct place *p)
{
	(void)p;
	return failure(syscall(SYS_socket, AF_INET, SOCK_STREAM, 0));
}

static int socket_of_netlink(const struct place *p)
{
	(void)p;
	return failure(syscall(SYS_socket, AF_NETLINK, SOCK_RAW, 0));
}

/* a family whose low half looks like AF_UNIX's to a careless comparison, and the other way round */
static int socket_of_two_halves(const struct place *p)
{
	(void)p;
	return failure(syscall(SYS_socket, (long)((1ULL << 32) | AF_INET), SOCK_STREAM, 0));
}

static int socket_of_vsock(const struct place *p)
{
	(void)p;
	return failure(syscall(SYS_socket, 40, SOCK_STREAM, 0));
}

static int memory_to_execute(const struct place *p)
{
	(void)p;
	return failure((long)mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
				  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}

#ifdef __i386__
static int memory_by_the_old_call(const struct place *p)
{
	const unsigned long arguments[] = {
		0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1ul, 0
	};
	(void)p;
	return failure(syscall(SYS_mmap, arguments));
}
#endif

static int memory_made_executable(const struct place *p)
{
	(void)p;
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return page == MAP_FAILED ? 98 : failure(mprotect(page, 4096, PROT_READ | PROT_EXEC));
}

static int signal_to_parent(const struct place *p)
{
	(void)p;
	return failure(kill(getppid(), 0));
}

static int signal_to_all(const struct place *p)
{
	(void)p;
	return failure(syscall(SYS_kill, -1, 0));
}

static int more_core(const struct place *p)
{
	(void)p;
	return failure(setrlimit(RLIMIT_NOFILE, &(struct rlimit){ 10, 10 }));
}

static int be_dumpable(const struct place *p)
{
	(void)p;
	return failure(prctl(PR_SET_DUMPABLE, 1L, 0L, 0L, 0L));
}

static int ask_a_device(const struct place *p)
{
	(void)p;
	return failure(syscall(SYS_ioctl, 0, 0x5412 /* TIOCSTI */, "x"));
}

static int call_of_tomorrow(const struct place *p)
{
	(void)p;
	return failure(syscall(1000));
}

static void what_is_not_listed_fails(void **state)
{
	static const struct {
		int (*attempt)(const struct place *p);
		int error;
	} attempts[] = {
		{ socket_of_the_internet, NO_FAMILY },
		{ socket_of_netlink, NO_FAMILY },
		{ socket_of_two_halves, NO_FAMILY },
		{ socket_of_vsock, NO_FAMILY },
#ifdef __i386__
		{ memory_by_the_old_call, ENOSYS },
#endif
		{ memory_to_execute, EACCES },
		{ memory_made_executable, EACCES },
		{ signal_to_parent, EPERM },
		{ signal_to_all, EPERM },
		{ more_core, EPERM },
		{ be_dumpable, ENOSYS },
		{ ask_a_device, ENOTTY },
		{ call_clone3, ENOSYS },
		{ call_of_tomorrow, ENOSYS },
	};
	for (size_t i = 0; i < CK_COUNT(attempts); i++) {
		int end = inside(*state, attempts[i].attempt);
		if (end != attempts[i].error)
			fail_msg("attempt %zu ended with %d, not %d", i, end, attempts[i].error);
	}
}

/* crikeepd asks it to know whether an answer arrived */
static int ask_what_is_unread(const struct place *p)
{
	int fds[2], unread = 0;
	(void)p;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds) < 0 || write(fds[0], "x", 1) != 1 ||
	    ioctl(fds[0], SIOCOUTQ, &unread) < 0)
		return errno;
	return unread <= 0;
}

static void *thread_main(void *userdata)
{
	*(int *)userdata = 1;
	return NULL;
}

static int start_thread(const struct place *p)
{
	pthread_t thread;
	int ran = 0;
	(void)p;
	return pthread_create(&thread, NULL, thread_main, &ran) || pthread_join(thread, NULL) ||
	       !ran;
}

static int end_oneself(const struct place *p)
{
	(void)p;
	abort();
}

static void what_a_daemon_needs_is_left(void **state)
{
	assert_int_equal(inside(*state, start_thread), 0);
	assert_int_equal(inside(*state, ask_what_is_unread), 0);
	assert_int_equal(inside(*state, end_oneself), 128 + SIGABRT);
}

static void *waiting_main(void *userdata)
{
	char byte;
	return read(*(int *)userdata, &byte, 1) < 0 ? userdata : NULL;
}

/* the launcher, which is forked before, gets a signal from the kernel (PR_SET_PDEATHSIG) */
static void children_hear_of_its_end(void **state)
{
	const struct place *p = *state;
	int fds[2];
	char byte;
	assert_int_equal(pipe(fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, (long)SIGTERM, 0L, 0L, 0L);
			alarm(60); /* if it does not hear */
			_exit(write(fds[1], "x", 1) != 1 || pause());
		}
		close(fds[1]);
		confine(&p->conf);
		_exit(read(fds[0], &byte, 1) != 1);
	}
	close(fds[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	/* nobody holds its other end any more */
	assert_int_equal(poll(&(struct pollfd){ .fd = fds[0] }, 1, 20000), 1);
	close(fds[0]);
}

static void a_second_thread_is_not_overlooked(void **state)
{
	struct place *p = *state;
	struct ck_error err = { 0 };
	char text[256];
	int fds[2];
	pthread_t thread;
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(pthread_create(&thread, NULL, waiting_main, &fds[0]), 0);
	assert_int_equal(ck_confine(&p->conf, text, sizeof(text), &err), -CK_EIO);
	assert_non_null(strstr(err.text, "2 threads"));
	close(fds[1]);
	pthread_join(thread, NULL);
	close(fds[0]);
	assert_string_equal(status_of(getpid(), "NoNewPrivs"), "0");
}

/* ---- the whole life of a cache inside -------------------------------------------------------- */

static struct fixture *fixture;

static bool has_a_thread(void)
{
	struct stat st;
	return stat("/proc/self/task", &st) == 0 && st.st_nlink > 3;
}

static int live(const struct place *p)
{
	struct fixture *f = fixture;
	struct ck_error err = { 0 };
	struct fx_ask web = fx_sandbox("web"), db = fx_sandbox("db");
	char name[64], path[512];
	(void)p;
	fx_open(f);
	if (has_a_thread())
		return 10;
	fx_keep(f, &web, "s1");
	fx_commit(f, &db, "s2");
	fx_reopen(f);
	/* past half a WAL: written back by the owner */
	for (int i = 0; i < 400; i++) {
		struct fx_ask pod = fx_sandbox("many");
		snprintf(name, sizeof(name), "many-%d", i);
		pod.name = pod.uid = name;
		fx_commit(f, &pod, name);
	}
	struct ck_gauges gauges;
	if (ck_gauges_read(f->cache, &gauges) < 0 ||
	    gauges.entries[CK_SANDBOX][CK_STATE_COMMITTED] != 401 || gauges.degraded)
		return 11;
	if (gauges.wal > CK_WAL_LIMIT)
		return 12;
	/* a request, as crikeep(1) leaves it */
	char request_name[33];
	uint64_t row = 0;
	for (const struct ck_entry *e = ck_machine_entries(f->cache->machine); e;
	     e = e->by_row.next)
		row = e->row.state == CK_STATE_KEPT ? e->row.id : row;
	struct ck_admin_request request = { .verb = CK_ADMIN_EVICT, .entry = row };
	if (!row || ck_admin_request_make(f->dir, &request, request_name, &err) < 0)
		return 13;
	fx_advance(f, 5 * S);
	struct ck_admin_answer answer;
	if (ck_admin_answer_fetch(f->dir, request_name, &answer, &err) != 1 || !answer.done ||
	    !fx_was_destroyed(f, "s1"))
		return 14;
	/* somebody writes into the database's file: it is set aside, and a new one made */
	fx_close(f);
	snprintf(path, sizeof(path), "%s/crikeep.db", f->dir);
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || pwrite(fd, "rubbish", 7, 0) != 7)
		return 15;
	close(fd);
	fx_open(f);
	if (ck_gauges_read(f->cache, &gauges) < 0 || gauges.counters.set_aside[0] != 1 ||
	    gauges.degraded)
		return 16;
	fx_keep(f, &web, "s3");
	if (ck_gauges_read(f->cache, &gauges) < 0 || gauges.entries[CK_SANDBOX][CK_STATE_KEPT] != 1)
		return 17;
	fx_close(f);
	return 0;
}

static void lives_at(struct place *p, struct fixture *f)
{
	fixture = f;
	p->conf.state_dir = f->dir;
	int end = inside(p, live);
	fixture_free(f);
	assert_int_equal(end, 0);
}

static void a_cache_lives_inside_in_memory(void **state)
{
	lives_at(*state, fixture_new()); /* on a tmpfs, if there is one */
}

static void a_cache_lives_inside_on_a_disk(void **state) /* with a thread that writes back */
{
	struct place *p = *state;
	struct fixture *f = fixture_new();
	rmdir(f->dir);
	snprintf(f->dir, sizeof(f->dir), "%s", p->state); /* not there yet */
	lives_at(p, f);
}

/* ... and its metrics are served from inside */
static int serve(const struct place *p)
{
	static const struct ck_metrics metrics;
	static char text[CK_METRICS_MAX];
	struct ck_conf conf = p->conf;
	struct ck_metrics_server *server;
	struct ck_loop loop;
	size_t len = 0;
	ssize_t n;
	conf.metrics = conf.listen;
	conf.metrics_socket.mode = 0600;
	memset(&loop, 0, sizeof(loop));
	if (ck_loop_init(&loop, NULL) < 0 ||
	    ck_metrics_serve(&loop, &conf, -1, &metrics, NULL, &server, NULL) < 0)
		return 11;
	int fd = ck_unix_connect(conf.metrics, NULL);
	for (int i = 0; i < 4; i++)
		if (sd_event_run(loop.event, 0) < 0)
			return 12;
	while ((n = read(fd, text + len, sizeof(text) - len - 1)) > 0)
		len += (size_t)n;
	ck_metrics_server_free(server);
	if (!strstr(text, "\nprocess_resident_memory_bytes ") ||
	    !strstr(text, "\nprocess_open_fds ") || !strstr(text, "\nprocess_start_time_seconds "))
		return 13;
	return strcmp(text + len - strlen(CK_METRICS_END), CK_METRICS_END) != 0;
}

static void metrics_are_served_from_inside(void **state)
{
	assert_int_equal(inside(*state, serve), 0);
}

#endif

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_right_is_left, set_up, tear_down),
		cmocka_unit_test_setup_teardown(it_can_be_switched_off, set_up, tear_down),
#ifndef CK_SANITIZERS
		cmocka_unit_test_setup_teardown(others_of_its_user_cannot_look_into_it, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(other_paths_are_closed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(its_own_paths_are_open, set_up, tear_down),
		cmocka_unit_test_setup_teardown(names_of_devices_can_be_read, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_directory_of_everybody_stays_closed, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(dangerous_calls_end_the_process, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_not_listed_fails, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_a_daemon_needs_is_left, set_up, tear_down),
		cmocka_unit_test_setup_teardown(children_hear_of_its_end, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_second_thread_is_not_overlooked, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_cache_lives_inside_in_memory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_cache_lives_inside_on_a_disk, set_up, tear_down),
		cmocka_unit_test_setup_teardown(metrics_are_served_from_inside, set_up, tear_down),
#endif
	};
	return CK_TEST_MAIN(tests);
}
