/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crikeep exporter: serve crikeepd's metrics over HTTP. It is a separate process that only needs
 * the right to connect to one socket. So crikeepd itself needs neither an HTTP server nor an
 * internet socket. The metrics are passed on unparsed.
 */
#include <errno.h>
#include <microhttpd.h>
#include <netdb.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "src/base/bytes.h"
#include "src/base/limits.h"
#include "src/base/mem.h"
#include "src/cli/cli.h"
#include "src/cli/daemon-metrics.h"

#define LISTEN_DEFAULT "127.0.0.1:9750"
#define CLIENTS_MAX    16u
#define CLIENT_IDLE    10u        /* seconds */
#define CLIENT_MEMORY  ((size_t)16384) /* for one request */

enum { OPT_LISTEN = 0x500, OPT_ONCE, OPT_SOCKET };

struct arguments {
	const char *listen, *socket;
	bool once;
};

static const struct argp_option options[] = {
	{ "listen", OPT_LISTEN, "ADDRESS", 0,
	  "HOST:PORT or [HOST]:PORT, numbers only; without HOST, only this machine can connect "
	  "(default: " LISTEN_DEFAULT ")",
	  0 },
	{ "once", OPT_ONCE, NULL, 0, "Print the metrics once instead of serving them", 0 },
	{ "socket", OPT_SOCKET, "PATH", 0,
	  "crikeepd's metrics socket (default: " CK_METRICS_SOCKET ")", 0 },
	{ 0 },
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct arguments *args = state->input;
	switch (key) {
	case OPT_LISTEN:
		args->listen = arg;
		return 0;
	case OPT_ONCE:
		args->once = true;
		return 0;
	case OPT_SOCKET:
		if (strlen(arg) == 0 || strlen(arg) >= sizeof(((struct sockaddr_un *)0)->sun_path))
			argp_error(state, "the path of a socket must have 1 to %zu bytes",
				   sizeof(((struct sockaddr_un *)0)->sun_path) - 1);
		args->socket = arg;
		return 0;
	case ARGP_KEY_ARG:
		argp_error(state, "unexpected argument '%s'", arg);
		return EINVAL;
	}
	return ARGP_ERR_UNKNOWN;
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

/* @text: taken */
static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type,
			      void *text, size_t len)
{
	struct MHD_Response *response =
		MHD_create_response_from_buffer(len, text, MHD_RESPMEM_MUST_FREE);
	if (!response) {
		free(text);
		return MHD_NO; /* the connection is closed */
	}
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	enum MHD_Result r = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return r;
}

static enum MHD_Result answer_text(struct MHD_Connection *connection, unsigned status,
				   const char *fmt, ...) CK_PRINTF(3, 4);

static enum MHD_Result answer_text(struct MHD_Connection *connection, unsigned status,
				   const char *fmt, ...)
{
	char *text;
	va_list ap;
	va_start(ap, fmt);
	int n = vasprintf(&text, fmt, ap);
	va_end(ap);
	return n < 0 ? MHD_NO
		     : answer(connection, status, "text/plain; charset=utf-8", text, (size_t)n);
}

static enum MHD_Result on_request(void *userdata, struct MHD_Connection *connection,
				  const char *url, const char *method, const char *version,
				  const char *upload, size_t *upload_len, void **state)
{
	const struct arguments *args = userdata;
	struct ck_bytes text = { 0 };
	struct ck_error err = { 0 };
	/* no body is read: libmicrohttpd closes the connection after the answer */
	(void)version, (void)upload, (void)upload_len, (void)state;
	/* HEAD has the status and length of GET: libmicrohttpd leaves out the text */
	bool reads = !strcmp(method, MHD_HTTP_METHOD_GET) || !strcmp(method, MHD_HTTP_METHOD_HEAD);
	if (!reads || strcmp(url, "/metrics"))
		return answer_text(connection, MHD_HTTP_NOT_FOUND, "not found; try GET /metrics\n");
	if (ck_daemon_metrics_fetch(args->socket, &text, &err) < 0) {
		ck_bytes_free(&text);
		return answer_text(connection, MHD_HTTP_SERVICE_UNAVAILABLE,
				   "crikeepd at '%s': %s\n", args->socket, err.text);
	}
	return answer(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8", text.p,
		      text.len);
}

/* @listen: "HOST:PORT", "[HOST]:PORT", ":PORT" or "PORT". Return: a list of one, or NULL after an
 * error message */
