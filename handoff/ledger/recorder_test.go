package ledger_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/handoff"
	"github.com/perdure/perdure/handoff/ledger"
	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/testing/testdb"
	"github.com/perdure/perdure/internal/testing/testenv"
)

func TestMain(m *testing.M) {
	guard.Enter()
	testenv.Set()
	goleak.VerifyTestMain(m)
}

const fileText = `{
  "sessionId": "s-1",
  "activePrd": {"id": "prd-dark-mode", "currentStory": "US-003", "number": 12345678901234567890},
  "adhocQueue": [{"id": "a1", "description": "Fix the build"}]
}
`

// bench is a store, a file and a recorder of them.
type bench struct {
	*ledger.Recorder
	store *ledger.Store
	dir   string
}

func newBench(t testing.TB) *bench {
	t.Helper()
	dir := t.TempDir()
	b := &bench{dir: dir, store: ledger.NewStore(testdb.Open(t, perdure.Config{Dir: filepath.Join(dir, ".perdure")}))}
	b.write(t, handoff.FileName, fileText)
	b.Recorder = b.recorder("a")
	return b
}

func (b *bench) recorder(agent string) *ledger.Recorder {
	return ledger.New(ledger.Config{Ledgers: b.store, Folder: b.dir, Agent: agent,
		Location: handoff.Location{File: filepath.Join(b.dir, handoff.FileName), Root: b.dir}})
}

