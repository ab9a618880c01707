//go:build unix

package command_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/testing/testenv"
)

// playVar makes the test binary, started again, an agent that does what its
// arguments say, or, unless it is "1", what the lines of the variable say; see
// play.
const playVar = "COMMAND_TEST_PLAY"

func TestMain(m *testing.M) {
	guard.Enter()
	testenv.Set()
	switch todo := os.Getenv(playVar); todo {
	case "":
		goleak.VerifyTestMain(m)
	case "1":
		os.Exit(play(os.Args[1:]))
	default:
		os.Exit(play(strings.Split(todo, "\n")))
	}
}

// play does one thing after the other:
//
//	out:TEXT err:TEXT   writes a line
//	raw:TEXT            writes TEXT as it is, with \xNN understood
//	cat                 copies standard input to standard output
//	args                writes the arguments that follow it, one a line, and ends
//	line                writes all arguments in one line
//	file:PATH           writes the mode and the content of a file
//	env:NAME pwd        writes a variable, the folder
//	replay:PATH         writes a file to standard output
//	complain:PATH       writes a file to standard error
//	flood:MIB:WIDTH     writes lines of WIDTH bytes, 0 is one endless line
//	stubborn            ignores SIGTERM from now on
//	leave:PATH          starts a process that hangs and keeps the pipes, and writes its ID to PATH
//	close               closes standard output
//	exit:N kill hang    ends
func play(todo []string) int {
	w := bufio.NewWriterSize(os.Stdout, 1<<16)
	for i, do := range todo {
		verb, arg, _ := strings.Cut(do, ":")
		switch verb {
		case "args":
			for _, a := range todo[i+1:] {
				fmt.Fprintln(w, a)
			}
			_ = w.Flush()
			return 0
		case "exit", "kill", "hang":
			_ = w.Flush()
			return depart(verb, arg)
		}
		if err := act(w, verb, arg); err != nil {
			fmt.Fprintln(os.Stderr, "play:", err)
			return 99
		}
		_ = w.Flush()
	}
	return 0
}

func act(w *bufio.Writer, verb, arg string) error {
	var err error
	switch verb {
	case "out":
		_, err = fmt.Fprintln(w, arg)
	case "err":
		_, err = fmt.Fprintln(os.Stderr, arg)
	case "raw":
		var text string
		if text, err = strconv.Unquote(`"` + arg + `"`); err == nil {
			_, err = w.WriteString(text)
		}
	case "cat":
		_, err = io.Copy(w, os.Stdin)
	case "file":
		err = show(w, arg)
	case "env":
		_, err = fmt.Fprintln(w, os.Getenv(arg))
	case "pwd":
		var dir string
		dir, err = os.Getwd()
		fmt.Fprintln(w, dir)
	case "line":
		_, err = fmt.Fprintln(w, strings.Join(os.Args[1:], " "))
	case "replay":
		err = replay(w, arg)
	case "complain":
		err = replay(os.Stderr, arg)
	case "flood":
		err = flood(w, arg)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
	case "leave":
		err = leave(arg)
	case "close":
		err = os.Stdout.Close()
	default:
		err = fmt.Errorf("unknown %q", verb)
	}
	return err
}

func replay(w io.Writer, path string) error {
	data, err := os.ReadFile(path)
	if err == nil {
		_, err = w.Write(data)
	}
	return err
}

func show(w io.Writer, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(path)
	fmt.Fprintf(w, "%v %s\n", info.Mode(), data)
	return err
}

func flood(w *bufio.Writer, arg string) error {
	var mib, width int
	if _, err := fmt.Sscanf(arg, "%d:%d", &mib, &width); err != nil {
		return err
	}
	block := []byte(strings.Repeat("x", 1<<16))
	for at := width; width > 0 && at <= len(block); at += width {
		block[at-1] = '\n'
	}
	for range mib << 4 {
		if _, err := w.Write(block); err != nil {
			return err
		}
	}
	return nil
}

func leave(path string) error {
	cmd := exec.Command(os.Args[0], "stubborn", "hang")
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(strconv.Itoa(cmd.Process.Pid)), 0o600)
}

func depart(verb, arg string) int {
	switch verb {
	case "kill":
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		fallthrough
	case "hang":
		r, w, err := os.Pipe() // never written
		if err == nil {
			_, _ = io.Copy(io.Discard, r)
			_ = w.Close()
		}
		return 98
	}
	n, err := strconv.Atoi(arg)
	if err != nil {
		return 97
	}
	return n
}
