/* SPDX-License-Identifier: Apache-2.0 */
/*
 * seccomp: the system calls that the daemon may use. Others fail with ENOSYS, as on an old kernel,
 * so that libraries fall back to older calls. Calls that only injected code would try end the
 * process (SIGSYS). The tables have the names of calls: a name that this machine or this libseccomp
 * does not know needs no rule.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "src/base/mem.h"
#include "src/daemon/confine/confine-int.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif

static const char *const allowed[] = {
	/* the loop */
	"epoll_create1",
	"epoll_ctl",
	"epoll_pwait",
	"epoll_pwait2",
	"epoll_wait",
	"eventfd2",
	"inotify_add_watch",
	"inotify_init1",
	"inotify_rm_watch",
	"pipe2",
	"poll",
	"ppoll",
	"signalfd4",
	"timerfd_create",
	"timerfd_gettime",
	"timerfd_settime",
	/* sockets; socket and socketpair below */
	"accept",
	"accept4",
	"bind",
	"connect",
	"getpeername",
	"getsockname",
	"getsockopt",
	"listen",
	"recvfrom",
	"recvmsg",
	"sendmsg",
	"sendto",
	"setsockopt",
	"shutdown",
	/* files; Landlock says which */
	"access",
	"chdir",
	"chmod",
	"chown",
	"close",
	"close_range",
	"dup",
	"dup2",
	"dup3",
	"faccessat",
	"faccessat2",
	"fallocate",
	"fchmod",
	"fchmodat",
	"fchown",
	"fchownat",
	"fcntl",
	"fdatasync",
	"flock",
	"fstat",
	"fstatfs",
	"fsync",
	"ftruncate",
	"getcwd",
	"getdents64",
	"lchown",
	"lseek",
	"lstat",
	"mkdir",
	"mkdirat",
	"newfstatat",
	"open",
	"openat",
	"pread64",
	"preadv",
	"pwrite64",
	"pwritev",
	"read",
	"readlink",
	"readlinkat",
	"readv",
	"rename",
	"renameat",
	"renameat2",
	"rmdir",
	"stat",
	"statfs",
	"statx",
	"umask",
	"unlink",
	"unlinkat",
	"utime",
	"utimensat",
	"write",
	"writev",
	/* memory; mmap and mprotect below */
	"brk",
	"madvise",
	"mlock",
	"mremap",
	"munlock",
	"munmap",
	/* threads (the store has one on a disk) and signals; clone, kill and tgkill below */
	"exit",
	"exit_group",
	"futex",
	"membarrier",
	"restart_syscall",
	"rseq",
	"rt_sigaction",
	"rt_sigpending",
	"rt_sigprocmask",
	"rt_sigreturn",
	"rt_sigtimedwait",
	"sched_getaffinity",
	"sched_yield",
	"set_robust_list",
	"set_tid_address",
	"sigaltstack",
	"wait4",
	"waitid",
	/* time, and ids of this process */
	"clock_getres",
	"clock_gettime",
	"clock_nanosleep",
	"getegid",
	"geteuid",
	"getgid",
	"getgroups",
	"getpid",
	"getppid",
	"getrandom",
	"getrusage",
	"gettid",
	"gettimeofday",
	"getuid",
	"nanosleep",
	"sysinfo",
	"time",
	"uname",
	/* the same where a long has 32 bits */
	"_llseek",
	"chown32",
	"clock_getres_time64",
	"clock_gettime64",
	"clock_nanosleep_time64",
	"fchown32",
	"fcntl64",
	"fstat64",
	"fstatat64",
	"fstatfs64",
	"ftruncate64",
	"futex_time64",
	"getegid32",
	"geteuid32",
	"getgid32",
	"getgroups32",
	"getuid32",
	"lchown32",
	"lstat64",
	"ppoll_time64",
	"recv",
	"rt_sigtimedwait_time64",
	"send",
	"sigreturn",
	"stat64",
	"statfs64",
	"timerfd_gettime64",
	"timerfd_settime64",
	"ugetrlimit",
	"utimensat_time64",
};

static const char *const fatal[] = {
	/* another program, another process */
	"execve",
	"execveat",
	"fork",
	"vfork",
	"ptrace",
	"process_vm_readv",
	"process_vm_writev",
	"process_madvise",
	"kcmp",
	"pidfd_getfd",
	"pidfd_send_signal",
	/* more rights */
	"capset",
	"personality",
	"setfsgid",
	"setfsuid",
	"setgid",
	"setgroups",
	"setregid",
	"setresgid",
	"setresuid",
	"setreuid",
	"setuid",
	"add_key",
	"keyctl",
	"request_key",
	"open_by_handle_at",
	"mknod",
	"mknodat",
	/* another view of the file system */
	"chroot",
	"fsconfig",
	"fsmount",
	"fsopen",
	"fspick",
	"mount",
	"mount_setattr",
	"move_mount",
	"open_tree",
	"pivot_root",
	"setns",
	"umount",
	"umount2",
	"unshare",
	/* the machine */
	"acct",
	"adjtimex",
	"clock_adjtime",
	"clock_settime",
	"delete_module",
	"finit_module",
	"init_module",
	"ioperm",
	"iopl",
	"kexec_file_load",
	"kexec_load",
	"modify_ldt",
	"quotactl",
	"quotactl_fd",
	"reboot",
	"setdomainname",
	"sethostname",
	"settimeofday",
	"swapoff",
	"swapon",
	"syslog",
	/* ways around filters, and the kernel's weakest parts */
	"bpf",
	"io_uring_enter",
	"io_uring_register",
	"io_uring_setup",
	"perf_event_open",
	"userfaultfd",
};

