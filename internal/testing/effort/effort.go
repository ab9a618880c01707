// Package effort sets the number of rounds of tests: few in the ordinary run, many in the
// long run. It is for tests only.
package effort

import (
	"flag"
	"os"
	"strconv"
)

// Long reports whether this is the long run: PERDURE_LONG is set, as in
// `make test/long` and in the nightly workflow.
func Long() bool { return os.Getenv("PERDURE_LONG") != "" }

// Of returns the first number in the ordinary run, the second in the long run.
func Of(ordinary, long int) int {
	if Long() {
		return long
	}
	return ordinary
}

// Parallel sets the number of tests of a package that run concurrently. TestMain calls it
// before m.Run in packages whose tests mostly wait for servers, disks and processes, with
// more than the number of processors. The flag -parallel overrides it.
func Parallel(n int) {
	_ = flag.Set("test.parallel", strconv.Itoa(n)) // cannot fail: the flag exists and n is a number
}

// Checks sets the number of random cases of each property test (rapid) of a package in the
// ordinary run. TestMain calls it before m.Run in packages whose cases are slow. The default
// is 100, also of the long run.
func Checks(n int) {
	if !Long() {
		_ = flag.Set("rapid.checks", strconv.Itoa(n)) // fails only in a package without property tests
	}
}
