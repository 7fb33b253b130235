/* SPDX-License-Identifier: Apache-2.0 */
/* A small protobuf writer and the two messages, with the field numbers of CRI v1; see request.h. */
#include "src/cli/simulate/request.h"
#include "src/base/mem.h"

/* ---- writing --------------------------------------------------------------------------------- */

static void put(struct ck_simulation_request *r, const void *p, size_t n)
{
	if (r->failed)
		return;
	if (r->len + n > r->room) {
		size_t room = 2 * (r->len + n);
		unsigned char *bytes = ck_realloc(r->bytes, room);
		if (!bytes) {
			r->failed = true;
			return;
		}
		r->bytes = bytes;
		r->room = room;
	}
	memcpy(r->bytes + r->len, p, n);
	r->len += n;
}

static size_t varint(unsigned char out[10], uint64_t value)
{
	size_t n = 0;
	for (; value >= 0x80; value >>= 7)
		out[n++] = (unsigned char)(value | 0x80);
	out[n++] = (unsigned char)value;
	return n;
}

static void put_varint(struct ck_simulation_request *r, uint64_t value)
{
	unsigned char v[10];
	put(r, v, varint(v, value));
}

static void number(struct ck_simulation_request *r, unsigned field, uint64_t value)
{
	if (!value)
		return; /* defaults are not written */
	put_varint(r, field << 3);
	put_varint(r, value);
}

static void text(struct ck_simulation_request *r, unsigned field, const char *value)
{
	put_varint(r, field << 3 | 2);
	put_varint(r, strlen(value));
	put(r, value, strlen(value));
}

/* A message in a message. Its length is only known at its end, and is then inserted before it. */
static size_t begin(struct ck_simulation_request *r, unsigned field)
{
	put_varint(r, field << 3 | 2);
	return r->len;
}

static void end(struct ck_simulation_request *r, size_t begun)
{
	unsigned char v[10];
	size_t len = r->len - begun, n = varint(v, len);
	put(r, v, n); /* makes room */
	if (r->failed)
		return;
	memmove(r->bytes + begun + n, r->bytes + begun, len);
	memcpy(r->bytes + begun, v, n);
}

struct pair {
	const char *key, *value;
};

/* Map entries or KeyValue messages: in both, field 1 is the key and 2 the value. Go's maps are
 * unordered, so neither is their encoding. */
static void shuffled(struct ck_simulation_request *r, unsigned field, struct pair *pairs,
		     unsigned n, const struct ck_simulation_call *call)
{
	for (unsigned i = n; i > 1; i--) {
		unsigned j = (unsigned)ck_simulation_chance_below(
			call->pod->sim, CK_CHANCE_REQUEST,
			(uint64_t)call->pod->number << 32 | call->serial, field << 8 | i, i);
		struct pair swapped = pairs[j];
		pairs[j] = pairs[i - 1];
		pairs[i - 1] = swapped;
	}
	for (unsigned i = 0; i < n; i++) {
		size_t entry = begin(r, field);
		text(r, 1, pairs[i].key);
		text(r, 2, pairs[i].value);
		end(r, entry);
	}
}

static void mount(struct ck_simulation_request *r, const char *container_path,
		  const char *host_path)
{
	size_t m = begin(r, 7);
	text(r, 1, container_path);
	text(r, 2, host_path);
	end(r, m);
}

/* ---- the messages ---------------------------------------------------------------------------- */

static void pod_config(struct ck_simulation_request *r, unsigned field,
		       const struct ck_simulation_call *call)
{
	const struct ck_simulation_pod *pod = call->pod;
	char path[160], seen[64];
	size_t config = begin(r, field);
	size_t part = begin(r, 1); /* metadata */
	text(r, 1, pod->name);
	text(r, 2, pod->uid);
	text(r, 3, "default");
	number(r, 4, call->kind == CK_SANDBOX ? call->attempt : 0);
	end(r, part);
	text(r, 2, pod->name); /* hostname */
	snprintf(path, sizeof(path), "/var/log/pods/default_%s_%s", pod->name, pod->uid);
	text(r, 3, path);
	part = begin(r, 4); /* dns_config */
	text(r, 1, "10.96.0.10");
	text(r, 2, "default.svc.cluster.local");
	text(r, 2, "svc.cluster.local");
	text(r, 3, "ndots:5");
	end(r, part);
	struct pair labels[] = {
		{ "app", "web" },
		{ "pod-template-hash", "6d4b75cb6d" },
		{ "io.kubernetes.pod.name", pod->name },
		{ "io.kubernetes.pod.namespace", "default" },
		{ "io.kubernetes.pod.uid", pod->uid },
	};
	shuffled(r, 6, labels, CK_COUNT(labels), call);
	snprintf(seen, sizeof(seen), "2024-05-01T10:%02u:07.123456789Z",
		 pod->sim->kubelet_life % 60);
	struct pair annotations[] = {
		{ "kubernetes.io/config.seen", seen },
		{ "kubernetes.io/config.source", "api" },
		{ "prometheus.io/scrape", "true" },
	};
	shuffled(r, 7, annotations, CK_COUNT(annotations), call);
	part = begin(r, 8); /* linux */
	snprintf(path, sizeof(path), "/kubepods/burstable/pod%s", pod->uid);
	text(r, 1, path);
	end(r, part);
	end(r, config);
}

