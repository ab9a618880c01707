package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// make changes the namespaces of this process, whose mounts and network are still like
// those of the machine.
func (c *Config) make() error {
	defer unix.Umask(unix.Umask(0))
	if !c.Network {
		if err := raiseLoopback(); err != nil {
			return &Error{Op: "start loopback interface", Err: err, Refused: refusal(err)}
		}
		if err := c.Door.open(); err != nil {
			return &Error{Op: "open door to the network", Err: err}
		}
	}
	if c.Open {
		return c.makeOpen()
	}
	if c.OwnProcesses {
		// Namespaces in this one would give capabilities again, over copies of the mounts. Where
		// it cannot be forbidden, they can undo nothing.
		_ = os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0)
	}
	m := &mounts{}
	for _, step := range []struct {
		op string
		do func() error
	}{
		{"copy mounts", func() error { return m.copyAll(c) }},
		{"make file system read-only", readOnly},
		{"replace folders", func() error { return m.replace(c) }},
		{"mount devices", m.mountDevices},
		{"mount folders", m.attachAll},
		{"make hidden folders read-only", func() error { return m.makeHiddenReadOnly(c) }},
		{"mount /proc", c.mountProc},
	} {
		if err := step.do(); err != nil {
			_, found := errors.AsType[*missingError](err)
			return &Error{Op: step.op, Err: err, Refused: !found && refusal(err)}
		}
	}
	return nil
}

// missingError is the error of a folder of the Config that does not exist or cannot be used.
type missingError struct{ error }

// Unwrap returns the cause.
func (e *missingError) Unwrap() error { return e.error }

// mountProc replaces /proc by that of the own processes. Containers that hide parts of it refuse
// another one; then it is empty.
func (c *Config) mountProc() error {
	if !c.OwnProcesses {
		return nil
	}
	const flags = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	if unix.Mount("proc", "/proc", "proc", flags, "") != nil {
		return unix.Mount("tmpfs", "/proc", "tmpfs", flags|unix.MS_RDONLY, "mode=0555")
	}
	// Root has no limit of processes. Linux 6.14 and later have one for each namespace; this is the
	// lowest.
	_ = os.WriteFile("/proc/sys/kernel/pid_max", []byte("301"), 0)
	return unix.MountSetattr(unix.AT_FDCWD, "/proc", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// raiseLoopback starts the loopback interface of this network namespace.
func raiseLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if err := unix.IoctlIfreq(fd, unix.SIOCGIFFLAGS, ifr); err != nil {
		return err
	}
	ifr.SetUint16(ifr.Uint16() | unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr)
}

// readOnly makes all mounts read-only, without devices and programs of other users, and
// independent of those of the machine.
func readOnly() error {
	return unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{
		Attr_set:    unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV,
		Propagation: unix.MS_PRIVATE,
	})
}

// copied is a copy of a mounted file or folder that is not attached to a path yet.
type copied struct {
	fd     int
	path   string
	folder bool
}

// mounts are the copies made before everything becomes read-only.
type mounts struct {
	// temporary and devices are attached inside of what replaces their folders, later all
	// others.
	temporary, devices, later []copied
	// hidden are the paths that are replaced.
	hidden []string
}

// deviceNames are the devices of the private /dev.
func deviceNames() []string { return []string{"null", "zero", "full", "random", "urandom", "tty"} }

// copyAll copies what stays reachable.
func (m *mounts) copyAll(c *Config) error {
	for _, to := range []string{"/tmp", "/var/tmp"} {
		from := filepath.Join(c.Temp, strings.ReplaceAll(to[1:], "/", "-"))
		if err := os.Mkdir(from, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
			return &missingError{err}
		}
		real, err := filepath.EvalSymlinks(to)
		if err != nil || real != to {
			continue // there is none, or it is a link to /tmp
		}
		one, err := copyMount(from, 0)
		if err != nil {
			return err
		}
		one.path = to
		m.temporary, m.hidden = append(m.temporary, one), append(m.hidden, to)
	}
	for _, dir := range append([]string{"/dev", "/run"}, c.Hidden...) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			m.hidden = append(m.hidden, real)
		}
	}
	for _, name := range deviceNames() {
		fd, err := unix.OpenTree(unix.AT_FDCWD, "/dev/"+name, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
		if err == nil { // a container may lack some
			m.devices = append(m.devices, copied{fd: fd, path: "/dev/" + name})
		}
	}
	for _, path := range append(kept(), c.Readable...) {
		if err := m.keep(path); err != nil {
			return err
		}
	}
	for _, path := range c.Writable {
		one, err := copyMount(path, 0)
		if err != nil {
			return err
		}
		m.later = append(m.later, one)
	}
	return nil
}

