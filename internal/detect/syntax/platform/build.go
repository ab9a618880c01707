package platform

import (
	"path"
	"strings"
)

// GoSystem returns the operating system or architecture in the name of a Go test file; empty for
// none.
func GoSystem(name string) string {
	stem, ok := strings.CutSuffix(path.Base(name), "_test.go")
	parts := strings.Split(stem, "_")
	if last := parts[len(parts)-1]; ok && len(parts) > 1 {
		switch last {
		case "aix", "android", "darwin", "dragonfly", "freebsd", "hurd", "illumos", "ios", "js", "linux", "nacl", "netbsd",
			"openbsd", "plan9", "solaris", "wasip1", "windows", "zos",
			"386", "amd64", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle", "ppc64", "ppc64le", "riscv64",
			"s390x", "sparc64", "wasm":
			return last
		}
	}
	return ""
}