func (b *bench) write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) text(t testing.TB) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(b.dir, handoff.FileName))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func (b *bench) apply(t testing.TB, ops ...ledger.Op) *ledger.Update {
	t.Helper()
	u, err := b.Apply(t.Context(), ops...)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func (b *bench) look(t testing.TB) *ledger.View {
	t.Helper()
	v, err := b.Look(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func step(text string) ledger.Op { return ledger.Op{Kind: ledger.OpStep, Text: text} }

func done(l *handoff.Ledger) string {
	var names []string
	for _, s := range l.CompletedSteps {
		names = append(names, s.Step)
	}
	return strings.Join(names, ",")
}

func pending(l *handoff.Ledger) string { return strings.Join(l.PendingSteps, ",") }

// Everything goes into the ledger and into the file, whose other content keeps
// its bytes.
func TestApplyWritesBoth(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write(t, "a.go", "package a")
	b.apply(t, ledger.Op{Kind: ledger.OpStart, Text: "Dark mode", Steps: []string{"one", "two"}},
		ledger.Op{Kind: ledger.OpStep, Text: "one", Created: []string{"a.go"}},
		ledger.Op{Kind: ledger.OpDecide, Text: "d", Because: "w"})
	v := b.look(t)
	if done(&v.Ledger) != "one" || pending(&v.Ledger) != "two" || v.Ledger.Title != "Dark mode" ||
		v.Ledger.Metadata.CreatedBy != "a" {
		t.Errorf("%+v", v.Ledger)
	}
	if v.Handoff.Version != 3 || v.Handoff.Place != handoff.FileName || v.Task.ID != "prd-dark-mode/US-003" ||
		len(v.Notes) > 0 {
		t.Errorf("%+v %q", v.Handoff, v.Notes)
	}
	if len(v.Ledger.Files) != 1 || v.Ledger.Files[0].Hash == "" {
		t.Errorf("files %+v", v.Ledger.Files)
	}
	shown, err := v.Shown.Compact()
	if err != nil || string(shown) != string(v.Handoff.Projected) {
		t.Errorf("%v\n%s\n%s", err, shown, v.Handoff.Projected)
	}
	rest := b.text(t)
	for _, part := range []string{`"sessionId": "s-1",`, `"number": 12345678901234567890`,
		`"adhocQueue": [{"id": "a1", "description": "Fix the build"}]`} {
		if !strings.Contains(rest, part) {
			t.Errorf("%s is gone:\n%s", part, rest)
		}
	}
	b.apply(t, ledger.Op{Kind: ledger.OpDone})
	if !strings.Contains(b.text(t), `"checkpoint": null`) {
		t.Errorf("after the end: %s", b.text(t))
	}
	if _, err := b.Apply(t.Context(), step("late")); !errors.Is(err, perdure.ErrConflict) {
		t.Errorf("a step after the end: %v", err)
	}
	if u := b.apply(t, ledger.Op{Kind: ledger.OpStart}); u.Handoff.Version != 1 || done(&u.Ledger) != "" {
		t.Errorf("begun again: %+v", u.Ledger)
	}
}

// What each operation makes of the work.
func TestFold(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ops  []ledger.Op
		want func(l *handoff.Ledger) string
		is   string
	}{
		"a named pending step": {[]ledger.Op{{Kind: "pending", Steps: []string{"a", "b", "c"}},
			{Kind: "step", Text: "x", Pending: "2"}}, pending, "a,c"},
		"its text": {[]ledger.Op{{Kind: "pending", Steps: []string{"a", "b", "c"}},
			{Kind: "step", Text: "x", Pending: "c"}}, pending, "a,b"},
		"its beginning": {[]ledger.Op{{Kind: "pending", Steps: []string{"add it", "wire it"}},
			{Kind: "step", Text: "x", Pending: "wire"}}, pending, "add it"},
		"two beginnings": {[]ledger.Op{{Kind: "pending", Steps: []string{"add a", "add b"}},
			{Kind: "step", Text: "x", Pending: "add"}}, pending, "add a,add b"},
		"the current step": {[]ledger.Op{{Kind: "pending", Steps: []string{"a", "b"}}, {Kind: "current", Text: "b"},
			{Kind: "step", Text: "did b"}}, pending,
			"a"},
		"the same text": {[]ledger.Op{{Kind: "pending", Steps: []string{"a", "b"}}, {Kind: "step", Text: "b"}}, pending,
			"a"},
		"no pending step": {[]ledger.Op{{Kind: "pending", Steps: []string{"a", "b"}}, {Kind: "step", Text: "z"}}, pending,
			"a,b"},
		"added once": {[]ledger.Op{{Kind: "pending", Steps: []string{"a"}},
			{Kind: "pending", Steps: []string{"a", "b"}}}, pending, "a,b"},
		"replaced": {[]ledger.Op{{Kind: "pending", Steps: []string{"a"}},
			{Kind: "pending", Steps: []string{"b"}, Replace: true}}, pending, "b"},
		"replaced by none": {[]ledger.Op{{Kind: "pending", Steps: []string{"a"}}, {Kind: "pending", Replace: true}},
			pending, ""},
		"removed": {[]ledger.Op{{Kind: "pending", Steps: []string{"a", "b"}},
			{Kind: "pending", Steps: []string{"1"}, Remove: true}}, pending, "b"},
		"two are removed by their numbers": {[]ledger.Op{{Kind: "pending", Steps: []string{"a", "b", "c"}},
			{Kind: "pending", Steps: []string{"1", "2"}, Remove: true}}, pending, "c"},
		"one is removed by both of its names": {[]ledger.Op{{Kind: "pending", Steps: []string{"a", "b"}},
			{Kind: "pending", Steps: []string{"1", "a"}, Remove: true}}, pending, "b"},
		"equal ones are removed": {[]ledger.Op{{Kind: "pending", Steps: []string{"a", "b", "a"}, Replace: true},
			{Kind: "pending", Steps: []string{"a", "a"}, Remove: true}}, pending, "b"},
		"current is cleared": {[]ledger.Op{{Kind: "current", Text: "b"}, {Kind: "step", Text: "c"}},
			func(l *handoff.Ledger) string { return cmp.Diff(l.CurrentStep, (*handoff.CurrentStep)(nil)) }, ""},
		"current is set": {[]ledger.Op{{Kind: "step", Text: "c", Current: "d"}},
			func(l *handoff.Ledger) string { return l.CurrentStep.Description }, "d"},
		"partial of a save": {[]ledger.Op{{Kind: "current", Text: "b"}, {Kind: "save", Partial: "half"}},
			func(l *handoff.Ledger) string {
				return l.CurrentStep.Description + " " + l.CurrentStep.PartialWork + " " + string(l.Metadata.Reason)
			}, "b half manual"},
		"failure": {[]ledger.Op{{Kind: "fail", Text: "no luck"}},
			func(l *handoff.Ledger) string {
				return string(l.Metadata.Reason) + " " + l.Error + " " + strings.Join(l.Blockers, ",")
			}, "failure no luck no luck"},
		"rate limit": {[]ledger.Op{{Kind: "current", Text: "b"}, {Kind: "rate-limit", Partial: "half"}},
			func(l *handoff.Ledger) string { return string(l.Metadata.Reason) + " " + l.CurrentStep.PartialWork },
			"rate_limit half"},
		"reassignment": {[]ledger.Op{{Kind: "reassign", To: "b"}},
			func(l *handoff.Ledger) string {
				return string(l.Metadata.Reason) + " " + strings.Join(l.Metadata.PreviousAgents, ",")
			}, "reassignment a"},
		"context at 74": {[]ledger.Op{{Kind: "context", Used: 0.74}}, reason, "periodic"},
		"context at 75": {[]ledger.Op{{Kind: "context", Used: 0.75}}, reason, "context_limit"},
		"context at 90": {[]ledger.Op{{Kind: "context", Used: 0.9}}, reason, "context_limit"},
		"a step clears the error": {[]ledger.Op{{Kind: "rate-limit", Text: "429"}, {Kind: "step", Text: "x"}},
			func(l *handoff.Ledger) string { return l.Error }, ""},
		"files do not change a later phase": {[]ledger.Op{{Kind: "phase", Phase: "verification"},
			{Kind: "step", Text: "x", Created: []string{"x.go"}}},
			func(l *handoff.Ledger) string { return string(l.Phase) }, "verification"},
		"unblocked": {[]ledger.Op{{Kind: "block", Text: "x"}, {Kind: "block", Text: "y"},
			{Kind: "unblock", Text: "1"}}, blockers, "y"},
		"allowed again": {[]ledger.Op{{Kind: "forbid", Text: "x"}, {Kind: "forbid", Text: "x", Remove: true}},
			func(l *handoff.Ledger) string { return strings.Join(l.NotAllowed, ",") }, ""},
		"a result is replaced": {[]ledger.Op{{Kind: "verify", Text: "unit", Status: "failed"},
			{Kind: "verify", Text: "unit", Status: "passed"}}, results, "unit passed agent"},
		"files begin the implementation": {[]ledger.Op{{Kind: "step", Text: "x", Created: []string{"x.go"}}},
			func(l *handoff.Ledger) string { return string(l.Phase) }, "implementation"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			u := b.apply(t, test.ops...)
			if got := test.want(&u.Ledger); got != test.is {
				t.Errorf("%q, want %q", got, test.is)
			}
			v := b.look(t)
			if got := test.want(&v.Ledger); got != test.is {
				t.Errorf("read again: %q, want %q", got, test.is)
			}
			if diff := cmp.Diff(u.Ledger, v.Ledger); diff != "" {
				t.Errorf("the ledger read again differs:\n%s", diff)
			}
		})
	}
}

func reason(l *handoff.Ledger) string { return string(l.Metadata.Reason) }

func blockers(l *handoff.Ledger) string { return strings.Join(l.Blockers, ",") }

func results(l *handoff.Ledger) string {
	var all []string
	for _, r := range l.Verification.Results {
		all = append(all, r.Activity+" "+string(r.Status)+" "+string(r.RanBy))
	}
	return strings.Join(all, ",")
}

// Changes of the file by other programs are adopted before the next write.
func TestForeignEditsAreAdopted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.apply(t, step("one"), ledger.Op{Kind: ledger.OpPending, Steps: []string{"x", "y"}},
		ledger.Op{Kind: ledger.OpBlock, Text: "stuck"})
	edited := strings.Replace(b.text(t), `"stuck"`, `"stuck", "and theirs"`, 1)
	edited = strings.Replace(edited, `"x", `, ``, 1)
	if edited == b.text(t) {
		t.Fatal("nothing was edited")
	}
	b.write(t, handoff.FileName, edited)
	if v := b.look(t); blockers(&v.Ledger) != "stuck,and theirs" || len(v.Notes) == 0 || v.Handoff.Version != 3 {
		t.Errorf("looked at: %q, notes %q", blockers(&v.Ledger), v.Notes)
	}
	u := b.apply(t, step("two"))
	if blockers(&u.Ledger) != "stuck,and theirs" || done(&u.Ledger) != "one,two" || u.Handoff.Version != 5 {
		t.Errorf("%q %q %+v", blockers(&u.Ledger), done(&u.Ledger), u.Handoff)
	}
	entries, err := b.store.HandoffEntries(t.Context(), u.Handoff.ID, 3, 0)
	if err != nil || entries[0].Kind != "adopt" || entries[0].Source != "file" {
		t.Errorf("%+v, %v", entries, err)
	}
	v := b.look(t)
	if len(v.Notes) > 0 || blockers(&v.Ledger) != "stuck,and theirs" {
		t.Errorf("again: %q %q", blockers(&v.Ledger), v.Notes)
	}
	var log []string
	err = b.Log(t.Context(), v, func(e *ledger.Entry, adopted []handoff.Change) error {
		log = append(log, e.Kind+" "+described(adopted))
		return nil
	})
	want := []string{"step ", "pending ", "block ", `adopt pendingSteps removed: "x"; blockers added: "and theirs"; `,
		"step "}
	if diff := cmp.Diff(want, log); err != nil || diff != "" {
		t.Errorf("log: %v (-want +got):\n%s", err, diff)
	}
}

