package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// makeOpen hides and replaces files, and leaves everything else as it is.
func (c *Config) makeOpen() error {
	private := func() error {
		return unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &unix.MountAttr{Propagation: unix.MS_PRIVATE})
	}
	m := &mounts{}
	for _, step := range []struct {
		op string
		do func() error
	}{
		{"copy mounts", func() error { return m.copyOpen(c) }},
		{"separate mounts", private},
		{"hide files", m.hide},
		{"replace files", m.attachAll},
		{"make hidden folders read-only", m.closeHidden},
	} {
		if err := step.do(); err != nil {
			_, found := errors.AsType[*missingError](err)
			return &Error{Op: step.op, Err: err, Refused: !found && refusal(err)}
		}
	}
	return nil
}

// copyOpen copies what replaces other files, and what stays readable in hidden folders.
func (m *mounts) copyOpen(c *Config) error {
	for _, name := range c.Hidden {
		if real, err := filepath.EvalSymlinks(name); err == nil {
			m.hidden = append(m.hidden, real)
		}
	}
	for _, name := range c.Readable {
		real, err := filepath.EvalSymlinks(name)
		for _, dir := range m.hidden {
			if err != nil || !strings.HasPrefix(real, dir+"/") {
				continue
			}
			one, err := copyMount(real, 0)
			if err != nil {
				return err
			}
			m.later = append(m.later, one)
			break
		}
	}
	for _, r := range c.Replaced {
		to, err := filepath.EvalSymlinks(r.Path)
		if err != nil {
			return &missingError{err}
		}
		one, err := copyMount(r.By, 0)
		if err != nil {
			return err
		}
		one.path = to
		m.later = append(m.later, one)
	}
	return nil
}

// hide puts empty folders and files over what is hidden.
func (m *mounts) hide() error {
	for _, name := range m.hidden {
		info, err := os.Stat(name)
		if err != nil {
			continue // in a folder that is hidden already
		}
		if info.IsDir() {
			if err := unix.Mount("tmpfs", name, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755,size=1m"); err != nil {
				return fmt.Errorf("mount over %s: %w", name, err)
			}
			continue
		}
		if err := unix.Mount("/dev/null", name, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount over %s: %w", name, err)
		}
	}
	return nil
}

// closeHidden makes the empty folders read-only.
func (m *mounts) closeHidden() error {
	for _, name := range m.hidden {
		info, err := os.Stat(name)
		if err != nil || !info.IsDir() {
			continue
		}
		err = unix.MountSetattr(unix.AT_FDCWD, name, 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
		if err != nil && !errors.Is(err, unix.EINVAL) { // EINVAL: in one that is hidden
			return err
		}
	}
	return nil
}

// open makes the listener of the door and sends it to its socket. Without a door it does nothing.
func (d *Door) open() error {
	if d == nil {
		return nil
	}
	listener, err := net.Listen("tcp", d.Address) //nolint:noctx // it does not wait
	if err != nil {
		return err
	}
	defer listener.Close()
	conn, err := net.Dial("unix", d.Socket) //nolint:noctx // the socket exists
	if err != nil {
		return err
	}
	defer conn.Close()
	tcp, isTCP := listener.(*net.TCPListener)
	local, isUnix := conn.(*net.UnixConn)
	if !isTCP || !isUnix {
		return errors.New("the listener cannot be sent")
	}
	file, err := tcp.File()
	if err != nil {
		return err
	}
	defer file.Close()
	_, _, err = local.WriteMsgUnix([]byte{1}, unix.UnixRights(int(file.Fd())), nil)
	return err
}

// ReceiveListener returns the listener that the maker of a sandbox with a [Door] sends over a
// connection to the door's socket.
func ReceiveListener(conn *net.UnixConn) (net.Listener, error) {
	one, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(one, rights)
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(errors.New("no listener was sent"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(errors.New("no listener was sent"), err)
	}
	file := os.NewFile(uintptr(fds[0]), "door")
	defer file.Close()
	return net.FileListener(file)
}
