//go:build unix

package caller

import (
	"os"
	"strings"
	"unsafe"
)

// HideArgument overwrites a text in the arguments of this process, which the other processes of the
// machine can read. Strings that the caller has of the arguments change with it.
func HideArgument(text string) {
	for _, arg := range os.Args {
		at := strings.Index(arg, text)
		if text == "" || at < 0 {
			continue
		}
		bytes := unsafe.Slice(unsafe.StringData(arg), len(arg)) // memory of the arguments, which can be written
		for i := range text {
			bytes[at+i] = '*'
		}
	}
}
