/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "src/base/mem.h"
#include "src/cli/explain/earlier.h"
#include "src/cli/output/print.h"

static bool has_row(const struct ck_reader *reader, uint64_t entry)
{
	size_t i = 0;
	while (i < reader->rows_n && reader->rows[i].id != entry)
		i++;
	return i < reader->rows_n;
}

void ck_earlier_find(const struct ck_look *look, struct ck_earlier *ret)
{
	const struct ck_reader *reader = look->reader;
	*ret = (struct ck_earlier){
		.all = ck_must(ck_alloc((reader->history_n + 1) * sizeof(struct ck_history_row *)))
	};
	for (size_t i = reader->history_n; i-- > 0;) {
		const struct ck_history_row *line = &reader->history[i];
		if (line->what == CK_WHAT_MOVED && line->to == CK_STATE_EVICTING && line->reason &&
		    !has_row(reader, line->entry))
			ret->all[ret->n++] = line;
	}
}

void ck_earlier_fini(struct ck_earlier *earlier)
{
	free(earlier->all);
	*earlier = (struct ck_earlier){ 0 };
}

const char *ck_absent_plugin(const struct ck_look *look, uint64_t entry)
{
	const struct ck_reader *reader = look->reader;
	for (size_t i = reader->history_n; i-- > 0;)
		if (reader->history[i].entry == entry &&
		    reader->history[i].what == CK_WHAT_PLUGIN_ABSENT)
			return ck_or_empty(reader->history[i].detail);
	return NULL;
}

char *ck_earlier_text(const struct ck_look *look, const struct ck_history_row *evicted)
{
	const char *absent = ck_absent_plugin(look, evicted->entry);
	char span[CK_TEXT_SPAN], ago[CK_TEXT_SPAN + 8] = "";
	if (ck_look_this_boot(look, evicted->boot))
		snprintf(ago, sizeof(ago), " %s ago",
			 ck_text_span(ck_look_ago(look, evicted->at), span));
	return ck_text_format("Earlier: entry %" PRIu64 ", %s, was evicted%s. Reason: "
			      "%s%s%s.%s%s%s 'crikeep history %" PRIu64 "' tells more.",
			      evicted->entry, evicted->who, ago, ck_reason_text(evicted->reason),
			      evicted->detail ? ": " : "", evicted->detail ? evicted->detail : "",
			      absent ? " It had not been handed over: " : "", ck_or_empty(absent),
			      absent ? "." : "", evicted->entry);
}
