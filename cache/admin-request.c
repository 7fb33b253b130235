/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and answers: texts of three lines, and the directory that passes them on. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cache/admin-request.h"
#include "src/base/error.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/base/host-process.h"

#define DIR_NAME   "wishes"
#define NAME_LEN   32u
#define FILE_MAX   64u   /* a name with a suffix */
#define ANSWER_AGE 3600  /* seconds */
#define LOOKS_MAX  16

/* ---- the text -------------------------------------------------------------------------------- */

static const char *const request_heads[] = {
	[CK_ADMIN_EVICT] = "crikeep-wish 1\nverb evict\nentry ",
	[CK_ADMIN_RELEASE] = "crikeep-wish 1\nverb release\nentry ",
};
static const char *const answer_heads[] = {
	"crikeep-answer 1\ndone no\ntext ",
	"crikeep-answer 1\ndone yes\ntext ",
};

/* What follows @head, up to the newline that ends the text; NULL: the text is another one */
static const char *behind(const char *head, const char *text, size_t len, size_t *ret_len)
{
	size_t n = strlen(head);

	if (len < n + 2 || memcmp(text, head, n) != 0 || text[len - 1] != '\n')
		return NULL;
	*ret_len = len - n - 1;
	return text + n;
}

int ck_admin_request_parse(const char *text, size_t len, struct ck_admin_request *ret_request,
			   struct ck_error *err)
{
	for (enum ck_admin_verb verb = CK_ADMIN_EVICT; verb <= CK_ADMIN_RELEASE; verb++) {
		uint64_t entry = 0;
		size_t n = 0, i = 0;
		const char *digits = behind(request_heads[verb], text, len, &n);
		for (; digits && i < n && isdigit((unsigned char)digits[i]); i++)
			entry = entry * 10 + (uint64_t)(digits[i] - '0');
		/* a row id fits in 18 digits and does not start with 0 */
		if (!digits || i < n || n > 18 || digits[0] == '0')
			continue;
		ret_request->verb = verb; /* it may have a name already */
		ret_request->entry = entry;
		return 0;
	}
	return ck_fail(err, CK_EMALFORMED,
		       "expected 'crikeep-wish 1', 'verb evict' or 'verb release', and 'entry' "
		       "with a number: three lines, and nothing else");
}

int ck_admin_answer_parse(const char *text, size_t len, struct ck_admin_answer *ret_answer,
			  struct ck_error *err)
{
	for (int done = 0; done <= 1; done++) {
		struct ck_admin_answer answer = { .done = done };
		size_t n, i = 0;
		const char *words = behind(answer_heads[done], text, len, &n);
		while (words && i < n && (unsigned char)words[i] >= 0x20 && words[i] != 0x7f)
			i++;
		if (!words || i < n || n >= sizeof(answer.text))
			continue;
		memcpy(answer.text, words, n);
		*ret_answer = answer;
		return 0;
	}
	return ck_fail(err, CK_EMALFORMED,
		       "expected 'crikeep-answer 1', 'done yes' or 'done no', and a short 'text'");
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool is_name(const char *name)
{
	for (size_t i = 0; i < NAME_LEN; i++)
		if (!isxdigit((unsigned char)name[i]) || isupper((unsigned char)name[i]))
			return false;
	return true;
}

/* Is @file one of our names with @suffix? */
static bool has_suffix(const char *file, const char *suffix)
{
	return strlen(file) == NAME_LEN + strlen(suffix) && !strcmp(file + NAME_LEN, suffix) &&
	       is_name(file);
}

static int file_write(int dirfd, const char *name, const char *suffix, const char *text, size_t len,
		      struct ck_error *err)
{
	char tmp[FILE_MAX], file[FILE_MAX];

