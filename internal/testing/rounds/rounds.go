// Package rounds decides how much a test does: little in the ordinary run,
// much in the nightly one, which sets PERDURE_LONG=1.
package rounds

import "os"

// Long reports whether this is the long run.
func Long() bool { return os.Getenv("PERDURE_LONG") == "1" }

// Of returns the first number in the ordinary run, the second in the long one.
func Of(ordinary, long int) int {
	if Long() {
		return long
	}
	return ordinary
}