// kept are the parts of /run that programs need.
func kept() []string {
	return []string{"/run/current-system", "/run/booted-system", "/run/opengl-driver"}
}

// keep copies a path that would be hidden, read-only.
func (m *mounts) keep(path string) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil //nolint:nilerr // there is none
	}
	for _, dir := range m.hidden {
		if real == dir || !strings.HasPrefix(real, dir+"/") {
			continue
		}
		one, err := copyMount(real, unix.MOUNT_ATTR_RDONLY)
		if err != nil {
			return err
		}
		m.later = append(m.later, one)
		return nil
	}
	return nil
}

// copyMount copies a file or folder with the mounts in it.
func copyMount(path string, attr uint64) (copied, error) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return copied{}, &missingError{err}
	}
	info, err := os.Lstat(real)
	if err != nil {
		return copied{}, &missingError{err}
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, real, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return copied{}, &fs.PathError{Op: "open_tree", Path: real, Err: err}
	}
	err = unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &unix.MountAttr{
		Attr_set: attr | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE})
	if err != nil {
		return copied{}, &fs.PathError{Op: "mount_setattr", Path: real, Err: err}
	}
	return copied{fd: fd, path: real, folder: info.IsDir()}, nil
}

// replace puts the private folders over those of the machine.
func (m *mounts) replace(c *Config) error {
	for _, one := range m.temporary {
		if err := one.attach(); err != nil {
			return err
		}
	}
	for _, dir := range m.hidden[len(m.temporary):] {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			continue // inside of one that is hidden already
		}
		options := "mode=0755"
		if c.Confine != nil { // what is written there is memory of the machine, which has no other limit
			options += ",size=64m,nr_inodes=10k"
		}
		if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
			return &fs.PathError{Op: "mount", Path: dir, Err: err}
		}
	}
	return nil
}

// mountDevices fills the private /dev.
func (m *mounts) mountDevices() error {
	for _, one := range m.devices {
		if err := one.attach(); err != nil {
			return err
		}
	}
	for _, link := range [][2]string{{"/proc/self/fd", "fd"}, {"fd/0", "stdin"}, {"fd/1", "stdout"}, {"fd/2", "stderr"},
		{"pts/ptmx", "ptmx"}} {
		if err := os.Symlink(link[0], "/dev/"+link[1]); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/dev/pts", "/dev/shm"} {
		if err := os.Mkdir(dir, 0o777); err != nil { //nolint:gosec // private
			return err
		}
	}
	// Some containers refuse it; then there are no terminals.
	_ = unix.Mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
	return nil
}

// attachAll attaches what stays reachable, outer folders first.
func (m *mounts) attachAll() error {
	slices.SortStableFunc(m.later, func(a, b copied) int { return len(a.path) - len(b.path) })
	for _, one := range m.later {
		if err := one.attach(); err != nil {
			return err
		}
	}
	return nil
}

// makeHiddenReadOnly makes the folders of the Config that are hidden read-only, without what is mounted in
// them.
func (m *mounts) makeHiddenReadOnly(c *Config) error {
	if !c.HiddenReadOnly {
		return nil
	}
	for _, dir := range m.hidden {
		if dir == "/dev" || dir == "/tmp" || dir == "/var/tmp" {
			continue
		}
		err := unix.MountSetattr(unix.AT_FDCWD, dir, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.EINVAL) { // EINVAL: in one that is hidden
			return &fs.PathError{Op: "mount_setattr", Path: dir, Err: err}
		}
	}
	return nil
}

// attach mounts a copy at its path, which is created in a private folder.
func (c *copied) attach() error {
	defer func() { _ = unix.Close(c.fd) }()
	if _, err := os.Lstat(c.path); err != nil {
		if err := os.MkdirAll(filepath.Dir(c.path), 0o755); err != nil { //nolint:gosec // in a private folder
			return err
		}
		create := func() error { return os.Mkdir(c.path, 0o755) } //nolint:gosec // in a private folder
		if !c.folder {
			create = func() error { return os.WriteFile(c.path, nil, 0o600) }
		}
		if err := create(); err != nil {
			return err
		}
	}
	err := unix.MoveMount(c.fd, "", unix.AT_FDCWD, c.path, unix.MOVE_MOUNT_F_EMPTY_PATH)
	if err != nil {
		return &fs.PathError{Op: "move_mount", Path: c.path, Err: err}
	}
	return nil
}