static int rule(scmp_filter_ctx filter, uint32_t action, const char *call,
		const struct scmp_arg_cmp *args, unsigned n)
{
	int number = seccomp_syscall_resolve_name(call);
	return number == __NR_SCMP_ERROR ? 0
					 : seccomp_rule_add_array(filter, action, number, n, args);
}

static int rules(scmp_filter_ctx filter, uint32_t action, const char *const *calls, size_t n)
{
	int r = 0;
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = rule(filter, action, calls[i], NULL, 0);
	return r;
}

/* @call: allowed if its argument compares as in @yes, and else @otherwise */
static int either(scmp_filter_ctx filter, const char *call, struct scmp_arg_cmp yes,
		  uint32_t otherwise, struct scmp_arg_cmp no)
{
	int r = rule(filter, SCMP_ACT_ALLOW, call, &yes, 1);
	return r < 0 ? r : rule(filter, otherwise, call, &no, 1);
}

/* The flags of clone3 are in memory, which a filter cannot read: with ENOSYS, libc uses clone. */
static int rules_of_threads(scmp_filter_ctx filter)
{
#if defined(__s390__)
	const unsigned flags = 1;
#else
	const unsigned flags = 0;
#endif
	return either(filter, "clone",
		      SCMP_CMP(flags, SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD),
		      SCMP_ACT_KILL_PROCESS, SCMP_CMP(flags, SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
}

/* Comparisons have their unused second datum, because clang warns without it. */

/* only to this process: abort() and raise() */
static int rules_of_signals(scmp_filter_ctx filter)
{
	static const char *const calls[] = { "kill", "tgkill" };
	scmp_datum_t pid = (scmp_datum_t)getpid();
	int r = 0;
	for (size_t i = 0; r >= 0 && i < CK_COUNT(calls); i++)
		r = either(filter, calls[i], SCMP_A0_32(SCMP_CMP_EQ, pid, 0), SCMP_ACT_ERRNO(EPERM),
			   SCMP_A0_32(SCMP_CMP_NE, pid, 0));
	return r;
}

static int rules_of_memory(scmp_filter_ctx filter)
{
	static const char *const calls[] = {
#ifndef __i386__ /* there its arguments are in memory, for a filter to miss; libc uses mmap2 */
		"mmap",
#endif
		"mmap2",
		"mprotect",
	};
	int r = 0;
	for (size_t i = 0; r >= 0 && i < CK_COUNT(calls); i++) /* no new code */
		r = either(filter, calls[i], SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, 0),
			   SCMP_ACT_ERRNO(EACCES),
			   SCMP_A2(SCMP_CMP_MASKED_EQ, PROT_EXEC, PROT_EXEC));
	return r;
}

static int rules_of_sockets(scmp_filter_ctx filter)
{
	static const char *const calls[] = { "socket", "socketpair" };
	int r = 0;
	for (size_t i = 0; r >= 0 && i < CK_COUNT(calls); i++) {
		struct scmp_arg_cmp local = SCMP_A0_32(SCMP_CMP_EQ, AF_UNIX, 0);
		/*
		 * A number below zero is a name for two calls, as on i386. libc uses socketcall,
		 * whose arguments a filter cannot read, so all families stay allowed there. The
		 * rule applies to the other call.
		 */
		if (seccomp_syscall_resolve_name(calls[i]) < 0)
			r = rule(filter, SCMP_ACT_ALLOW, calls[i], &local, 1);
		else /* the error of a kernel without that family */
			r = either(filter, calls[i], local, SCMP_ACT_ERRNO(EAFNOSUPPORT),
				   SCMP_A0_32(SCMP_CMP_NE, AF_UNIX, 0));
	}
	return r;
}

static int rules_of_others(scmp_filter_ctx filter)
{
	static const scmp_datum_t names[] = { PR_SET_NAME, PR_GET_NAME, PR_SET_VMA };
	int r = 0;
	/* a thread's name, and that of its heap */
	for (size_t i = 0; r >= 0 && i < CK_COUNT(names); i++) {
		struct scmp_arg_cmp name = SCMP_A0_32(SCMP_CMP_EQ, names[i], 0);
		r = rule(filter, SCMP_ACT_ALLOW, "prctl", &name, 1);
	}
	if (r >= 0) /* limits may be read, but not set */
		r = either(filter, "prlimit64", SCMP_A2_64(SCMP_CMP_EQ, 0, 0),
			   SCMP_ACT_ERRNO(EPERM), SCMP_A2_64(SCMP_CMP_NE, 0, 0));
	/* bytes that the peer has not read; other requests are stdio that looks for a terminal */
	if (r >= 0)
		r = either(filter, "ioctl", SCMP_A1_32(SCMP_CMP_EQ, SIOCOUTQ, 0),
			   SCMP_ACT_ERRNO(ENOTTY), SCMP_A1_32(SCMP_CMP_NE, SIOCOUTQ, 0));
	return r;
}

int ck_confine_calls(struct ck_error *err)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	if (!filter)
		return ck_nomem(err);
	int r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (r >= 0)
		/* a search tree, because the list is long */
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_OPTIMIZE, 2);
	if (r >= 0)
		r = rules(filter, SCMP_ACT_ALLOW, allowed, CK_COUNT(allowed));
	if (r >= 0)
		r = rules(filter, SCMP_ACT_KILL_PROCESS, fatal, CK_COUNT(fatal));
	if (r >= 0)
		r = rules_of_threads(filter);
	if (r >= 0)
		r = rules_of_signals(filter);
	if (r >= 0)
		r = rules_of_memory(filter);
	if (r >= 0)
		r = rules_of_sockets(filter);
	if (r >= 0)
		r = rules_of_others(filter);
	if (r >= 0)
		r = seccomp_load(filter);
	seccomp_release(filter);
	return r < 0 ? ck_fail_errno(err, CK_EIO, -r, "seccomp") : 0;
}