func described(changes []handoff.Change) string {
	var all strings.Builder
	for _, c := range changes {
		all.WriteString(c.String() + "; ")
	}
	return all.String()
}

// A checkpoint that another program wrote is the beginning of the ledger.
func TestForeignCheckpointIsAdopted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write(t, handoff.FileName, strings.Replace(fileText, `"number"`,
		`"checkpoint": {"phase": "implementation", "completedSteps": [{"step": "theirs",
		"timestamp": "2026-02-28T10:00:00Z"}], "pendingSteps": ["left"], "metadata": {"createdBy": "react-dev", "lastUpdatedAt": "2026-02-28T10:10:00Z"}}, "number"`, 1))
	if v := b.look(t); done(&v.Ledger) != "theirs" || v.Handoff.ID != 0 || !v.Open() {
		t.Errorf("%+v", v.Ledger)
	}
	u := b.apply(t, step("left"))
	if done(&u.Ledger) != "theirs,left" || pending(&u.Ledger) != "" {
		t.Errorf("%+v", u.Ledger)
	}
	if got := strings.Join(u.Ledger.Metadata.PreviousAgents, ","); got != "react-dev" ||
		u.Ledger.Metadata.CreatedBy != "a" {
		t.Errorf("previous agents %q, now %q", got, u.Ledger.Metadata.CreatedBy)
	}
}

