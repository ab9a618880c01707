//go:build unix

package caller

import (
	"os"
	"strings"
	"unsafe"
)

// HideValue overwrites the values of a flag, written with its dashes, in the arguments of this process,
// which the other processes of the machine can read. Strings that the caller has of them change too.
func HideValue(flag string) {
	for i, arg := range os.Args {
		value, ok := strings.CutPrefix(arg, flag+"=")
		if !ok && i > 0 && os.Args[i-1] == flag {
			value, ok = arg, true
		}
		if !ok || value == "" {
			continue
		}
		bytes := unsafe.Slice(unsafe.StringData(value), len(value)) // memory of the arguments, which can be written
		for i := range bytes {
			bytes[i] = '*'
		}
	}
}
