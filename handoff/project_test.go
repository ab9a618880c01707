package handoff_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/perdure/perdure/handoff"
)

// failer is what tests, properties and fuzz targets have in common.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
}

func compact(t failer, c handoff.Checkpoint) string {
	t.Helper()
	text, err := c.Compact()
	if err != nil {
		t.Fatalf("%v", err)
	}
	return string(text)
}

// Whatever a ledger holds, its checkpoint has at most 2,048 bytes and always the
// first four parts, is deterministic, and reads back as it was.
func TestProjectAlwaysFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := anyLedger().Draw(t, "ledger")
		c := handoff.Project(l, 0)
		text := compact(t, c)
		if len(text) > handoff.DefaultLimit {
			t.Fatalf("%d bytes: %s", len(text), text)
		}
		if !utf8.ValidString(text) {
			t.Fatalf("not UTF-8: %q", text)
		}
		wantFirstParts(t, l, c)
		if std, err := json.Marshal(json.RawMessage(text)); err != nil || !json.Valid(std) {
			t.Fatalf("not JSON: %v: %s", err, text)
		}
		if again := compact(t, handoff.Project(l, handoff.DefaultLimit)); again != text {
			t.Fatalf("a second projection differs:\n%s\n%s", text, again)
		}
		var back handoff.Checkpoint
		if err := json.Unmarshal([]byte(text), &back); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		if diff := cmp.Diff(c, back, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("reads back otherwise (-want +got):\n%s", diff)
		}
	})
}

func beginsLike(shown, full string) bool {
	full = strings.ToValidUTF8(full, "\uFFFD")
	head, cut := strings.CutSuffix(shown, "…")
	return shown == full || cut && strings.HasPrefix(full, head) && len(head) > 0
}

func wantFirstParts(t failer, l handoff.Ledger, c handoff.Checkpoint) {
	t.Helper()
	for name, text := range map[string][2]string{
		"task":        {c.TaskID, l.TaskID},
		"contract":    {c.Verification.ContractRef, l.Verification.ContractRef},
		"next action": {c.NextAction, l.NextAction},
	} {
		if !beginsLike(text[0], text[1]) {
			t.Errorf("%s is %q, want %.80q or its beginning", name, text[0], text[1])
		}
	}
	if len(l.Blockers) > 0 && (len(c.Blockers) == 0 || !beginsLike(c.Blockers[0], l.Blockers[0])) {
		t.Errorf("no blocker in %+v", c)
	}
	if len(l.NotAllowed) > 0 && (len(c.NotAllowed) == 0 || !beginsLike(c.NotAllowed[0], l.NotAllowed[0])) {
		t.Errorf("nothing that is not allowed in %+v", c)
	}
	last := make(map[string]handoff.Status)
	for _, r := range l.Verification.Results {
		last[r.Activity] = r.Status
	}
	for _, status := range last {
		if status == handoff.StatusFailed &&
			!slices.ContainsFunc(c.Verification.Results,
				func(r handoff.Result) bool { return r.Status == handoff.StatusFailed }) {
			t.Errorf("no failing check in %+v", c)
		}
	}
}