// An older version of the file that comes back, as with another branch, takes
// nothing out of the ledger.
func TestOlderFileComesBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.apply(t, step("one"))
	older := b.text(t)
	for _, text := range []string{"two", "three", "four"} {
		b.apply(t, step(text))
	}
	b.write(t, handoff.FileName, older)
	if u := b.apply(t, step("five")); done(&u.Ledger) != "one,two,three,four,five" {
		t.Errorf("%q", done(&u.Ledger))
	}
	b.write(t, handoff.FileName, fileText) // without any
	if u := b.apply(t, step("six")); done(&u.Ledger) != "one,two,three,four,five,six" {
		t.Errorf("%q", done(&u.Ledger))
	}
}

// An edited older version changes only the edited entries.
func TestOlderFileIsEdited(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.apply(t, step("one"), ledger.Op{Kind: ledger.OpNext, Text: "first"}, ledger.Op{Kind: ledger.OpBlock, Text: "b1"},
		ledger.Op{Kind: ledger.OpBlock, Text: "b2"})
	older := b.text(t)
	b.apply(t, step("two"), ledger.Op{Kind: ledger.OpNext, Text: "second"})
	edited := strings.Replace(older, `"b1", `, `"theirs", `, 1)
	if edited == older {
		t.Fatal("nothing was edited")
	}
	b.write(t, handoff.FileName, edited)
	u := b.apply(t, step("three"))
	if done(&u.Ledger) != "one,two,three" || u.Ledger.NextAction != "second" || blockers(&u.Ledger) != "theirs,b2" {
		t.Errorf("%q next %q blockers %q", done(&u.Ledger), u.Ledger.NextAction, blockers(&u.Ledger))
	}
}

// The prompt says what the story is, from its PRD.
func TestPromptDescribesTheStory(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write(t, "prd.json", `{"userStories": [{"id": "US-003", "title": "Switch the theme", "description": "As a user I `+
		`switch it."}]}`)
	b.apply(t, step("one"))
	out, err := b.Resume(t.Context(), ledger.ResumeConfig{})
	if err != nil || !strings.Contains(out.Prompt, "Switch the theme") ||
		!strings.Contains(out.Prompt, "As a user I switch it.") {
		t.Errorf("%v\n%s", err, out.Prompt)
	}
}

