package notify_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/notify"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/testing/testenv"
)

func TestMain(m *testing.M) {
	guard.Enter()
	testenv.Set()
	os.Exit(m.Run())
}

func notice() *notify.Notice {
	return &notify.Notice{ID: "fix-1a2b3c4d/gate/1", Event: notify.GateOpened, Loop: "fix-1a2b3c4d",
		Title: "it asks: `$(rm -rf .)` 'x' \"y\"", Text: "line 1\nline 2",
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Iteration: 3,
		Gate: &notify.Gate{Number: "1", Kind: "recovery",
			Options: []notify.Option{{Answer: "abort", Effect: "it ends", Command: "perdure loop answer abort"}}}}
}

func needShell(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the commands are for a Unix shell")
	}
}

// Commands receive the notice on standard input and in the environment, never in the
// command line.
func TestCommand(t *testing.T) {
	t.Parallel()
	needShell(t)
	dir := t.TempDir()
	c := notify.Command{Line: `cat > told; printf '%s|%s|%s' "$PERDURE_EVENT" "$PERDURE_LOOP" "$PERDURE_TITLE" > said; ` +
		`echo chatter`, Dir: dir}
	n := notice()
	n.Title += "\x1b[2J\x00\u202egnp.exe\u009b2J"
	if err := c.Send(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	var got notify.Notice
	text, err := os.ReadFile(filepath.Join(dir, "told"))
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	if err != nil {
		t.Fatal(err)
	}
	want := notice()
	want.Title += " [2J  gnp.exe 2J"
	if diff := cmp.Diff(want, &got); diff != "" {
		t.Error(diff)
	}
	if said, err := os.ReadFile(filepath.Join(dir, "said")); err != nil || string(said) != "gate_opened|fix-1a2b3c4d|"+
		want.Title {
		t.Errorf("variables %q, %v", said, err)
	}
}

func TestCommandThatFails(t *testing.T) {
	t.Parallel()
	needShell(t)
	c := notify.Command{Line: "echo no such room >&2; exit 3", Dir: t.TempDir()}
	if err := c.Send(t.Context(), notice()); err == nil || !strings.Contains(err.Error(), "3") ||
		!strings.Contains(err.Error(), "no such room") {
		t.Errorf("%v", err)
	}
}

func TestWebhook(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	var told atomic.Value
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		told.Store(string(body))
		if tries.Add(1) == 1 { // busy just now
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		_, _ = io.WriteString(w, "ok")
	}))
	defer s.Close()
	w, err := notify.NewWebhook(s.URL + "/hooks/geheim")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Send(t.Context(), notice()); err != nil || tries.Load() != 2 {
		t.Errorf("%v after %d tries", err, tries.Load())
	}
	var got notify.Notice
	if err := json.Unmarshal([]byte(told.Load().(string)), &got); err != nil || got.ID != notice().ID || got.Text == "" {
		t.Errorf("told %s, %v", told.Load(), err)
	}
}

// A permanent error of the server is not retried, and no error contains the address,
// which may be a secret.
func TestWebhookThatFails(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		tries.Add(1)
		if r.URL.Path == "/moved/geheim" {
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	gone := httptest.NewServer(nil)
	gone.Close()
	defer s.Close()
	for address, want := range map[string]string{s.URL + "/geheim": "status 404", s.URL + "/moved/geheim": "status 302",
		gone.URL + "/geheim": "refused"} {
		w, err := notify.NewWebhook(address)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Send(t.Context(), notice()); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "geheim") {
			t.Errorf("%v", err)
		}
	}
	if tries.Load() != 2 {
		t.Errorf("%d tries, want one for each", tries.Load())
	}
	for _, address := range []string{"", "geheim", "ftp://geheim/x", "http:///geheim", "http://[geheim"} {
		if _, err := notify.NewWebhook(address); err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// Desktop notices are shown by the system's program, which receives them as arguments.
func TestDesktop(t *testing.T) {
	t.Parallel()
	needShell(t)
	dir := t.TempDir()
	program := filepath.Join(dir, "notify-send")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nprintf '%s\\n' \"$@\" > "+filepath.Join(dir, "shown")+"\n"),
		0o700); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"DISPLAY": ":0"}
	getenv := func(name string) string { return env[name] }
	d, err := notify.DesktopOf("linux", getenv, func(string) (string, error) { return program, nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Send(t.Context(), notice()); err != nil {
		t.Fatal(err)
	}
	shown, err := os.ReadFile(filepath.Join(dir, "shown"))
	if want := "--app-name=perdure\n--\n" + notice().Title + "\nline 1\nline 2\n"; err != nil || string(shown) != want {
		t.Errorf("shown %q, %v", shown, err)
	}
	none := func(string) (string, error) { return "", errors.New("not found") }
	for system, c := range map[string]struct {
		env  map[string]string
		look func(string) (string, error)
		want string
	}{
		"linux":   {env, none, "notify-send not found"},
		"freebsd": {nil, func(n string) (string, error) { return n, nil }, "no desktop session"},
		"darwin":  {nil, none, "osascript not found"},
		"windows": {nil, none, "powershell not found"},
	} {
		_, err := notify.DesktopOf(system, func(name string) string { return c.env[name] }, c.look)
		if !errors.Is(err, notify.ErrNoDesktop) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", system, err)
		}
	}
}
