// SPDX-License-Identifier: Apache-2.0

//go:build !(linux && cgo && !no_libcrikeep)

package resourcestore

import "errors"

// Durable says whether libcrikeep is built in. Without it, Open refuses a StateDir.
const Durable = false

func (s *ResourceStore) openDurable(string) (engine, error) {
	return nil, errors.New("this program was built without libcrikeep (which needs Linux, cgo, and not the tag " +
		"no_libcrikeep): leave Options.StateDir empty for a store in memory")
}
