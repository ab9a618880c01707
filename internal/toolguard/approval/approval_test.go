package approval

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/process/caller"
)

// folder returns a folder whose clock the test sets.
func folder(t *testing.T) (Folder, *time.Time) {
	t.Helper()
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	return Folder{dir: filepath.Join(t.TempDir(), "approvals"), now: func() time.Time { return now }}, &now
}

func bash(command string) *agent.ToolCall {
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	c := agent.Describe("1", "Bash", input)
	return &c
}

// allowed requests and allows a call.
func allowed(t *testing.T, f Folder, c Call) {
	t.Helper()
	if err := f.Request(c, nil); err != nil {
		t.Fatal(err)
	}
	found, err := f.Find(c.ID)
	if err == nil {
		_, err = f.Allow(found, caller.Caller{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestCallsDiffer: agent, folder, tool and input identify a call.
func TestCallsDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	write := agent.Describe("1", "Write", json.RawMessage(`{"file_path":"a","content":"x"}`))
	other := agent.Describe("1", "Write", json.RawMessage(`{"file_path":"a","content":"y"}`))
	for _, c := range []Call{New("codex", "/w", bash("ls"), nil), New("gemini", "/w", bash("ls"), nil),
		New("codex", "/v", bash("ls"), nil), New("codex", "/w", bash("ls -l"), nil), New("codex", "/w", &write, nil),
		New("codex", "/w", &other, nil), New("codexx", "/", bash("ls"), nil)} {
		if seen[c.ID] || len(c.ID) != 2*idBytes || c.Sum[:2*idBytes] != c.ID {
			t.Errorf("%+v", c)
		}
		seen[c.ID] = true
	}
	one := agent.Describe("1", "Bash", json.RawMessage(`{"command":"ls","description":"a","timeout":1}`))
	two := agent.Describe("2", "Bash", json.RawMessage(`{ "timeout": 2, "command": "ls" }`))
	if New("codex", "/w", &one, nil).Sum != New("codex", "/w", &two, nil).Sum {
		t.Error("the same call in other words is another")
	}
}

// TestOnce: of concurrent callers one gets an allowed call; files of the folder are private.
func TestOnce(t *testing.T) {
	t.Parallel()
	f, _ := folder(t)
	c := New("codex", "/w", bash("rm -rf x"), []string{"deleting"})
	if f.Take(&c) {
		t.Error("a call for which no approval was requested is allowed")
	}
	if err := f.Request(c, nil); err != nil || f.Take(&c) {
		t.Errorf("a call that waits is allowed, %v", err)
	}
	allowed(t, f, c)
	info, err := os.Stat(f.file(c.ID))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	var got atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if f.Take(&c) {
				got.Add(1)
			}
		})
	}
	all.Wait()
	if got.Load() > 1 {
		t.Errorf("%d callers made the call", got.Load())
	}
	if f.Take(&c) {
		t.Error("the call is allowed again")
	}
}

// TestExpires: an approval and a call that waits end.
func TestExpires(t *testing.T) {
	t.Parallel()
	f, now := folder(t)
	c := New("codex", "/w", bash("ls"), nil)
	allowed(t, f, c)
	*now = now.Add(Valid)
	if f.Take(&c) {
		t.Error("an approval does not end")
	}
	if err := f.Request(c, nil); err != nil {
		t.Fatal(err)
	}
	*now = now.Add(Waits)
	if got, err := f.Find(c.ID); !errors.Is(err, ErrUnknown) {
		t.Errorf("%+v, %v", got, err)
	}
	allowed(t, f, c)
	*now = now.Add(-time.Hour) // a clock that was set back extends nothing
	if f.Take(&c) {
		t.Error("an approval of the future counts")
	}
}

// TestSameID: a call with the ID of another one is not allowed by its approval and does not
// replace it.
func TestSameID(t *testing.T) {
	t.Parallel()
	f, _ := folder(t)
	c := New("codex", "/w", bash("ls"), nil)
	other := c
	other.Sum = c.ID + "0000"
	if err := f.Request(c, nil); err != nil {
		t.Fatal(err)
	}
	if err := f.Request(other, nil); err == nil {
		t.Error("another call replaces one that waits")
	}
	allowed(t, f, c)
	if f.Take(&other) || !f.Take(&c) {
		t.Error("the approval of one call counts for another")
	}
	if err := f.Request(other, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Allow(c, caller.Caller{}); !errors.Is(err, ErrUnknown) {
		t.Errorf("the call that was shown is not the one that waits: %v", err)
	}
}

// TestOwnCall: a program that the agent has started does not allow its call.
func TestOwnCall(t *testing.T) {
	t.Parallel()
	f, _ := folder(t)
	self := caller.Self()
	above := self.Ancestors()
	if len(above) == 0 {
		t.Skip("the system reports no ancestors")
	}
	c := New("codex", "/w", bash("ls"), nil)
	if err := f.Request(c, &above[len(above)-1]); err != nil {
		t.Fatal(err)
	}
	found, err := f.Find(c.ID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Allow(found, self); !errors.Is(err, ErrOwn) || f.Take(&c) {
		t.Errorf("%v", err)
	}
	other := above[0]
	other.Start = "another time"
	if err := f.Request(c, &other); err != nil { // the agent was started again
		t.Fatal(err)
	}
	if found, err = f.Find(c.ID); err == nil {
		_, err = f.Allow(found, self)
	}
	if err != nil || !f.Take(&c) {
		t.Errorf("%v", err)
	}
}

// TestFull: calls without end do not fill the disk.
func TestFull(t *testing.T) {
	t.Parallel()
	f, now := folder(t)
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range maxCalls {
		c := New("codex", "/w", bash("ls"), nil)
		c.ID, c.Asked = time.Duration(i).String(), *now
		text, err := json.Marshal(c)
		if err == nil {
			err = os.WriteFile(f.file(c.ID), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	c := New("codex", "/w", bash("rm x"), nil)
	if err := f.Request(c, nil); err == nil {
		t.Error("one more is accepted")
	}
	*now = now.Add(Waits)
	if err := f.Request(c, nil); err != nil {
		t.Error(err)
	}
	if all, err := f.List(); err != nil || len(all) != 1 {
		t.Errorf("%d, %v", len(all), err)
	}
}
