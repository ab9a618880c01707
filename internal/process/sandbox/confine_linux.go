package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights of Landlock: https://docs.kernel.org/userspace-api/landlock.html.
const (
	rightsToRead = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	rightsOfFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE |
		unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	allRights = 1<<16 - 1
	scopes    = unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL
	network   = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	// leastABI is the first version that confines signals and abstract sockets.
	leastABI = 6
)

// confine confines this thread and what it executes by Landlock and by a filter of system calls,
// and returns the layers that hold. Without namespaces, both are needed.
func (o *order) confine() (layers []string, err error) {
	if !o.Bare {
		layers = append(layers, LayerNamespaces)
	}
	if o.Config.Confine == nil {
		return layers, nil
	}
	for _, one := range []struct {
		layer string
		do    func() error
	}{{LayerLandlock, o.restrictFiles}, {LayerSeccomp, filterCalls}} {
		switch err := one.do(); {
		case err == nil:
			layers = append(layers, one.layer)
		case o.Bare:
			return nil, &Error{Op: "confine by " + one.layer, Err: err, Refused: true}
		}
	}
	return layers, nil
}

// restrictFiles confines the thread by Landlock.
func (o *order) restrictFiles() error {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return errno
	}
	if abi < leastABI {
		return fmt.Errorf("the kernel has version %d of Landlock, and %d is needed", abi, leastABI)
	}
	attr := unix.LandlockRulesetAttr{Handled_access_fs: allRights, Handled_access_net: network, Scoped: scopes}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)),
		unsafe.Sizeof(attr), 0)
	if errno != 0 {
		return os.NewSyscallError("landlock_create_ruleset", errno)
	}
	defer func() { _ = unix.Close(int(fd)) }()
	for path, rights := range o.rights() {
		if err := allow(fd, path, rights); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return &fs.PathError{Op: "landlock_add_rule", Path: path, Err: err}
		}
	}
	if _, _, errno = unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return os.NewSyscallError("landlock_restrict_self", errno)
	}
	return nil
}

// rights are the paths that the program can use, and how.
func (o *order) rights() map[string]uint64 {
	paths := make(map[string]uint64)
	for _, path := range append(o.Config.Confine.Programs, o.Config.Readable...) {
		paths[path] = rightsToRead
	}
	private := []string{"/tmp", "/var/tmp", "/dev", "/proc"} // of the namespaces
	if o.Bare {
		private = nil
		for _, name := range deviceNames() {
			private = append(private, filepath.Join("/dev", name))
		}
	}
	for _, path := range append(private, o.Config.Writable...) {
		paths[path] = allRights
	}
	return paths
}

// allow adds a path to a set of rules.
func allow(rules uintptr, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return err
	}
	if info.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= rightsOfFile
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)} //nolint:gosec // a file descriptor
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, rules, unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&attr)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}
