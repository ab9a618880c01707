package approval

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/process/caller"
	"github.com/perdure/perdure/internal/storage/atomicfile"
	"github.com/perdure/perdure/internal/storage/userdir"
	"github.com/perdure/perdure/internal/text/clip"
)

const (
	// Valid is the time in which an allowed call has to be made.
	Valid = 10 * time.Minute
	// Waits is the time in which a call can be allowed.
	Waits = 24 * time.Hour

	maxCalls = 1000
	maxShown = 2000
	idBytes  = 6
)

// Errors of [Folder.Allow].
var (
	ErrUnknown = errors.New("no such call waits for an approval")
	ErrOwn     = errors.New("the agent itself asks to allow its call")
)

// Call is a call that waits, or is allowed.
type Call struct {
	// ID names the call on the command line. It is the beginning of Sum.
	ID string `json:"id"`
	// Sum is a hash of agent, folder, tool and input.
	Sum   string `json:"sum"`
	Agent string `json:"agent"`
	Dir   string `json:"dir"`
	Tool  string `json:"tool"`
	// Shown is the command line or the files of the call, Risks what it risks.
	Shown string    `json:"shown"`
	Risks []string  `json:"risks"`
	Asked time.Time `json:"asked_at"`
	// Allowed is when a person allowed it; nil while it waits.
	Allowed *time.Time `json:"allowed_at,omitempty"`
	// Starter is the process of the agent; nil if it is not known.
	Starter *caller.Ancestor `json:"starter,omitempty"`
}

// live reports whether the call can still be allowed, or made.
func (c *Call) live(now time.Time) bool {
	if c.Allowed != nil {
		return now.Before(c.Allowed.Add(Valid)) && !now.Before(*c.Allowed)
	}
	return now.Before(c.Asked.Add(Waits))
}

// New returns a call that an agent makes in a folder.
func New(agentName, dir string, c *agent.ToolCall, risks []string) Call {
	sum := sha256.New()
	for _, part := range []string{agentName, dir, c.Name, string(essential(c.Input))} {
		fmt.Fprintf(sum, "%d\x00%s", len(part), part)
	}
	text := hex.EncodeToString(sum.Sum(nil))
	shown := cmp.Or(c.Command, strings.Join(c.Paths, " "), c.Title)
	return Call{ID: text[:2*idBytes], Sum: text, Agent: agentName, Dir: dir, Tool: c.Name,
		Shown: clip.Bytes(shown, maxShown), Risks: risks}
}

// essential returns the input of a tool in one form, without what models word anew each time
// and what has no effect.
func essential(input json.RawMessage) []byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(input, &members) != nil {
		return input
	}
	delete(members, "description")
	delete(members, "timeout")
	for name, value := range members {
		var b bytes.Buffer
		if json.Compact(&b, value) == nil {
			members[name] = b.Bytes()
		}
	}
	out, err := json.Marshal(members)
	if err != nil {
		return input
	}
	return out
}

// Folder is the folder of the calls of a user.
type Folder struct {
	dir string
	now func() time.Time
}

// Open returns the calls of the user: perdure/approvals in the user's state folder. Nothing
// is created.
func Open(getenv func(string) string) (Folder, error) {
	dir := userdir.State(getenv)
	if dir == "" {
		return Folder{}, errors.New("neither XDG_STATE_HOME nor HOME is an absolute path")
	}
	return Folder{dir: filepath.Join(dir, "approvals"), now: time.Now}, nil
}

func (f Folder) file(id string) string { return filepath.Join(f.dir, id+".json") }

func read(name string) (Call, error) {
	var c Call
	text, err := os.ReadFile(name)
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	return c, err
}

func (f Folder) write(c *Call) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err == nil {
		err = atomicfile.MkdirAll(f.dir, 0o700)
	}
	if err == nil {
		err = atomicfile.WriteFile(f.file(c.ID), append(text, '\n'), 0o600)
	}
	return err
}

// Request records a call that waits for an approval. A call that waits already stays as it
// is. An error means that it cannot be allowed.
func (f Folder) Request(c Call, starter *caller.Ancestor) error {
	old, err := read(f.file(c.ID))
	switch {
	case err == nil && old.live(f.now()) && old.Sum != c.Sum:
		return fmt.Errorf("record call that waits for an approval: another call has the ID %s", c.ID)
	case err == nil && old.live(f.now()) && sameStarter(old.Starter, starter):
		return nil
	}
	if f.tidy() >= maxCalls {
		return fmt.Errorf("record call that waits for an approval: %d calls wait already", maxCalls)
	}
	c.Asked, c.Allowed, c.Starter = f.now().UTC(), nil, starter
	if err := f.write(&c); err != nil {
		return fmt.Errorf("record call that waits for an approval: %w", err)
	}
	return nil
}

func sameStarter(a, b *caller.Ancestor) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Same(*b)
}

// tidy removes what has expired and returns the number of the other calls.
func (f Folder) tidy() int {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return 0
	}
	n := 0
	for _, e := range entries {
		name := filepath.Join(f.dir, e.Name())
		if c, err := read(name); err == nil && c.live(f.now()) {
			n++
		} else if err == nil || strings.Contains(e.Name(), ".used-") {
			_ = os.Remove(name) // it only takes space
		}
	}
	return n
}

// Take reports whether a person allowed a call, which is then no longer allowed. Of
// concurrent callers only one gets it.
func (f Folder) Take(c *Call) bool {
	name := f.file(c.ID)
	if old, err := read(name); err != nil || !f.allows(&old, c) {
		return false
	}
	used := fmt.Sprintf("%s.used-%d", name, os.Getpid())
	if os.Rename(name, used) != nil {
		return false
	}
	got, err := read(used)
	ok := err == nil && f.allows(&got, c)
	return errors.Join(os.Remove(used), atomicfile.SyncDir(f.dir)) == nil && ok
}

func (f Folder) allows(old, c *Call) bool {
	return old.Allowed != nil && old.Sum == c.Sum && old.live(f.now())
}

// Find returns a call that waits or is allowed; the error is [ErrUnknown] if there is none.
func (f Folder) Find(id string) (Call, error) {
	if len(id) != 2*idBytes || strings.Trim(id, "0123456789abcdef") != "" {
		return Call{}, ErrUnknown
	}
	c, err := read(f.file(id))
	if errors.Is(err, fs.ErrNotExist) || err == nil && (c.ID != id || !c.live(f.now())) {
		return Call{}, ErrUnknown
	}
	return c, err
}

// Allow allows a call that [Folder.Find] returned for one use. The error is [ErrOwn] if the
// person who asks is a program that the agent has started.
func (f Folder) Allow(c Call, by caller.Caller) (Call, error) {
	if c.Starter != nil && slices.ContainsFunc(by.Ancestors(), c.Starter.Same) {
		return c, ErrOwn
	}
	old, err := f.Find(c.ID)
	if err == nil && old.Sum != c.Sum {
		err = ErrUnknown
	}
	if err != nil {
		return c, err
	}
	at := f.now().UTC()
	old.Allowed = &at
	if err := f.write(&old); err != nil {
		return c, fmt.Errorf("record approval: %w", err)
	}
	return old, nil
}

// List returns the calls that wait, or are allowed and were not made yet, the latest first.
func (f Folder) List() ([]Call, error) {
	entries, err := os.ReadDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []Call
	for _, e := range entries {
		if c, err := read(filepath.Join(f.dir, e.Name())); err == nil && e.Name() == c.ID+".json" && c.live(f.now()) {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b Call) int { return b.Asked.Compare(a.Asked) })
	return all, err
}