	snprintf(tmp, sizeof(tmp), "%.*s.tmp", (int)NAME_LEN, name);
	snprintf(file, sizeof(file), "%.*s%s", (int)NAME_LEN, name, suffix);
	unlinkat(dirfd, tmp, 0);
	CK_AUTO_CLOSE int fd = ck_fd_own(
		openat(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
	if (fd < 0)
		return ck_fail_errno(err, CK_EIO, errno, "make '%s/%s'", DIR_NAME, tmp);
	ssize_t n = write(fd, text, len);
	if (n == (ssize_t)len && renameat(dirfd, tmp, dirfd, file) == 0)
		return 0;
	int sys = n >= 0 && n < (ssize_t)len ? ENOSPC : errno;
	unlinkat(dirfd, tmp, 0);
	return ck_fail_errno(err, CK_EIO, sys, "write '%s/%s'", DIR_NAME, file);
}

/* @text has CK_ADMIN_REQUEST_MAX bytes. -CK_ENOTFOUND: it is gone; -CK_EMALFORMED: it is no small
 * regular file. */
static int file_read(int dirfd, const char *name, const char *suffix, char *text, size_t *ret_len,
		     struct ck_error *err)
{
	char file[FILE_MAX];
	struct stat st;

	snprintf(file, sizeof(file), "%.*s%s", (int)NAME_LEN, name, suffix);
	CK_AUTO_CLOSE int fd = openat(dirfd, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && errno == ENOENT)
		return ck_fail(err, CK_ENOTFOUND, "'%s' is gone", file);
	if (fd < 0 || fstat(fd, &st) < 0)
		return ck_fail_errno(err, errno == ELOOP ? CK_EMALFORMED : CK_EIO, errno,
				     "open '%s/%s'", DIR_NAME, file);
	if (!S_ISREG(st.st_mode))
		return ck_fail(err, CK_EMALFORMED, "'%s/%s' is not a file", DIR_NAME, file);
	if (st.st_size > CK_ADMIN_REQUEST_MAX)
		return ck_fail(err, CK_EMALFORMED, "'%s/%s' is longer than %u bytes", DIR_NAME,
			       file, CK_ADMIN_REQUEST_MAX);
	ssize_t n = read(fd, text, CK_ADMIN_REQUEST_MAX); /* a file that grew is cut */
	if (n < 0)
		return ck_fail_errno(err, CK_EIO, errno, "read '%s/%s'", DIR_NAME, file);
	*ret_len = (size_t)n;
	return 0;
}

static int open_dir(const char *state_dir, int *ret_fd, struct ck_error *err)
{
	struct stat st;

	CK_AUTO_CLOSE int state_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (state_fd < 0)
		return ck_fail_errno(err, errno == ENOENT ? CK_ENOTFOUND : CK_EIO, errno, "'%s'",
				     state_dir);
	bool made = mkdirat(state_fd, DIR_NAME, 0700) == 0;
	CK_AUTO_CLOSE int fd = ck_fd_own(
		openat(state_fd, DIR_NAME, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
	if (fd < 0 || (made && fchmod(fd, 0700) < 0) || fstat(fd, &st) < 0)
		return ck_fail_errno(err, CK_EIO, errno, "'%s/%s'", state_dir, DIR_NAME);
	if ((st.st_uid != 0 && st.st_uid != geteuid()) || st.st_mode & 022)
		return ck_fail(err, CK_EIO, "'%s/%s': others can write into it", state_dir,
			       DIR_NAME);
	*ret_fd = CK_TAKE_FD(fd);
	return 0;
}

/* ---- the asking side ------------------------------------------------------------------------- */

int ck_admin_request_make(const char *state_dir, const struct ck_admin_request *request,
			  char *ret_name, struct ck_error *err)
{
	unsigned char random[NAME_LEN / 2];
	char name[NAME_LEN + 1], text[128];
	CK_AUTO_CLOSE int dirfd = -1;
	int r = open_dir(state_dir, &dirfd, err);

	if (r < 0)
		return r;
	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return ck_fail_errno(err, CK_EIO, errno, "make a name");
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(name + 2 * i, 3, "%02x", random[i]);
	int n = snprintf(text, sizeof(text), "%s%llu\n", request_heads[request->verb],
			 (unsigned long long)request->entry);
	r = file_write(dirfd, name, ".wish", text, (size_t)n, err);
	if (r < 0)
		return r;
	memcpy(ret_name, name, sizeof(name));
	return 0;
}

int ck_admin_answer_fetch(const char *state_dir, const char *name,
			  struct ck_admin_answer *ret_answer, struct ck_error *err)
{
	char text[CK_ADMIN_REQUEST_MAX], file[FILE_MAX];
	CK_AUTO_CLOSE int dirfd = -1;
	size_t len = 0;

	if (strlen(name) != NAME_LEN || !is_name(name))
		return ck_fail(err, CK_EINVAL, "'%.40s' is not the name of a request", name);
	int r = open_dir(state_dir, &dirfd, err);
	if (r < 0)
		return r;
	r = file_read(dirfd, name, ".answer", text, &len, err);
	if (r == -CK_ENOTFOUND)
		return 0;
	if (r >= 0)
		r = ck_admin_answer_parse(text, len, ret_answer, err);
	snprintf(file, sizeof(file), "%s.answer", name);
	unlinkat(dirfd, file, 0);
	return r < 0 ? r : 1;
}

/* ---- the owner's side ------------------------------------------------------------------------ */

struct ck_admin_requests {
	int dirfd, inotify;
	bool look;    /* there may be requests that are not in @names */
	size_t n, at; /* names found; the next one to take */
	char names[CK_ADMIN_REQUESTS_MAX][NAME_LEN + 1];
};

int ck_admin_requests_open(const char *state_dir, struct ck_admin_requests **ret_requests,
			   struct ck_error *err)
{
	struct ck_admin_requests *requests = CK_NEW(struct ck_admin_requests);
	char path[64];

	if (!requests)
		return ck_nomem(err);
	requests->dirfd = requests->inotify = -1;
	if (open_dir(state_dir, &requests->dirfd, NULL) >= 0)
		requests->inotify = ck_fd_own(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
	/* by descriptor: this is the directory that was checked */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", requests->dirfd);
	if (requests->inotify >= 0 &&
	    inotify_add_watch(requests->inotify, path, IN_MOVED_TO | IN_ONLYDIR) < 0) {
		close(requests->inotify);
		requests->inotify = -1;
	}
	requests->look = true; /* some may have waited for an owner */
	*ret_requests = requests;
	return 0;
}

int ck_admin_requests_fd(const struct ck_admin_requests *requests)
{
	return requests->inotify;
}

void ck_admin_requests_close(struct ck_admin_requests *requests)
{
	if (!requests)
		return;
	if (requests->inotify >= 0)
		close(requests->inotify);
	if (requests->dirfd >= 0)
		close(requests->dirfd);
	free(requests);
}

static bool drain(int inotify)
{
	char events[4096];
	bool any = false;

	while (inotify >= 0 && read(inotify, events, sizeof(events)) > 0)
		any = true;
	return any;
}

static void remove_if_old(int dirfd, const char *file)
{
	struct stat st;

	if (fstatat(dirfd, file, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_mtime < time(NULL) - ANSWER_AGE)
		unlinkat(dirfd, file, 0);
}

static void look(struct ck_admin_requests *requests)
{
	int fd = requests->dirfd >= 0
			 ? openat(requests->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
			 : -1;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *entry;

	requests->look = false;
	requests->n = requests->at = 0;
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir))) {
		if (has_suffix(entry->d_name, ".answer") || has_suffix(entry->d_name, ".tmp")) {
			remove_if_old(requests->dirfd, entry->d_name);
		} else if (has_suffix(entry->d_name, ".wish")) {
			if (requests->n == CK_ADMIN_REQUESTS_MAX) {
				requests->look = true; /* the rest comes with the next look */
				break;
			}
			memcpy(requests->names[requests->n], entry->d_name, NAME_LEN);
			requests->names[requests->n++][NAME_LEN] = '\0';
		}
	}
	closedir(dir);
}

static void refuse(struct ck_admin_requests *requests, const struct ck_admin_request *request,
		   const struct ck_error *why)
{
	struct ck_admin_answer answer = { 0 };

	snprintf(answer.text, sizeof(answer.text), "%.*s", (int)sizeof(answer.text) - 1, why->text);
	ck_admin_requests_answer(requests, request, &answer);
}

int ck_admin_requests_take(struct ck_admin_requests *requests, struct ck_admin_request *ret_request)
{
	char text[CK_ADMIN_REQUEST_MAX];
	size_t len = 0;

	if (drain(requests->inotify))
		requests->look = true;
	/* Look again while there may be more. Not for ever: a bad one may be impossible to
	 * remove. */
	for (int looks = 0; looks < LOOKS_MAX; looks++) {
		if (requests->at == requests->n && requests->look)
			look(requests);
		while (requests->at < requests->n) {
			struct ck_admin_request request = { 0 };
			struct ck_error err;
			memcpy(request.name, requests->names[requests->at++], sizeof(request.name));
			int r = file_read(requests->dirfd, request.name, ".wish", text, &len, &err);
			if (r == -CK_ENOTFOUND)
				continue; /* withdrawn */
			if (r >= 0)
				r = ck_admin_request_parse(text, len, &request, &err);
			if (r >= 0) {
				*ret_request = request;
				return 1;
			}
			refuse(requests, &request, &err);
		}
	}
	return 0;
}

void ck_admin_requests_answer(struct ck_admin_requests *requests,
			      const struct ck_admin_request *request,
			      const struct ck_admin_answer *answer)
{
	char text[sizeof(answer->text) + 64], file[FILE_MAX];
	const char *words = *answer->text ? answer->text : "-";
	int n = snprintf(text, sizeof(text), "%s", answer_heads[answer->done]);

	for (; *words && n < (int)sizeof(text) - 2; words++)
		text[n++] = (unsigned char)*words < 0x20 || *words == 0x7f ? '?' : *words;
	text[n++] = '\n';
	/* if this fails, there is nobody else to tell */
	file_write(requests->dirfd, request->name, ".answer", text, (size_t)n, NULL);
	snprintf(file, sizeof(file), "%s.wish", request->name);
	unlinkat(requests->dirfd, file, 0);
}