// Room is reserved for each kind of entry, whatever the length of their text: no kind displaces
// another.
func TestProjectReserves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := filled(30)
		text := rapid.StringMatching(`[a-z]{2,9}( [a-z]{2,9}){0,60}`)
		l.CurrentStep = &handoff.CurrentStep{Description: text.Draw(t, "step"), PartialWork: text.Draw(t, "partial work")}
		l.NextAction = text.Draw(t, "next action")
		for i := range 3 {
			l.Blockers = append(l.Blockers, fmt.Sprint(i, text.Draw(t, "blocker")))
		}
		for i := range l.Decisions {
			l.Decisions[i].Decision, l.Decisions[i].Rationale = fmt.Sprint(i, text.Draw(t, "decision")), text.Draw(t, "why")
			l.PendingSteps[i] = fmt.Sprint(i, text.Draw(t, "pending"))
			l.CompletedSteps[i].Step = fmt.Sprint(i, text.Draw(t, "completed"))
			l.FailedApproaches[i].What, l.FailedApproaches[i].Why = text.Draw(t, "tried"), text.Draw(t, "outcome")
		}
		c := handoff.Project(l, 0)
		if c.CurrentStep == nil || c.CurrentStep.PartialWork == "" || len(c.PendingSteps) < 3 || len(c.Decisions) < 3 ||
			len(c.CompletedSteps) < 2 || len(c.FailedApproaches) < 1 || len(c.Blockers) != 3 {
			t.Errorf("current step %v; %d pending, %d decisions, %d steps, %d failed approaches, %d blockers",
				c.CurrentStep, len(c.PendingSteps), len(c.Decisions), len(c.CompletedSteps), len(c.FailedApproaches),
				len(c.Blockers))
		}
		for i, d := range c.Decisions[max(0, len(c.Decisions)-3):] {
			if d.Rationale == "" {
				t.Errorf("no reason of decision %d: %+v", i, d)
			}
		}
		if n := len(compact(t, c)); n < handoff.DefaultLimit-120 {
			t.Errorf("only %d bytes are used", n)
		}
	})
}

// An entry that does not fit does not end its list.
func TestProjectSkipsWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	l := filled(3)
	huge := strings.Repeat("\u2028", 300)
	l.PendingSteps = nil
	for i := range 20 {
		l.PendingSteps = append(l.PendingSteps, fmt.Sprint(i, huge), fmt.Sprint(i))
	}
	shown := handoff.Project(l, 0).PendingSteps
	for i := range 20 {
		long := slices.ContainsFunc(shown, func(s string) bool { return strings.HasPrefix(s, fmt.Sprint(i, "\u2028")) })
		if !long && slices.Contains(shown, fmt.Sprint(i)) {
			return
		}
	}
	t.Errorf("no entry follows one that was left out: %q", shown)
}

// Entries of the ledger that the checkpoint does not show are counted.
func TestProjectCountsWhatIsCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := anyLedger().Draw(t, "ledger")
		c := handoff.Project(l, 0)
		cut := handoff.Cut{}
		if c.Cut != nil {
			cut = *c.Cut
		}
		for name, n := range map[string][3]int{
			"pending":    {cut.PendingSteps, len(c.PendingSteps), len(l.PendingSteps)},
			"steps":      {cut.CompletedSteps, len(c.CompletedSteps), len(l.CompletedSteps)},
			"decisions":  {cut.Decisions, len(c.Decisions), len(l.Decisions)},
			"approaches": {cut.FailedApproaches, len(c.FailedApproaches), len(l.FailedApproaches)},
			"blockers":   {cut.Blockers, len(c.Blockers), len(l.Blockers)},
			"notAllowed": {cut.NotAllowed, len(c.NotAllowed), len(l.NotAllowed)},
			"agents":     {cut.PreviousAgents, len(c.Metadata.PreviousAgents), len(l.Metadata.PreviousAgents)},
		} {
			if n[0]+n[1] != n[2] {
				t.Errorf("%s: %d cut and %d shown of %d", name, n[0], n[1], n[2])
			}
		}
		if (l.CurrentStep == nil) != (c.CurrentStep == nil && cut.CurrentStep == 0) {
			t.Errorf("current step: cut %d, shown %v, has %v", cut.CurrentStep, c.CurrentStep, l.CurrentStep)
		}
		if len(c.CompletedSteps) > 10 {
			t.Errorf("%d completed steps, at most 10", len(c.CompletedSteps))
		}
	})
}

