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
// With Load and a StateDir, results survive a restart. With Do, the whole request is compared
// instead of the name, and waiting callers get the result or the error as soon as there is one.
// README.md has the table, and the handler.
//
// # Two stores
//
// One has a database, by libcrikeep: it needs Linux, cgo and the library. The other one is Go and
// is in memory: New opens it, and so does Open without a StateDir. Both follow crikeep-rules(7), so
// a runtime needs no second code path for other systems, for builds without cgo, for its tests, or
// for the time when it is switched off. Hooks and commits are the same in both. Durable says
// whether libcrikeep is built in; the build tag no_libcrikeep leaves it out where there is cgo.
//
// Objects and cleaners are Go values in memory. What is known about them, and what must be undone,
// is in crikeep's database if there is one, where crikeep(1) shows it. After a restart,
// Options.Recover supplies the Go values again.
//
// # Names
//
// CRI-O's names contain the pod, the container and the attempt (k8s_POD_NAMESPACE_UID_ATTEMPT,
// k8s_CONTAINER_POD_NAMESPACE_UID_ATTEMPT). Any other string is the name of a sandbox without other
// attempts. Calls that take only a name cannot know the sandbox of a container. For them,
// containers of one pod uid differ by name and attempt.
package resourcestore
