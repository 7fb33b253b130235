// SPDX-License-Identifier: Apache-2.0

// Package resourcestore is a drop-in replacement for CRI-O's internal/resourcestore: the same
// names, on libcrikeep. A result whose caller is gone is kept until it is requested again, or
// undone.
//
// With the import alone, a vendor gets these improvements: results stay while a caller waits for
// them; the next attempt of a pod evicts the previous one; clean-up runs in order, never gives up
// and does not delay others; watchers are told about the end of a creation, whatever it is; and
// nothing that was refused is leaked.
//
// With Open instead of New, results survive a restart. With GetForRequest and Finish, the whole
// request is compared instead of the name, and waiting callers get the result or the error as soon
// as there is one. README.md has the table, and the handler.
//
// Objects and cleaners are Go values in memory. What is known about them, and what must be undone,
// is in crikeep's database, where crikeep(1) shows it. After a restart, Options.Recover supplies
// the Go values again.
//
// # Names
//
// CRI-O's names contain the pod, the container and the attempt (k8s_POD_NAMESPACE_UID_ATTEMPT,
// k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT). Any other string is the name of a sandbox without other
// attempts. Calls that take only a name cannot know the sandbox of a container. For them,
// containers of one pod uid differ by name and attempt.
//
// # Private stores
//
// New creates its directory in /dev/shm if that is writable, else in the directory for temporary
// files. Close removes it. If a process was killed, the next New removes its directory (about 200
// KB).
package resourcestore