func filled(n int) handoff.Ledger {
	at := time.Date(2026, 2, 28, 10, 0, 0, 0, time.UTC)
	l := handoff.Ledger{Ref: "perdure handoff log --task prd-dark-mode/US-003"}
	l.TaskID, l.Phase, l.NextAction = "prd-dark-mode/US-003", handoff.PhaseImplementation,
		"Wire the toggle in src/components/DarkModeToggle.tsx"
	l.Metadata = handoff.Metadata{CreatedBy: "react-dev", LastUpdatedAt: at, Reason: handoff.ReasonPeriodic}
	l.Verification.ContractRef = "US-003.verificationContract"
	for i := range n {
		path := fmt.Sprintf("src/file%04d.ts", i)
		l.CompletedSteps = append(l.CompletedSteps,
			handoff.Step{Step: fmt.Sprintf("Step %04d", i), Timestamp: at.Add(time.Duration(i) * time.Minute),
				FilesModified: []string{path}})
		l.Decisions = append(l.Decisions, handoff.Decision{Decision: fmt.Sprintf("Decision %04d", i), Rationale: "because",
			Timestamp: at})
		l.FailedApproaches = append(l.FailedApproaches, handoff.FailedApproach{What: fmt.Sprintf("Approach %04d", i),
			Outcome: "failed"})
		l.PendingSteps = append(l.PendingSteps, fmt.Sprintf("Pending %04d", i))
		l.Files = append(l.Files, handoff.FileEntry{Path: path, Exists: true, Hash: fmt.Sprintf("%064x", i)})
	}
	return l
}

// The order of what is cut: the history goes first.
func TestProjectPriority(t *testing.T) {
	t.Parallel()
	l := filled(1000)
	c := handoff.Project(l, 0)
	if n := len(compact(t, c)); n < 1700 {
		t.Errorf("only %d bytes of %d are used", n, handoff.DefaultLimit)
	}
	if len(c.Decisions) < 3 || c.Decisions[len(c.Decisions)-1].Decision != "Decision 0999" {
		t.Errorf("decisions %v, want the latest", c.Decisions)
	}
	if len(c.FailedApproaches) < 3 || c.FailedApproaches[len(c.FailedApproaches)-1].What != "Approach 0999" {
		t.Errorf("approaches %v, want the latest", c.FailedApproaches)
	}
	if len(c.CompletedSteps) < 3 || c.CompletedSteps[len(c.CompletedSteps)-1].Step != "Step 0999" {
		t.Errorf("steps %v, want the latest", c.CompletedSteps)
	}
	if len(c.PendingSteps) < 5 || c.PendingSteps[0] != "Pending 0000" {
		t.Errorf("pending %v, want the next", c.PendingSteps)
	}
	if got := c.Files.Listed["src/file0999.ts"]; got != "0000000000000000"[:12] {
		t.Errorf("hash %q of the latest file", got)
	}
	if c.Files.Rest != 1000-len(c.Files.Listed) || len(c.Files.RestDigest) != 16 ||
		c.Files.RestDigest == strings.Repeat("0", 16) {
		t.Errorf("files %+v, want a digest of the rest", c.Files)
	}
	changed := l
	changed.Files = slices.Clone(l.Files)
	changed.Files[0].Hash = strings.Repeat("a", 64)
	if handoff.Project(changed, 0).Files.RestDigest == c.Files.RestDigest {
		t.Error("another hash of a file that is not listed, but the same digest")
	}
	for range 3 {
		l.Blockers = append(l.Blockers, strings.Repeat("blocked ", 100))
		l.NotAllowed = append(l.NotAllowed, strings.Repeat("do not ", 100))
	}
	if c = handoff.Project(l, 0); len(c.Blockers) != 3 || len(c.NotAllowed) < 1 {
		t.Errorf("%d blockers and %d not allowed, want them before what is below", len(c.Blockers), len(c.NotAllowed))
	}
}

