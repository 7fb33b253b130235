// SPDX-License-Identifier: Apache-2.0
//
// A host in C++11: callbacks are lambdas without a capture, what is opened is closed by its owner. Of both headers.
#include <cstring>
#include <memory>
#include <string>

#include <crikeep-nri.h>

#include "host.h"

namespace {

struct CloseCache {
	void operator()(ck_cache *cache) const { ck_cache_close(cache, nullptr); }
};
struct CloseNri {
	void operator()(ck_nri *nri) const { ck_nri_close(nri); }
};
struct FreeTurn {
	void operator()(ck_turn *turn) const { ck_turn_free(turn); }
};
struct FreeView {
	void operator()(ck_view *view) const { ck_view_free(view); }
};
using Cache = std::unique_ptr<ck_cache, CloseCache>;
using Nri = std::unique_ptr<ck_nri, CloseNri>;
using Turn = std::unique_ptr<ck_turn, FreeTurn>;
using View = std::unique_ptr<ck_view, FreeView>;

struct Runtime {
	unsigned lists = 0, committed = 0;
};

Nri open_nri(const std::string &socket, Runtime &runtime)
{
	ck_nri_host host{};
	host.size = sizeof(host);
	host.userdata = &runtime;
	host.describe = [](ck_nri_job *job, ck_kind, const char *, void *) {
		ck_nri_job_done(job, 5, nullptr, 0);
	};
	host.log = [](ck_log_level, const char *, void *) {};
	ck_nri_options options{};
	options.size = sizeof(options);
	options.host = &host;
	options.socket_path = socket.c_str();
	options.policy = CK_NRI_FAIL;
	ck_nri *nri = nullptr;
	HOST_EXPECT(ck_nri_open(&options, &nri, nullptr) == 0);
	return Nri(nri);
}

Cache open_cache(const std::string &dir, const ck_hooks &hooks, Runtime &runtime)
{
	ck_host host{};
	host.size = sizeof(host);
	host.userdata = &runtime;
	host.destroy = [](ck_job *job, ck_kind, const char *, void *) {
		ck_answer answer{};
		answer.size = sizeof(answer);
		ck_job_done(job, &answer);
	};
	host.list = [](ck_job *job, const ck_filter *filter, void *userdata) {
		ck_answer answer{};
		answer.size = sizeof(answer);
		static_cast<Runtime *>(userdata)->lists +=
			filter->kind == CK_SANDBOX || filter->kind == CK_CONTAINER;
		ck_job_done(job, &answer);
	};
	host.committed = [](const ck_told *, void *userdata) {
		static_cast<Runtime *>(userdata)->committed++;
	};
	ck_options options{};
	options.size = sizeof(options);
	options.state_dir = dir.c_str();
	options.host = &host;
	options.hooks = &hooks;
	options.mode = CK_MODE_STRICT;
	ck_cache *cache = nullptr;
	ck_error err{};
	if (ck_cache_open(&options, &cache, &err) < 0)
		std::puts(err.text);
	HOST_EXPECT(cache);
	return Cache(cache);
}

int begin(const Cache &cache, Turn &ret_turn)
{
	ck_request request{};
	request.size = sizeof(request);
	request.kind = CK_SANDBOX;
	request.bytes = HOST_REQUEST;
	request.len = sizeof(HOST_REQUEST) - 1;
	ck_turn *turn = nullptr;
	int r = ck_turn_begin(cache.get(), &request, &turn, nullptr);
	ret_turn.reset(turn);
	return r;
}

} // namespace

int main(int, char **argv)
{
	const std::string dir = argv[1];
	Runtime runtime;
	Nri nri = open_nri(dir + "/nri.sock", runtime);
	ck_hooks hooks{};
	hooks.size = sizeof(hooks);
	HOST_EXPECT(ck_nri_hooks(nri.get(), &hooks) == 0);
	Cache cache = open_cache(dir + "/state", hooks, runtime);
	HOST_EXPECT(ck_nri_start(nri.get(), cache.get(), nullptr) == 0);
	while (ck_reconciled(cache.get()) == 0)
		HOST_EXPECT(ck_cache_process(cache.get(), nullptr) >= 0);
	HOST_EXPECT(runtime.lists == 2);

	Turn turn, again;
	HOST_EXPECT(begin(cache, turn) == CK_CREATE);
	HOST_EXPECT(begin(cache, again) == CK_WAIT);
	ck_result result{};
	result.size = sizeof(result);
	result.id = "s1";
	int outcome = 0;
	ck_turn_watch(
		again.get(),
		[](ck_turn *, int decided, void *userdata) {
			*static_cast<int *>(userdata) = decided;
		},
		&outcome);
	int r = ck_turn_finish(turn.get(), &result, nullptr);
	HOST_EXPECT(r == CK_WAIT || r == CK_HAND_BACK);
	for (int i = 0; i < 100 && outcome == 0; i++) {
		HOST_EXPECT(ck_cache_process(cache.get(), nullptr) >= 0);
		HOST_EXPECT(ck_nri_process(nri.get(), nullptr) == 0);
	}
	HOST_EXPECT(outcome == CK_HAND_BACK);
	HOST_EXPECT(runtime.committed == 1);
	ck_reply reply{};
	reply.size = sizeof(reply);
	HOST_EXPECT(ck_turn_reply(again.get(), &reply) == 0);
	HOST_EXPECT(std::strcmp(reply.id, "s1") == 0);

	unsigned entries = 0;
	HOST_EXPECT(ck_entries(cache.get(), [](const ck_entry_info *entry, void *userdata) {
		*static_cast<unsigned *>(userdata) += entry->state == CK_STATE_COMMITTED;
		return 0;
	}, &entries) == 0);
	HOST_EXPECT(entries == 1);
	ck_view *raw = nullptr;
	const char *id = nullptr;
	HOST_EXPECT(ck_view_begin(cache.get(), &raw, nullptr) == 0);
	View view(raw);
	HOST_EXPECT(ck_view_resolve(view.get(), CK_SANDBOX, "s1", &id) == 1);
	cache.reset(); // before what it asks, and before its turns and views, which is allowed
	HOST_EXPECT(ck_turn_stage(turn.get(), "late") == -CK_ECLOSED);
	std::puts("handed back");
	return 0;
}
