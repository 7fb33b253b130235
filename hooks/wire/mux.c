/* SPDX-License-Identifier: Apache-2.0 */
/* Frames in and out. Only the header of an incoming frame is kept, so a frame that claims gigabytes
 * costs no memory. */
#include <inttypes.h>
#include <string.h>

#include "src/base/limits.h"
#include "hooks/wire/mux.h"

static uint32_t word(const unsigned char *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void word_put(unsigned char *p, uint32_t value)
{
	for (int i = 3; i >= 0; i--, value >>= 8)
		p[i] = (unsigned char)value;
}

static size_t at_most(size_t a, size_t b)
{
	return a < b ? a : b;
}

void ck_mux_fini(struct ck_mux *mux)
{
	ck_bytes_free(&mux->out);
	*mux = (struct ck_mux){ 0 };
}

/* ---- in -------------------------------------------------------------------------------------- */

static size_t header_feed(struct ck_mux *mux, const unsigned char *p, size_t n)
{
	size_t used = at_most(n, sizeof(mux->header) - mux->header_len);
	memcpy(mux->header + mux->header_len, p, used);
	mux->header_len += used;
	if (mux->header_len == sizeof(mux->header)) {
		mux->conn = word(mux->header);
		mux->left = word(mux->header + 4);
	}
	return used;
}

int ck_mux_feed(struct ck_mux *mux, const void *bytes, size_t n, ck_mux_bytes_fn *fn,
		void *userdata, struct ck_error *err)
{
	const unsigned char *p = bytes;
	while (n) {
		size_t used = 0;
		if (mux->header_len < sizeof(mux->header)) {
			used = header_feed(mux, p, n);
		} else if (mux->left <= CK_MUX_FRAME_MAX) {
			used = at_most(n, mux->left);
			mux->left -= (uint32_t)used;
			if (mux->conn == CK_MUX_PLUGIN || mux->conn == CK_MUX_RUNTIME) {
				int r = fn(mux->conn, p, used, userdata, err);
				if (r < 0)
					return r;
			}
		}
		if (mux->left > CK_MUX_FRAME_MAX)
			return ck_fail(err, CK_EMALFORMED,
				       "a frame of %" PRIu32 " bytes; the limit is %u", mux->left,
				       CK_MUX_FRAME_MAX);
		if (mux->header_len == sizeof(mux->header) && !mux->left)
			mux->header_len = 0; /* the next frame */
		p += used;
		n -= used;
	}
	return 0;
}

/* ---- out ------------------------------------------------------------------------------------- */

int ck_mux_send(struct ck_mux *mux, enum ck_mux_conn conn, const void *head, size_t head_len,
		const void *body, size_t body_len)
{
	unsigned char header[sizeof(mux->header)];
	size_t left = head_len + body_len;
	if (body_len > SIZE_MAX / 4 || head_len > SIZE_MAX / 4)
		return -CK_ENOMEM;
	if (ck_bytes_room(&mux->out, left + (2 + left / CK_MUX_FRAME_MAX) * sizeof(header)) < 0)
		return -CK_ENOMEM;
	/* there is enough room from here on */
	for (size_t max = CK_MUX_FIRST; left; max = CK_MUX_FRAME_MAX) {
		size_t frame = at_most(left, max), from_head = at_most(frame, head_len),
		       from_body = frame - from_head;
		word_put(header, conn);
		word_put(header + 4, (uint32_t)frame);
		ck_bytes_add(&mux->out, header, sizeof(header));
		ck_bytes_add(&mux->out, head, from_head);
		ck_bytes_add(&mux->out, body, from_body);
		head = from_head ? (const unsigned char *)head + from_head : head;
		body = from_body ? (const unsigned char *)body + from_body : body;
		head_len -= from_head;
		left -= frame;
	}
	return 0;
}

const unsigned char *ck_mux_out(const struct ck_mux *mux, size_t *ret_len)
{
	*ret_len = mux->out.len - mux->out_sent;
	return *ret_len ? mux->out.p + mux->out_sent : (const unsigned char *)"";
}

void ck_mux_sent(struct ck_mux *mux, size_t n)
{
	struct ck_bytes *out = &mux->out;
	mux->out_sent += at_most(n, out->len - mux->out_sent);
	if (mux->out_sent == out->len) {
		mux->out_sent = out->len = 0;
		if (out->room > CK_SOCKET_READ) /* a first list: it comes once per connection */
			ck_bytes_free(out);
	} else if (mux->out_sent > CK_SOCKET_READ && mux->out_sent > out->len / 2) {
		/* a peer that never reads everything must not make the buffer grow without end */
		out->len -= mux->out_sent;
		memmove(out->p, out->p + mux->out_sent, out->len);
		mux->out_sent = 0;
	}
}
