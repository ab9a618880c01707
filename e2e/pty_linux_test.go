package e2e

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a pseudo terminal with a program in its foreground.
type terminal struct {
	t      *testing.T
	master *os.File
	cmd    *exec.Cmd

	mu    sync.Mutex // guards shown and over
	more  *sync.Cond
	shown strings.Builder
	over  bool
}

// onTerminal starts a program in a session of its own with a new terminal.
func onTerminal(t *testing.T, cmd *exec.Cmd) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals: %v", err)
	}
	t.Cleanup(func() { _ = master.Close() })
	fd := int(master.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err = errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)); err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &terminal{t: t, master: master, cmd: cmd}
	p.more = sync.NewCond(&p.mu)
	go p.read()
	return p
}

func (p *terminal) read() {
	buf := make([]byte, 4096)
	for {
		n, err := p.master.Read(buf) // fails when the last program has closed the terminal
		p.mu.Lock()
		p.shown.Write(buf[:n])
		p.over = err != nil
		p.more.Broadcast()
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// until waits until the terminal shows a text, and returns all that it has shown.
func (p *terminal) until(text string) string {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !strings.Contains(p.shown.String(), text) {
		if p.over {
			p.t.Fatalf("the terminal did not show %q:\n%s", text, p.shown.String())
		}
		p.more.Wait()
	}
	return p.shown.String()
}

// types types a line.
func (p *terminal) types(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.master, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// ends waits for the program and returns all that the terminal showed, and the status.
func (p *terminal) ends() (shown string, status int) {
	p.t.Helper()
	_ = p.cmd.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.over {
		p.more.Wait()
	}
	return p.shown.String(), p.cmd.ProcessState.ExitCode()
}
