/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The image service. Every image can be pulled, and exists from then on. Its id is a digest of its
 * normalized name. So all spellings of the name, the digest and the id mean the same image, also in
 * another process.
 */
#include <stdio.h>

#include <sodium.h>

#include "src/base/limits.h"
#include "src/sim/sim-int.h"

#define PREFIX     "sha256:"
#define PREFIX_LEN (sizeof(PREFIX) - 1)

/* normalize - "busybox" becomes "docker.io/library/busybox:latest", as with docker. To be freed */
static char *normalize(const char *name)
{
	struct ck_bytes whole = { 0 };
	const char *slash = strchr(name, '/'), *last = strrchr(name, '/');
	size_t first = slash ? (size_t)(slash - name) : 0;
	bool domain = slash && (memchr(name, '.', first) || memchr(name, ':', first) ||
				!strncmp(name, "localhost/", 10));
	bool tag = strchr(last ? last : name, ':') || strchr(name, '@');
	int r = domain ? 0 : ck_bytes_add_text(&whole, slash ? "docker.io/" : "docker.io/library/");
	r = r < 0 ? r : ck_bytes_add_text(&whole, name);
	r = r < 0 || tag ? r : ck_bytes_add_text(&whole, ":latest");
	char *text = r < 0 ? NULL : ck_strndup((const char *)whole.p, whole.len);
	ck_bytes_free(&whole);
	return text;
}

int ck_sim_image_id(const char *name, char ret_id[CK_SIM_IMAGE_ID])
{
	const char *digest = strstr(name, PREFIX);
	if (digest && (digest == name || digest[-1] == '@') &&
	    strlen(digest) == CK_SIM_IMAGE_ID - 1) {
		memcpy(ret_id, digest, CK_SIM_IMAGE_ID);
		return 0;
	}
	unsigned char hash[CK_SIM_ID / 2];
	CK_AUTO_FREE char *whole = normalize(name);
	if (!whole)
		return -CK_ENOMEM;
	crypto_generichash(hash, sizeof(hash), (const unsigned char *)whole, strlen(whole), NULL,
			   0);
	memcpy(ret_id, PREFIX, PREFIX_LEN);
	sodium_bin2hex(ret_id + PREFIX_LEN, CK_SIM_ID + 1, hash, sizeof(hash));
	return 0;
}

static int image_pull(struct ck_sim *sim, const char *name, char ret_id[CK_SIM_IMAGE_ID])
{
	struct ck_sim_image *image;
	int r = ck_sim_image_id(name, ret_id);
	if (r < 0)
		return r;
	HASH_FIND(by_id, sim->images, ret_id, CK_SIM_IMAGE_ID - 1, image);
	if (image)
		return 0;
	image = CK_NEW(struct ck_sim_image);
	if (!image)
		return -CK_ENOMEM;
	memcpy(image->id, ret_id, CK_SIM_IMAGE_ID);
	image->name = normalize(name);
	if (image->name)
		HASH_ADD(by_id, sim->images, id, CK_SIM_IMAGE_ID - 1, image);
	if (image->name && image->by_id.tbl)
		return 0;
	free(image->name);
	free(image);
	return -CK_ENOMEM;
}

int ck_sim_images_pull(struct ck_sim *sim, const char *names)
{
	while (names && *names) {
		char id[CK_SIM_IMAGE_ID];
		size_t len = strcspn(names, "+");
		CK_AUTO_FREE char *name = ck_strndup(names, len);
		int r = !name ? -CK_ENOMEM : len ? image_pull(sim, name, id) : 0;
		if (r < 0)
			return r;
		names += len + (names[len] == '+');
	}
	return 0;
}

static void image_free(struct ck_sim *sim, struct ck_sim_image *image)
{
	HASH_DELETE(by_id, sim->images, image);
	free(image->name);
	free(image);
}

void ck_sim_images_free(struct ck_sim *sim)
{
	while (sim->images)
		image_free(sim, sim->images);
}

/* image_find - by name, by id, or by a prefix of the digits of its id. NULL: none, or several */
static struct ck_sim_image *image_find(struct ck_sim *sim, const char *name, const char *id)
{
	struct ck_sim_image *image, *found = NULL;
	size_t len = strlen(name);
	HASH_FIND(by_id, sim->images, id, CK_SIM_IMAGE_ID - 1, image);
	if (image)
		return image;
	if (len > PREFIX_LEN && !strncmp(name, PREFIX, PREFIX_LEN)) {
		name += PREFIX_LEN;
		len -= PREFIX_LEN;
	}
	for (image = sim->images; image; image = image->by_id.next) {
		if (strncmp(image->id + PREFIX_LEN, name, len) != 0)
			continue;
		if (found)
			return NULL;
		found = image;
	}
	return found;
}

/* request_image - the image that a request or a filter names; the field number of the ImageSpec is
 * the same in all of them. -CK_ENOTFOUND: it names none */
