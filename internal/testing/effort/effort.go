// Package effort sizes tests: a few rounds in the ordinary run, many in the long
// run. It is for tests only.
package effort

import "os"

// Long reports whether this is the long run: PERDURE_LONG is set, as in
// `make test/long` and in the nightly workflow.
func Long() bool { return os.Getenv("PERDURE_LONG") != "" }

// Of returns how much a test does: the first number in the ordinary run, the
// second in the long run.
func Of(ordinary, long int) int {
	if Long() {
		return long
	}
	return ordinary
}
