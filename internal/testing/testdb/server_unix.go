//go:build unix

package testdb

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	osuser "os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/perdure/perdure/internal/testing/testenv"
)

// guard is the shell program that runs the server. Its standard input is a pipe that only
// the test process has open: when that process ends, also by a crash, the read returns, and
// the guard stops the server and removes its folder.
//
// The server sorts text by an ICU locale; servers built without ICU or older than PostgreSQL
// 15 sort by bytes.
//
// fsync and full_page_writes are off because these tests do not test the durability of the
// server, and a flush of each commit would multiply their time.
const guard = `
bin=$1 dir=$2 user=$3
cd "$dir" || exit 1
trap 'rm -rf "$dir"' EXIT
init() {
	"$bin/initdb" -D "$dir/data" -U "$user" -A trust -E UTF8 \
		--no-sync --no-instructions --wal-segsize=1 --locale=C "$@" >init.log 2>&1
}
init --locale-provider=icu --icu-locale=en || init || { cat init.log; exit 1; }
cat >>data/postgresql.conf <<END
listen_addresses = ''
unix_socket_directories = '$dir'
port = 5432
max_connections = 200
shared_buffers = 16MB
fsync = off
full_page_writes = off
autovacuum = off
jit = off
END
"$bin/pg_ctl" -D "$dir/data" -l "$dir/log" -w -t 60 start >start.log 2>&1 </dev/null ||
	{ cat start.log log; exit 1; }
echo ready
exec >/dev/null
read -r _
"$bin/pg_ctl" -D "$dir/data" -m immediate -w stop
`

// maxSocketPath is the longest path of a Unix socket on all supported systems.
const maxSocketPath = 103

func startServer() (*postgres, error) {
	bin, err := findPrograms()
	if err != nil {
		return nil, err
	}
	who, err := serverUser()
	if err != nil {
		return nil, err
	}
	dir, err := makeFolder(who)
	if err != nil {
		return nil, err
	}
	life, err := runGuard(bin, dir, who)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &postgres{dir: dir, life: life}, nil
}

// runGuard starts the guard and waits until it prints that the server is ready. The guard has
// a session of its own, so that it does not receive an interrupt from the terminal before the
// pipe is closed. It ends after this process, which does not wait for it.
func runGuard(bin, dir string, who *syscall.Credential) (*os.File, error) {
	stdin, life, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	out, stdout, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, life.Close())
	}
	defer out.Close()
	//nolint:noctx // the guard outlives every context of this process
	cmd := exec.Command("/bin/sh", "-c", guard, "guard", bin, dir, user)
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"}
	cmd.Stdin, cmd.Stdout = stdin, stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: who}
	if err := errors.Join(cmd.Start(), stdout.Close()); err != nil {
		return nil, errors.Join(fmt.Errorf("start the guard of the PostgreSQL server: %w", err), life.Close())
	}
	var output []string
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() == "ready" {
			return life, nil
		}
		output = append(output, lines.Text())
	}
	err = errors.Join(life.Close(), cmd.Wait())
	return nil, fmt.Errorf("start a PostgreSQL server: %w\n%s", err, strings.Join(output, "\n"))
}

// findPrograms returns the folder of initdb, pg_ctl and postgres: the one on PATH, or the
// newest version in the folders where systems install them.
func findPrograms() (string, error) {
	var dirs []string
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin",          // Debian
		"/usr/pgsql-*/bin",                   // Red Hat
		"/opt/homebrew/opt/postgresql@*/bin", // macOS on ARM
		"/usr/local/opt/postgresql@*/bin",    // macOS on Intel
	} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return "", err
		}
		dirs = append(dirs, found...)
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return version(b) - version(a) })
	if p, err := exec.LookPath("initdb"); err == nil {
		if p, err = filepath.EvalSymlinks(p); err == nil {
			dirs = append([]string{filepath.Dir(p)}, dirs...)
		}
	}
	if i := slices.IndexFunc(dirs, hasPrograms); i >= 0 {
		return dirs[i], nil
	}
	return "", errors.New("the PostgreSQL server's programs (initdb, pg_ctl, postgres) were not found; " +
		"install the package postgresql, or put their folder on PATH")
}

func hasPrograms(dir string) bool {
	for _, name := range []string{"initdb", "pg_ctl", "postgres"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// serverUser returns the account of the server; nil for that of this process. PostgreSQL does
// not run as root: then the account is one without rights.
func serverUser() (*syscall.Credential, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		account, err := osuser.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(account.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(account.Gid, 10, 32)
		if uidErr == nil && gidErr == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
		}
	}
	return nil, errors.New("PostgreSQL does not run as root: create the account postgres")
}

// makeFolder creates the folder of the server in one where the path of the socket fits and
// that the server's user can enter, in memory if possible: on a disk, copying and removing
// the files of a database takes twenty times the processor time.
func makeFolder(who *syscall.Credential) (string, error) {
	var problems []error
	for _, parent := range []string{testenv.MemoryDir(), os.TempDir(), "/tmp"} {
		if parent == "" {
			continue
		}
		dir, err := makeFolderIn(parent, who)
		if err == nil {
			return dir, nil
		}
		problems = append(problems, err)
	}
	return "", fmt.Errorf("make a folder for the PostgreSQL server: %w", errors.Join(problems...))
}

func makeFolderIn(parent string, who *syscall.Credential) (string, error) {
	if who != nil {
		if err := reachable(parent); err != nil {
			return "", err
		}
	}
	dir, err := os.MkdirTemp(parent, "perdure-pg-")
	if err != nil {
		return "", err
	}
	if socket := filepath.Join(dir, ".s.PGSQL.5432"); len(socket) > maxSocketPath {
		return "", errors.Join(fmt.Errorf("socket path %q is longer than %d bytes", socket, maxSocketPath), os.Remove(dir))
	}
	if who == nil {
		return dir, nil
	}
	if err := os.Chown(dir, int(who.Uid), int(who.Gid)); err != nil {
		return "", errors.Join(err, os.Remove(dir))
	}
	return dir, nil
}

// reachable returns an error if not every user may enter dir and the folders above it.
func reachable(dir string) error {
	for d := dir; ; d = filepath.Dir(d) {
		info, err := os.Stat(d)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("folder %q is closed to the server's user", d)
		}
		if d == filepath.Dir(d) {
			return nil
		}
	}
}
