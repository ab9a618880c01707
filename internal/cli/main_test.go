package cli

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/internal/cli/env"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/testing/testenv"
)

func TestMain(m *testing.M) {
	guard.Enter()
	testenv.Set()
	goleak.VerifyTestMain(m)
}

// output is a stream that a test may read while a command writes it.
type output struct {
	mu   sync.Mutex // guards the fields below
	text bytes.Buffer
	more chan struct{} // closed at the next write
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.more != nil {
		close(o.more)
		o.more = nil
	}
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// await waits until the output contains a text.
func (o *output) await(t *testing.T, text string) {
	t.Helper()
	over := time.After(time.Minute)
	for {
		o.mu.Lock()
		found := strings.Contains(o.text.String(), text)
		if o.more == nil {
			o.more = make(chan struct{})
		}
		more := o.more
		o.mu.Unlock()
		if found {
			return
		}
		select {
		case <-more:
		case <-over:
			t.Fatalf("%q was not printed:\n%s", text, o)
		}
	}
}

// project is a folder in which a test runs commands.
type project struct {
	t   *testing.T
	dir string
	// home is the user's configuration folder.
	home string
	// width is the width of all streams, which are terminals if it is not 0.
	width   int
	environ []string
	stdin   io.Reader
}

func newProject(t *testing.T) *project {
	t.Helper()
	return &project{t: t, dir: t.TempDir(), home: t.TempDir()}
}

func (p *project) write(name, text string) {
	p.t.Helper()
	file := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// ran is a running command.
type ran struct {
	stdout, stderr output
	signals        chan os.Signal
	status         chan int
}

func (p *project) start(args ...string) *ran {
	r := &ran{signals: make(chan os.Signal, 2), status: make(chan int, 1)}
	process := env.Process{
		Args: args, Cwd: p.dir, Environ: append([]string{
			"PATH=" + os.Getenv("PATH"), "XDG_CONFIG_HOME=" + p.home}, p.environ...),
		Stdin: p.stdin, Stdout: &r.stdout, Stderr: &r.stderr, Signals: r.signals,
		Terminal: func(any) (int, bool) { return p.width, p.width > 0 },
	}
	go func() { r.status <- Main(context.Background(), process) }()
	return r
}

func (r *ran) interrupt() { r.signals <- os.Interrupt }

func (r *ran) wait(t *testing.T, want int) {
	t.Helper()
	select {
	case got := <-r.status:
		if got != want {
			t.Fatalf("exit status %d, want %d\n%s%s", got, want, &r.stdout, &r.stderr)
		}
	case <-time.After(time.Minute):
		t.Fatalf("the command does not end:\n%s%s", &r.stdout, &r.stderr)
	}
}

// run runs a command to its end and returns what it printed.
func (p *project) run(want int, args ...string) (stdout, stderr string) {
	p.t.Helper()
	r := p.start(args...)
	r.wait(p.t, want)
	return r.stdout.String(), r.stderr.String()
}

// screen returns a terminal of the given width without colors, and its content.
func screen(width int) (*env.Stream, *bytes.Buffer) {
	var b bytes.Buffer
	e := env.New(env.Process{Stdout: &b, Environ: []string{"NO_COLOR=1"},
		Terminal: func(any) (int, bool) { return width, true }})
	return e.Out, &b
}
