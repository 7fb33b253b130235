/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CK_TESTS_SMALL_DISK_H
#define CK_TESTS_SMALL_DISK_H
/* A disk that a test can fill. It is for one thread: the test's process leaves the mount namespace
 * of its parent. */

/* small_disk_mount - a tmpfs of 1 MiB at @dir, which is made if it is missing, in a mount namespace
 * that nobody else sees. The test is skipped if that is not allowed. The caller unmounts it. */
void small_disk_mount(const char *dir);
/* small_disk_fill - a file takes all the space that is left */
void small_disk_fill(const char *dir);
/* small_disk_make_space - that file goes */
void small_disk_make_space(const char *dir);
#endif