// The limits of single strings hold also if there is space for more.
func TestProjectCaps(t *testing.T) {
	t.Parallel()
	l := handoff.Ledger{}
	l.CurrentStep = &handoff.CurrentStep{Description: "x", PartialWork: strings.Repeat("é", 201)}
	l.Decisions = []handoff.Decision{{Decision: "d", Rationale: strings.Repeat("w", 101)},
		{Decision: "e", Rationale: strings.Repeat("w", 100)}}
	c := handoff.Project(l, 100_000)
	if got, want := c.CurrentStep.PartialWork, strings.Repeat("é", 199)+"…"; got != want {
		t.Errorf("partial work %q, want 199 characters and the mark", got)
	}
	if got, want := c.Decisions[0].Rationale, strings.Repeat("w", 99)+"…"; got != want {
		t.Errorf("rationale %q, want 99 characters and the mark", got)
	}
	if got, want := c.Decisions[1].Rationale, strings.Repeat("w", 100); got != want {
		t.Errorf("rationale %q, want it whole", got)
	}
	l = filled(30)
	if c = handoff.Project(l, 100_000); len(c.CompletedSteps) != 10 || c.Cut.CompletedSteps != 20 ||
		len(c.Decisions) != 30 {
		t.Errorf("%d steps, cut %+v, %d decisions", len(c.CompletedSteps), c.Cut, len(c.Decisions))
	}
}

func TestProjectLeavesTheLedgerAlone(t *testing.T) {
	t.Parallel()
	l := filled(30)
	l.Extra = handoff.Extra{"x-vendor": json.RawMessage(`{"a": 1}`)}
	l.Metadata.PreviousAgents = []string{"a", "b", "c"}
	before, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	handoff.Project(l, 0)
	after, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(before), string(after)); diff != "" {
		t.Errorf("the projection changed the ledger (-before +after):\n%s", diff)
	}
}

// The floors fit into the smallest limit even when every text is the worst.
func TestProjectWorstFloors(t *testing.T) {
	t.Parallel()
	for _, piece := range []string{"\x01", "\u2028", "\xff", "😀", "\"", "x"} {
		worst := strings.Repeat(piece, 3000)
		l := filled(2000)
		l.TaskID, l.NextAction, l.Ref, l.Error = worst, worst, worst, worst
		l.Phase, l.Workspace, l.Snapshot = handoff.Phase(worst), worst, worst
		l.Metadata.CreatedBy, l.Metadata.Reason = worst, handoff.Reason(worst)
		l.Metadata.Extra, l.Extra = handoff.Extra{"a": json.RawMessage("1")}, handoff.Extra{"b": json.RawMessage("1")}
		l.CurrentStep = &handoff.CurrentStep{Description: worst}
		l.Verification = handoff.Verification{ContractRef: worst, Extra: handoff.Extra{"c": json.RawMessage("1")}}
		for i := range 1000 {
			l.Blockers, l.NotAllowed = append(l.Blockers, worst), append(l.NotAllowed, worst)
			l.Metadata.PreviousAgents = append(l.Metadata.PreviousAgents, worst)
			l.Verification.Results = append(l.Verification.Results,
				handoff.Result{Activity: worst + fmt.Sprint(i), Status: handoff.StatusFailed,
					RunAt: l.Metadata.LastUpdatedAt, RanBy: handoff.Runner(worst),
					Extra: handoff.Extra{"x": json.RawMessage(`"` + strings.Repeat("x", 100) + `"`)}})
		}
		c := handoff.Project(l, 1)
		if n := len(compact(t, c)); n > handoff.MinLimit {
			t.Errorf("%q: %d bytes, at most %d", piece, n, handoff.MinLimit)
		}
		wantFirstParts(t, l, c)
	}
}

// An entry is passed over without an encoding only if it certainly does not fit.
func TestProjectPassesOverNothingThatFits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		l := anyLedger().Draw(t, "ledger")
		more := rapid.IntRange(0, 12).Draw(t, "more")
		for range more {
			l.Decisions = append(l.Decisions, anyDecision().Draw(t, "decision"))
			l.PendingSteps = append(l.PendingSteps, anyText().Draw(t, "pending"))
		}
		limit := rapid.IntRange(handoff.MinLimit, handoff.DefaultLimit).Draw(t, "limit")
		if found := handoff.WronglyHopeless(l, limit); found != "" {
			t.Fatal(found)
		}
	})
	for n := range 100 { // the limit is met exactly
		if found := handoff.WronglyHopeless(filled(30), handoff.MinLimit+n); found != "" {
			t.Fatal(n, found)
		}
	}
}

func BenchmarkProject(b *testing.B) {
	l := filled(1000)
	for b.Loop() {
		handoff.Project(l, 0)
	}
}
