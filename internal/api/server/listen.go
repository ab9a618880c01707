package server

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/storage/filelock"
)

// maxSocketPath is the longest path of a socket that every system takes: macOS
// has room for 104 bytes with the zero at the end.
const maxSocketPath = 103

const opListen = "listen on socket"

// Listener accepts connections on a Unix socket that belongs to this process
// alone until Close.
type Listener struct {
	net.Listener
	path   string
	made   fs.FileInfo // of the socket, to remove no other
	lock   *os.File
	once   sync.Once
	closed error
}

// Listen opens the Unix socket at path, for the user only (mode 0600 from its
// first moment). A socket that a dead process left behind is replaced. The lock
// file next to it, path with ".lock" added, decides between servers that start
// at the same time; it is never removed.
//
// It fails with CodeConflict when a server runs there, and with CodeInvalid when
// the path is too long or something else than a socket.
func Listen(path string) (*Listener, error) {
	temp, err := temporaryPath(path)
	if err != nil {
		return nil, err
	}
	lock, err := lockSocket(path)
	if err != nil {
		return nil, err
	}
	l, err := listenLocked(path, temp)
	if err != nil {
		_, _ = filelock.Unlock(lock), lock.Close()
		return nil, err
	}
	l.lock = lock
	return l, nil
}

// temporaryPath is where the socket is made: in a folder of its own, which
// no other user can enter, so that the socket gets its mode before other users can
// connect.
func temporaryPath(path string) (string, error) {
	var b [3]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	temp := filepath.Join(filepath.Dir(path), ".s"+hex.EncodeToString(b[:]), "s")
	if n := max(len(path), len(temp)); n > maxSocketPath {
		return "", &perdure.Error{Code: perdure.CodeInvalid, Op: opListen,
			Msg:  fmt.Sprintf("the socket path %q has %d bytes, systems take at most %d", path, n, maxSocketPath),
			Hint: "set PERDURE_DIR to a folder with a shorter path"}
	}
	return temp, nil
}

func lockSocket(path string) (*os.File, error) {
	lock, err := os.OpenFile(path+".lock", os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, listenError(path, err)
	}
	if err := filelock.TryLock(lock); err != nil {
		_ = lock.Close()
		if errors.Is(err, filelock.ErrLocked) {
			return nil, alreadyRunning(path)
		}
		return nil, listenError(path, err)
	}
	return lock, nil
}

func alreadyRunning(path string) error {
	return &perdure.Error{Code: perdure.CodeConflict, Op: opListen,
		Msg:  fmt.Sprintf("a server is already running on %q", path),
		Hint: "use it, or stop it first"}
}

func listenError(path string, err error) error {
	return &perdure.Error{Code: perdure.CodeUnavailable, Op: opListen,
		Msg: fmt.Sprintf("the socket %q cannot be made", path), Err: err,
		Hint: "check the folder's permissions, or set PERDURE_DIR"}
}

// listenLocked needs the lock.
func listenLocked(path, temp string) (*Listener, error) {
	if err := checkFree(path); err != nil {
		return nil, err
	}
	dir := filepath.Dir(temp)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, listenError(path, err)
	}
	defer func() { _ = os.Remove(dir) }() // at worst an empty folder stays
	inner, err := net.ListenUnix("unix", &net.UnixAddr{Name: temp, Net: "unix"})
	if err != nil {
		return nil, listenError(path, err)
	}
	inner.SetUnlinkOnClose(false) // it is about to have another name
	made, err := publish(temp, path)
	if err != nil {
		_ = inner.Close()
		_ = os.Remove(temp)
		return nil, listenError(path, err)
	}
	return &Listener{Listener: inner, path: path, made: made}, nil
}

func publish(temp, path string) (fs.FileInfo, error) {
	if err := os.Chmod(temp, 0o600); err != nil {
		return nil, err
	}
	made, err := os.Lstat(temp)
	if err != nil {
		return nil, err
	}
	return made, os.Rename(temp, path)
}

// checkFree makes sure that whatever is at path may be replaced: nothing, or a
// socket that no process answers on.
func checkFree(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return listenError(path, err)
	}
	if info.Mode().Type() != fs.ModeSocket {
		return &perdure.Error{Code: perdure.CodeInvalid, Op: opListen,
			Msg: fmt.Sprintf("%q is not a socket", path), Hint: "move it away"}
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	switch {
	case err == nil:
		_ = conn.Close()
		return alreadyRunning(path)
	case errors.Is(err, syscall.ECONNREFUSED), runtime.GOOS == "windows":
		return nil // its process is dead
	case errors.Is(err, syscall.EAGAIN):
		return alreadyRunning(path) // and busy
	}
	return listenError(path, err)
}

// Path is where the socket is.
func (l *Listener) Path() string { return l.path }

// Addr is the socket's address; it has the path that clients use.
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: l.path, Net: "unix"} }

// Close stops accepting and removes the socket. It may be called more than
// once.
func (l *Listener) Close() error {
	l.once.Do(func() {
		l.closed = l.Listener.Close()
		if now, err := os.Lstat(l.path); err == nil && os.SameFile(now, l.made) {
			l.closed = errors.Join(l.closed, os.Remove(l.path))
		}
		// Last: the next server may come as soon as the lock is free. Closing
		// alone would not free it while a child that is being started has a
		// copy.
		l.closed = errors.Join(l.closed, filelock.Unlock(l.lock), l.lock.Close())
	})
	return l.closed
}