// broken is a ledger whose writer dies at a point of the caller's choice.
type broken struct {
	ledger.Ledgers
	before, after bool
}

var errDied = errors.New("died")

func (d *broken) WriteHandoff(ctx context.Context, w ledger.Write) (ledger.Handoff, error) {
	if d.before {
		return ledger.Handoff{}, errDied
	}
	h, err := d.Ledgers.WriteHandoff(ctx, w)
	if d.after {
		err = errDied
	}
	return h, err
}

// A process that dies between the ledger and the file loses nothing, and its own write
// is not adopted as that of another program.
func TestDeathBetweenLedgerAndFile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.apply(t, step("one"))
	before := b.text(t)
	dying := b.recorder("a")
	dying.Ledgers = &broken{Ledgers: b.store, before: true}
	if _, err := dying.Apply(t.Context(), step("lost")); !errors.Is(err, errDied) || b.text(t) != before {
		t.Errorf("%v", err)
	}
	dying.Ledgers = &broken{Ledgers: b.store, after: true}
	if _, err := dying.Apply(t.Context(), step("two")); !errors.Is(err, errDied) || b.text(t) != before {
		t.Errorf("%v", err)
	}
	v := b.look(t)
	if done(&v.Ledger) != "one,two" || len(v.Notes) > 0 {
		t.Errorf("%q %q", done(&v.Ledger), v.Notes)
	}
	u := b.apply(t, step("three"))
	if done(&u.Ledger) != "one,two,three" || len(u.Notes) > 0 || u.Handoff.Version != 3 {
		t.Errorf("%q %q %d", done(&u.Ledger), u.Notes, u.Handoff.Version)
	}
}

// Nothing about one task is seen in the next.
func TestTasksDoNotLeak(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.apply(t, step("of 003"), ledger.Op{Kind: ledger.OpDecide, Text: "003 decided"})
	// A user edits it, and moves on to the next story.
	edited := strings.Replace(b.text(t), `"003 decided"`, `"003 decided by hand"`, 1)
	b.write(t, handoff.FileName, strings.Replace(edited, `"US-003"`, `"US-004"`, 1))
	v := b.look(t)
	if done(&v.Ledger) != "" || len(v.Ledger.Decisions) > 0 || v.Open() {
		t.Errorf("seen in US-004: %+v", v.Ledger)
	}
	u := b.apply(t, step("of 004"))
	if done(&u.Ledger) != "of 004" || strings.Contains(b.text(t), "003 decided") || len(u.Notes) == 0 {
		t.Errorf("%q %q\n%s", done(&u.Ledger), u.Notes, b.text(t))
	}
	adhoc := b.recorder("a")
	adhoc.Place = handoff.Adhoc("a1")
	if _, err := adhoc.Apply(t.Context(), step("of a1")); err != nil {
		t.Fatal(err)
	}
	b.write(t, handoff.FileName, strings.Replace(b.text(t), `"US-004"`, `"US-003"`, 1))
	u = b.apply(t, step("more of 003"))
	var decided []string
	for _, d := range u.Ledger.Decisions {
		decided = append(decided, d.Decision)
	}
	if done(&u.Ledger) != "of 003,more of 003" || !strings.Contains(strings.Join(decided, ","), "by hand") {
		t.Errorf("%q %q", done(&u.Ledger), decided)
	}
}