static int request_image(struct ck_sim_call *call, const struct ck_bytes *request, char **ret_name,
			 char ret_id[CK_SIM_IMAGE_ID])
{
	struct ck_wire_field field;
	int r = ck_sim_request_field(call, CRI_ImageStatusRequest_image, &field);
	if (r < 0)
		return r;
	char *name = ck_sim_config_text(request, CRI_ImageStatusRequest_image, CRI_ImageSpec_image);
	if (!name || (*name && ck_sim_image_id(name, ret_id) < 0)) {
		free(name);
		ck_sim_fail(call, CK_GRPC_UNAVAILABLE, "out of memory");
		return -CK_EFAILED;
	}
	if (!*name) {
		free(name);
		return -CK_ENOTFOUND;
	}
	*ret_name = name;
	return 0;
}

static void put_image(struct ck_sim_call *call, const struct ck_sim_image *image)
{
	/* the same field number in a list of images and in the status of one */
	size_t opened = ck_writer_open(&call->out, CRI_ImageStatusResponse_image);
	ck_writer_text(&call->out, CRI_Image_id, image->id);
	if (!strchr(image->name, '@'))
		ck_writer_text(&call->out, CRI_Image_repo_tags, image->name);
	/* the repository is the name without its tag, which is after the last slash */
	const char *slash = strrchr(image->name, '/');
	size_t repository = (size_t)(slash ? slash - image->name : 0);
	repository += strcspn(image->name + repository, ":@");
	CK_AUTO_FREE char *digest = ck_alloc(repository + 1 + CK_SIM_IMAGE_ID);
	if (digest) {
		memcpy(digest, image->name, repository);
		digest[repository] = '@';
		memcpy(digest + repository + 1, image->id, CK_SIM_IMAGE_ID);
		ck_writer_text(&call->out, CRI_Image_repo_digests, digest);
	} else {
		call->out.r = -CK_ENOMEM;
	}
	ck_writer_number(&call->out, CRI_Image_size, 1u << 20);
	size_t uid = ck_writer_open(&call->out, CRI_Image_uid);
	ck_writer_close(&call->out, uid);
	ck_writer_close(&call->out, opened);
}

int ck_sim_list_images(struct ck_sim_call *call)
{
	struct ck_sim_image *only = NULL;
	char id[CK_SIM_IMAGE_ID];
	CK_AUTO_FREE char *name = NULL;
	struct ck_wire_field filter;
	int r = ck_sim_request_field(call, CRI_ListImagesRequest_filter, &filter);
	if (r < 0)
		return r;
	if (r > 0) {
		struct ck_bytes spec = { .p = (unsigned char *)filter.data, .len = filter.len };
		r = request_image(call, &spec, &name, id);
		if (r < 0 && r != -CK_ENOTFOUND)
			return r;
		only = name ? image_find(call->sim, name, id) : NULL;
	}
	for (struct ck_sim_image *image = call->sim->images; image; image = image->by_id.next) {
		if (!name || image == only) {
			put_image(call, image);
			ck_sim_item(call);
		}
	}
	return CK_SIM_DONE;
}

int ck_sim_image_status(struct ck_sim_call *call)
{
	struct ck_wire_field verbose;
	char id[CK_SIM_IMAGE_ID];
	CK_AUTO_FREE char *name = NULL;
	int r = request_image(call, &call->reader.message, &name, id);
	if (r == -CK_ENOTFOUND)
		return ck_sim_fail(call, CK_GRPC_INVALID_ARGUMENT, "no image is named");
	if (r < 0)
		return r;
	struct ck_sim_image *image = image_find(call->sim, name, id);
	if (!image)
		return CK_SIM_DONE; /* an answer without an image: it does not exist */
	put_image(call, image);
	if (ck_sim_request_field(call, CRI_ImageStatusRequest_verbose, &verbose) > 0 &&
	    verbose.value)
		ck_writer_pair(&call->out, CRI_ImageStatusResponse_info, "info", "{}");
	return CK_SIM_DONE;
}

int ck_sim_pull_image(struct ck_sim_call *call)
{
	char id[CK_SIM_IMAGE_ID];
	CK_AUTO_FREE char *name = NULL;
	int r = request_image(call, &call->reader.message, &name, id);
	if (r == -CK_ENOTFOUND)
		return ck_sim_fail(call, CK_GRPC_INVALID_ARGUMENT, "no image is named");
	if (r < 0)
		return r;
	if (image_pull(call->sim, name, id) < 0)
		return ck_sim_fail(call, CK_GRPC_UNAVAILABLE, "out of memory");
	ck_writer_text(&call->out, CRI_PullImageResponse_image_ref, id);
	return CK_SIM_DONE;
}

int ck_sim_remove_image(struct ck_sim_call *call)
{
	char id[CK_SIM_IMAGE_ID];
	CK_AUTO_FREE char *name = NULL;
	int r = request_image(call, &call->reader.message, &name, id);
	if (r == -CK_ENOTFOUND)
		return CK_SIM_DONE;
	if (r < 0)
		return r;
	struct ck_sim_image *image = image_find(call->sim, name, id);
	if (image)
		image_free(call->sim, image);
	return CK_SIM_DONE;
}

int ck_sim_image_fs(struct ck_sim_call *call)
{
	ck_sim_put_filesystem(&call->out, CRI_ImageFsInfoResponse_image_filesystems,
			      HASH_CNT(by_id, call->sim->images) * (UINT64_C(1) << 20));
	ck_sim_put_filesystem(&call->out, CRI_ImageFsInfoResponse_container_filesystems,
			      call->sim->count[CK_CONTAINER].existing * 8192);
	return CK_SIM_DONE;
}