static void container_config(struct ck_simulation_request *r, const struct ck_simulation_call *call)
{
	const struct ck_simulation_pod *pod = call->pod;
	char name[16], attempt[16], path[160];
	snprintf(name, sizeof(name), "c%u", call->container);
	snprintf(attempt, sizeof(attempt), "%u", call->attempt);
	size_t config = begin(r, 2);
	size_t part = begin(r, 1); /* metadata */
	text(r, 1, name);
	number(r, 2, call->attempt);
	end(r, part);
	part = begin(r, 2); /* image */
	text(r, 1, "sha256:4f67c83422ec747235357c04556616234e66fc3fa39cb4f40b2d4441ddd8f100");
	text(r, 18, "registry.example/web:1.4");
	end(r, part);
	text(r, 4, "--listen=:8080");
	struct pair envs[] = {
		{ "KUBERNETES_SERVICE_HOST", "10.96.0.1" },
		{ "KUBERNETES_SERVICE_PORT", "443" },
		{ "KUBERNETES_PORT", "tcp://10.96.0.1:443" },
		{ "WEB_SERVICE_HOST", "10.96.12.7" },
		{ "WEB_SERVICE_PORT", "8080" },
		{ "DB_HOST", "db.default.svc" },
		{ "DB_PASSWORD", "not-a-real-one" },
		{ "LOG_LEVEL", "info" },
		{ "POD_NAME", pod->name },
	};
	shuffled(r, 6, envs, CK_COUNT(envs), call);
	snprintf(path, sizeof(path),
		 "/var/lib/kubelet/pods/%s/volumes/kubernetes.io~empty-dir/work", pod->uid);
	mount(r, "/work", path);
	snprintf(path, sizeof(path), "/var/lib/kubelet/pods/%s/etc-hosts", pod->uid);
	mount(r, "/etc/hosts", path);
	snprintf(path, sizeof(path), "/var/lib/kubelet/pods/%s/containers/%s/%08x", pod->uid, name,
		 (unsigned)ck_simulation_chance(pod->sim, CK_CHANCE_REQUEST,
						(uint64_t)pod->number << 32 | call->serial, 0));
	mount(r, "/dev/termination-log", path);
	struct pair labels[] = {
		{ "io.kubernetes.container.name", name },
		{ "io.kubernetes.pod.name", pod->name },
		{ "io.kubernetes.pod.namespace", "default" },
		{ "io.kubernetes.pod.uid", pod->uid },
	};
	shuffled(r, 9, labels, CK_COUNT(labels), call);
	struct pair annotations[] = {
		{ "io.kubernetes.container.hash", "5d2f1a3b" },
		{ "io.kubernetes.container.restartCount", attempt },
		{ "io.kubernetes.container.terminationMessagePath", "/dev/termination-log" },
		{ "io.kubernetes.container.terminationMessagePolicy", "File" },
		{ "io.kubernetes.pod.terminationGracePeriod", "30" },
	};
	shuffled(r, 10, annotations, CK_COUNT(annotations), call);
	snprintf(path, sizeof(path), "%s/%s.log", name, attempt);
	text(r, 11, path);
	end(r, config);
}

int ck_simulation_request_write(struct ck_simulation_request *request,
				const struct ck_simulation_call *call)
{
	request->len = 0;
	request->failed = false;
	if (call->kind == CK_SANDBOX) {
		pod_config(request, 1, call);
	} else {
		text(request, 1, call->sandbox_id);
		container_config(request, call);
		pod_config(request, 3, call);
	}
	return request->failed ? -CK_ENOMEM : 0;
}

void ck_simulation_request_fini(struct ck_simulation_request *request)
{
	free(request->bytes);
	*request = (struct ck_simulation_request){ 0 };
}