static struct addrinfo *resolve(const char *listen)
{
	const struct addrinfo hints = { .ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
					.ai_socktype = SOCK_STREAM };
	const char *colon = strrchr(listen, ':'), *port = colon ? colon + 1 : listen;
	size_t len = colon ? (size_t)(colon - listen) : 0;
	bool bracketed = len >= 2 && listen[0] == '[' && listen[len - 1] == ']';
	CK_AUTO_FREE char *host = ck_must(ck_strndup(listen + bracketed, len - 2 * bracketed));
	struct addrinfo *found = NULL;
	/* without brackets, the last part of an IPv6 address could be taken for the port */
	bool clear = bracketed || !strchr(host, ':');
	bool is_number = *port && strspn(port, "0123456789") == strlen(port) && strlen(port) <= 5 &&
			 atoi(port) <= UINT16_MAX;
	int r = clear && is_number ? getaddrinfo(*host ? host : "127.0.0.1", port, &hints, &found)
				   : EAI_NONAME;
	if (r == 0)
		return found;
	ck_print_error("invalid address '%s'; expected HOST:PORT or [HOST]:PORT in numbers",
		       listen);
	return NULL;
}

static bool is_loopback(const struct sockaddr *address)
{
	if (address->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)(const void *)address)
				     ->sin_addr.s_addr) >>
			       24 ==
		       127;
	return IN6_IS_ADDR_LOOPBACK(
		&((const struct sockaddr_in6 *)(const void *)address)->sin6_addr);
}

/* Return: the socket, and in @name its address with the real port: port 0 means any free one */
static int listen_at(const char *listen_text, char *name, size_t size)
{
	struct sockaddr_storage address;
	socklen_t len = sizeof(address);
	char host[NI_MAXHOST], port[NI_MAXSERV];
	const int yes = 1;
	struct addrinfo *where = resolve(listen_text);
	if (!where)
		return -1;
	bool loopback = is_loopback(where->ai_addr);
	CK_AUTO_CLOSE int fd =
		socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	bool listens = fd >= 0 && bind(fd, where->ai_addr, where->ai_addrlen) == 0 &&
		       listen(fd, SOMAXCONN) == 0;
	int e = errno;
	freeaddrinfo(where);
	if (!listens) {
		ck_print_error("cannot listen on %s: %s", listen_text, strerror(e));
		return -1;
	}
	if (getsockname(fd, (struct sockaddr *)&address, &len) < 0 ||
	    getnameinfo((const struct sockaddr *)&address, len, host, sizeof(host), port,
			sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		snprintf(name, size, "%s", listen_text);
	else
		snprintf(name, size, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
	if (!loopback)
		ck_cli_hint("other machines can read these metrics; they contain no names of pods, "
			    "but their numbers");
	return CK_TAKE_FD(fd);
}

static int print_once(const struct arguments *args)
{
	struct ck_bytes text = { 0 };
	struct ck_error err = { 0 };
	int r = ck_daemon_metrics_fetch(args->socket, &text, &err);
	if (r < 0)
		ck_print_error("crikeepd at '%s': %s", args->socket, err.text);
	else
		fwrite(text.p, 1, text.len, stdout);
	ck_bytes_free(&text);
	return r < 0 ? CK_EXIT_TROUBLE : CK_EXIT_YES;
}

static int serve(struct arguments *args)
{
	char name[NI_MAXHOST + NI_MAXSERV + 4];
	sigset_t end;
	int signal;
	int fd = listen_at(args->listen, name, sizeof(name));
	if (fd < 0)
		return CK_EXIT_TROUBLE;
	sigemptyset(&end);
	sigaddset(&end, SIGTERM);
	sigaddset(&end, SIGINT);
	sigprocmask(SIG_BLOCK, &end, NULL); /* the server's thread inherits it */
	const unsigned how = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_AUTO;
	struct MHD_Daemon *server = MHD_start_daemon(
		how, 0, NULL, NULL, on_request, args, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, CLIENTS_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
		CLIENT_IDLE, MHD_OPTION_CONNECTION_MEMORY_LIMIT, CLIENT_MEMORY, MHD_OPTION_END);
	if (!server) {
		ck_print_error("cannot start the HTTP server");
		close(fd);
		return CK_EXIT_TROUBLE;
	}
	ck_cli_hint("serving metrics of %s at http://%s/metrics", args->socket, name);
	sigwait(&end, &signal);
	MHD_stop_daemon(server); /* closes the socket, too */
	return CK_EXIT_YES;
}

int ck_cmd_exporter(int argc, char **argv)
{
	static const struct argp argp = {
		.options = options,
		.parser = parse,
		.doc = "Serve crikeepd's metrics over HTTP at /metrics, for Prometheus, until "
		       "SIGTERM or SIGINT. Any user who may connect to crikeepd's metrics socket "
		       "can run it. If crikeepd does not answer, the HTTP status is 503 and the "
		       "text says why."
		       "\v"
		       "Examples:\n"
		       "  crikeep exporter\n"
		       "  crikeep exporter --listen 192.0.2.7:9750\n"
		       "  crikeep exporter --once",
		.children = ck_cli_children,
	};
	struct arguments args = { .listen = LISTEN_DEFAULT, .socket = CK_METRICS_SOCKET };
	if (argp_parse(&argp, argc, argv, 0, NULL, &args))
		return CK_EXIT_TROUBLE;
	return args.once ? print_once(&args) : serve(&args);
}
