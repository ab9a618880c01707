// Package sandbox runs a program that cannot write outside of given folders and has no
// network, on Linux.
//
// The program runs in user, mount, network and IPC namespaces of its own. The whole file
// system is read-only in it, except the folders that [Config] names; /tmp, /var/tmp, /dev
// and /run are private, and Hidden folders empty; the network is a loopback interface of its
// own. The user keeps the user ID and loses all capabilities for good, so that root cannot
// undo this either. Programs of other namespaces cannot be traced,
// and their files not opened through /proc.
//
// It is not a virtual machine: the program reads what the user can read, connects to Unix
// sockets and writes into named pipes in folders that it can read. Without
// [Config.OwnProcesses] it sees the processes of the machine, and can signal those of its user.
// The time and memory that it uses are not limited.
//
// [Config.Confine] adds Landlock and a filter of system calls, for code that needs little. With it,
// there is a sandbox on macOS, too, by the program sandbox-exec; see [Wrap]. The program starts no
// processes there.
//
// Package guard starts programs in a sandbox; see the field Sandbox of its Config.
package sandbox

import (
	"context"
	"errors"
)

// Config describes what a program in a sandbox can reach. All paths are absolute.
type Config struct {
	// Network is set if the program keeps the network of the machine.
	Network bool `json:"network,omitempty"`
	// Writable are existing folders in which the program can write.
	Writable []string `json:"writable,omitempty"`
	// Readable are files and folders that stay readable although they are below /tmp,
	// /var/tmp, /dev, /run or Hidden; those that do not exist are ignored.
	Readable []string `json:"readable,omitempty"`
	// Hidden are folders that are empty in the sandbox; those that do not exist are ignored.
	Hidden []string `json:"hidden,omitempty"`
	// HiddenReadOnly is set if Hidden folders are read-only in the sandbox, so that nothing can be
	// written to memory through them.
	HiddenReadOnly bool `json:"hidden_read_only,omitempty"`
	// OwnProcesses is set if the program sees, signals and traces only what it has started: it
	// is the first process of a PID namespace, and what it started ends with it. /proc is its
	// own, or empty where the system refuses one. The addresses of its memory are not random,
	// and it makes no user namespaces if /proc/sys can be written.
	OwnProcesses bool `json:"own_processes,omitempty"`
	// Confine, if set, confines the program a second time, where the kernel can; without
	// namespaces, by this alone.
	Confine *Confine `json:"confine,omitempty"`
	// Temp is an existing folder for the content of the private /tmp and /var/tmp.
	Temp string `json:"temp"`
	// Open is set if the program keeps the file system and the devices as they are, except for Hidden,
	// which can be files too, and Replaced. Writable, Temp and Confine have no meaning then.
	Open bool `json:"open,omitempty"`
	// Replaced are files and folders that the program has instead of others. Both exist.
	Replaced []Replacement `json:"replaced,omitempty"`
	// Door, if set, is what a program without the network of the machine can reach.
	Door *Door `json:"door,omitempty"`
}

// Replacement puts By in the place of Path.
type Replacement struct {
	Path string `json:"path"`
	By   string `json:"by"`
}

// Door is an address of the loopback interface of the program at which another process accepts
// connections: the listener is sent to the Unix socket Socket when the sandbox is made; see
// [ReceiveListener].
type Door struct {
	Address string `json:"address"`
	Socket  string `json:"socket"`
}

// Confine describes what a program can do that is confined by Landlock and by a filter of
// system calls: open Programs, what is Readable and Writable, and a few devices, and make the
// system calls that ordinary programs need. It has no sockets but pairs, and signals only what
// it started.
type Confine struct {
	// Programs are files and folders that the program can read and execute; those that do not
	// exist are ignored.
	Programs []string `json:"programs,omitempty"`
	// Executed are further files that the program replaces itself by when it starts. They matter
	// on macOS, where it executes nothing else; those that do not exist are ignored.
	Executed []string `json:"executed,omitempty"`
}

// Program is the program to run.
type Program struct {
	Path string   `json:"path"`
	Args []string `json:"args"`
	Env  []string `json:"env"`
	// Dir is the working folder.
	Dir string `json:"dir"`
}

type configKey struct{}

// With returns a context for the start of a program in a sandbox, by a package that starts it.
func With(ctx context.Context, cfg *Config) context.Context {
	if cfg == nil {
		return ctx
	}
	return context.WithValue(ctx, configKey{}, cfg)
}

// Of returns the configuration of [With]; nil without one.
func Of(ctx context.Context) *Config {
	cfg, _ := ctx.Value(configKey{}).(*Config)
	return cfg
}

// Layers of a sandbox, each of which confines the program by itself. The user, mount, network,
// IPC and PID namespaces count as one.
const (
	LayerNamespaces = "namespaces"
	LayerLandlock   = "Landlock"
	LayerSeccomp    = "seccomp"
	// LayerSandboxExec is the only one on macOS.
	LayerSandboxExec = "sandbox-exec"
)

// ErrUnsupported is the cause of an [Error] on other systems than Linux, and on macOS without
// [Config.Confine].
var ErrUnsupported = errors.New("this system has no namespaces")

// Error reports that no sandbox could be made. No program was started.
type Error struct {
	// Op is what failed.
	Op  string
	Err error
	// Refused is set if the system has no sandboxes for this user. Otherwise something
	// else is the cause, such as a missing folder of the [Config].
	Refused bool
}

// Error returns what failed and why.
func (e *Error) Error() string { return e.Op + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