func TestFilesOfSteps(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.write(t, "a.go", "package a")
	if err := os.MkdirAll(filepath.Join(b.dir, "node_modules"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.write(t, "node_modules/x.js", "x")
	u := b.apply(t, ledger.Op{Kind: ledger.OpStep, Text: "x",
		Created: []string{filepath.Join(b.dir, "a.go"), "node_modules/x.js", "gone.go"}})
	if got := strings.Join(u.Ledger.Touched(), ","); got != "a.go,gone.go" ||
		strings.Join(u.Left, ",") != "node_modules/x.js" || len(u.Notes) != 1 {
		t.Errorf("touched %q, left %q, notes %q", got, u.Left, u.Notes)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(b.dir, link); err != nil {
		t.Fatal(err)
	}
	linked := b.recorder("")
	linked.Location.Root = link
	for r, dir := range map[*ledger.Recorder]string{b.Recorder: link, linked: b.dir} {
		u, err := r.Apply(t.Context(), ledger.Op{Kind: ledger.OpStep, Text: "linked",
			Modified: []string{filepath.Join(dir, "a.go"), filepath.Join(dir, "no", "x.go")}})
		if err != nil || strings.Join(u.Ledger.Touched(), ",") != "a.go,gone.go,no/x.go" {
			t.Errorf("in %s: %v", dir, err)
		}
	}
	for _, path := range []string{"../x", "/etc/passwd", "..", ".", filepath.Join(link, "../x"), link} {
		_, err := b.Apply(t.Context(), ledger.Op{Kind: ledger.OpStep, Text: "x", Created: []string{path}})
		if !errors.Is(err, perdure.ErrInvalid) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// What is recorded behind the end of the work would be in no checkpoint.
func TestNothingBehindTheEnd(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.apply(t, step("a"))
	_, err := b.Apply(t.Context(), ledger.Op{Kind: ledger.OpDone}, step("b"))
	if v := b.look(t); !errors.Is(err, perdure.ErrInvalid) || !v.Open() || done(&v.Ledger) != "a" {
		t.Errorf("%v, open %v, %q", err, v.Open(), done(&v.Ledger))
	}
}

func TestOpRefusals(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`{"op":"stepp","text":"x"}`:                            "not an operation",
		`{"op":"step"}`:                                        "needs",
		`{"op":"step","text":"x","because":"y"}`:               "has no",
		`{"op":"step","text":"x","files":[]}`:                  "",
		`{"op":"step","text":"x","ran_by":"engine"}`:           "cannot be set",
		`{"op":"verify","text":"x"}`:                           "status",
		`{"op":"verify","text":"x","status":"fine"}`:           "not one of",
		`{"op":"phase","phase":"later"}`:                       "not one of",
		`{"op":"context","used":1.2}`:                          "0 to 100",
		`{"op":"context"}`:                                     "needs",
		`{"op":"pending"}`:                                     "needs",
		`{"op":"pending","steps":[" "]}`:                       "empty",
		`{"op":"adopt","theirs":{}}`:                           "cannot be set",
		`{"op":"save","reason":"failure"}`:                     "not one of",
		`{"op":"step","text":"x\u0000"}`:                       "UTF-8",
		`{"op":"step","text":"x"} {}`:                          "1:26: ",
		`{"op":"step","texxt":"x"}`:                            "texxt",
		`["step"]`:                                             "not an operation",
		`{"op":"reassign"}`:                                    "needs",
		`{"op":"step","text":"x","at":"2026-01-01T00:00:00Z"}`: "cannot be set",
	} {
		_, err := ledger.ReadOps(strings.NewReader(line))
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", line, err)
			}
			continue
		}
		if !errors.Is(err, perdure.ErrInvalid) || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "line 1") {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	long := `{"op":"step","text":"` + strings.Repeat("x", ledger.MaxOpText+1) + `"}`
	if _, err := ledger.ReadOps(strings.NewReader(long)); !errors.Is(err, perdure.ErrInvalid) {
		t.Errorf("long text: %v", err)
	}
	if _, err := ledger.ReadOps(strings.NewReader(strings.Repeat("x", ledger.MaxOpBytes+1))); !errors.Is(err,
		perdure.ErrInvalid) {
		t.Errorf("long line: %v", err)
	}
}

func FuzzReadOps(f *testing.F) {
	f.Add(`{"op":"step","text":"x","created":["a"]}` + "\n\n" + `{"op":"done"}`)
	f.Add(`{"op":"pending","steps":["a","b"],"replace":true}`)
	f.Add(`{"op":"context","used":0.8,"source":"reported"}`)
	f.Fuzz(func(t *testing.T, text string) {
		ops, err := ledger.ReadOps(strings.NewReader(text))
		if err != nil {
			return
		}
		var entries []ledger.Entry
		for i, op := range ops {
			if err := op.Check(); err != nil {
				t.Fatalf("read but refused: %v", err)
			}
			raw, err := json.Marshal(&op)
			if err != nil {
				t.Fatal(err)
			}
			entries = append(entries, ledger.Entry{Number: int64(i) + 1, Kind: op.Kind, Data: raw, Source: "a"})
		}
		l, err := ledger.Fold("t", entries)
		if err != nil {
			t.Fatal(err)
		}
		c := handoff.Project(l, 0)
		if raw, err := c.Compact(); err != nil || len(raw) > handoff.DefaultLimit {
			t.Fatalf("%d bytes, %v", len(raw), err)
		}
	})
}
