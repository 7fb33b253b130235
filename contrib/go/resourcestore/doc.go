// SPDX-License-Identifier: Apache-2.0

// Package resourcestore is a drop-in for the package of that name which CRI-O keeps in
// internal/resourcestore: the same names, on libcrikeep. What was made for a caller that is gone is
// kept until the same is asked for again, or undone.
//
// A vendor changes the import, and has: results that stay while somebody waits for them; the next
// attempt of a pod evicts the one before; clean-up in order that neither gives up nor holds up
// others; watchers that hear of the end, whatever it is; and no leak of what was refused.
//
// With Open instead of New results survive a restart. With GetForRequest and Finish the whole
// request is compared instead of the name, who waits gets the result itself, or the error, the
// moment there is one. README.md has the table, and the handler.
//
// Objects and cleaners are Go values and live in memory; what is known of them, and what has to be
// undone, is in crikeep's database, where crikeep(1) shows it. After a restart Options.Recover
// supplies the Go side again.
//
// # Names
//
// CRI-O's names say which pod, container and attempt they are of (k8s_POD_NAMESPACE_UID_ATTEMPT,
// k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT). Any other string is the name of a sandbox that has no
// other attempt. The calls that take a name only cannot know a container's sandbox: there,
// containers of one pod uid are told apart by name and attempt.
//
// # Private stores
//
// New's directory is in /dev/shm where that can be written to, else where temporary files are. It
// is removed by Close; what a process that was killed leaves (some 200 KB), the next New removes.
package resourcestore
