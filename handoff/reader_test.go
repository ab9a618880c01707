package handoff_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/handoff"
)

// story is the work on a task, made of ordinary sentences.
type story struct {
	rng *rand.Rand
	l   handoff.Ledger
}

func (s *story) word(list string) string {
	words := strings.Fields(list)
	return words[s.rng.IntN(len(words))]
}

func (s *story) path() string {
	return fmt.Sprintf("%s/%s_%s.%s", s.word("src/components src/store internal/api cmd/server lib/parser tests docs"),
		s.word("theme session invoice upload search export login cache"),
		s.word("toggle handler view model queue client policy index"), s.word("go ts py rs tsx md"))
}

// sentence is 30 to 160 characters long and unlike the others.
func (s *story) sentence() string {
	text := fmt.Sprintf("%s the %s of %s", s.word("Move Write Replace Split Validate Document Cache Rename Extract"),
		s.word("state handler schema retry test migration token parser"), s.path())
	for s.rng.IntN(2) == 0 && len(text) < 160 {
		text += fmt.Sprintf(", %s %s %s", s.word("so-that because unless before after while"),
			s.word("the-caller each-request the-old-client every-test the-daemon one-user"),
			s.word("waits fails retries logs-in disconnects expects-it"))
	}
	return text
}

// newStory tells a story of the size that the longest ordinary tasks have.
func newStory(seed uint64) handoff.Ledger {
	s := &story{rng: rand.New(rand.NewPCG(seed, 1))}
	at := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	l := &s.l
	l.Ref, l.TaskID = "perdure handoff log --task prd-shop/US-014", "prd-shop/US-014"
	l.Phase, l.NextAction = handoff.PhaseImplementation, s.sentence()
	l.Metadata = handoff.Metadata{CreatedBy: "react-dev", LastUpdatedAt: at, Reason: handoff.ReasonContextLimit}
	l.Verification.ContractRef = "US-014.verificationContract"
	l.CurrentStep = &handoff.CurrentStep{Description: s.sentence(), StartedAt: at, PartialWork: s.sentence()}
	for i := range 10 + s.rng.IntN(30) {
		path := s.path()
		l.CompletedSteps = append(l.CompletedSteps, handoff.Step{Step: s.sentence(), FilesModified: []string{path},
			Timestamp: at.Add(time.Duration(i) * time.Minute)})
		l.Files = append(l.Files, handoff.FileEntry{Path: path, Exists: true, Hash: fmt.Sprintf("%064x", i)})
	}
	for i := range 3 + s.rng.IntN(10) {
		l.Decisions = append(l.Decisions, handoff.Decision{Decision: s.sentence(), Rationale: s.sentence(),
			Timestamp: at.Add(time.Duration(i) * time.Hour)})
	}
	for range 3 + s.rng.IntN(10) {
		l.PendingSteps = append(l.PendingSteps, s.sentence())
	}
	for range 1 + s.rng.IntN(4) {
		l.FailedApproaches = append(l.FailedApproaches, handoff.FailedApproach{What: s.sentence(), Why: s.sentence()})
	}
	for range s.rng.IntN(4) {
		l.Blockers = append(l.Blockers, s.sentence())
	}
	for range s.rng.IntN(3) {
		l.NotAllowed = append(l.NotAllowed, s.sentence())
	}
	for i := range s.rng.IntN(6) {
		l.Verification.Results = append(l.Verification.Results, handoff.Result{Activity: fmt.Sprint(i, s.path()),
			Status: []handoff.Status{handoff.StatusPassed, handoff.StatusFailed}[s.rng.IntN(2)], RunAt: at})
	}
	return s.l
}

// document is what a reader sees of a checkpoint: JSON, with none of this package.
type document struct {
	NextAction   string
	CurrentStep  struct{ Description, PartialWork string }
	PendingSteps []string
	Completed    []struct{ Step string } `json:"completedSteps"`
	Decisions    []struct{ Decision, Rationale string }
	Failed       []struct{ What, Why string } `json:"failedApproaches"`
	Blockers     []string
	NotAllowed   []string
	Verification struct {
		ContractRef string
		Results     []struct{ Activity, Status string }
	}
	Cut struct{ PendingSteps, CompletedSteps, Decisions int }
}

// last returns entry i of a list from its end, "" if there is none.
func last[T any](list []T, i int, text func(T) string) string {
	if i >= len(list) {
		return ""
	}
	return text(list[len(list)-1-i])
}

// answers are the answers of a reader who has only the document, and answersOf those of one who
// knows everything. An answer that is a text may be its beginning.
func (d *document) answers() map[string]string {
	failing := ""
	for _, r := range d.Verification.Results {
		if r.Status == "failed" {
			failing = r.Activity
			break
		}
	}
	return map[string]string{
		"what to do first":        d.NextAction,
		"what is in progress":     d.CurrentStep.Description,
		"what is done of it":      d.CurrentStep.PartialWork,
		"what comes then":         strings.Join(d.PendingSteps[:min(3, len(d.PendingSteps))], "\n"),
		"how much remains":        fmt.Sprint(len(d.PendingSteps) + d.Cut.PendingSteps),
		"how much is done":        fmt.Sprint(len(d.Completed) + d.Cut.CompletedSteps),
		"what was done last":      last(d.Completed, 0, func(s struct{ Step string }) string { return s.Step }),
		"what was decided last":   last(d.Decisions, 0, decided),
		"what was decided before": last(d.Decisions, 2, decided),
		"what failed":             last(d.Failed, 0, failed),
		"what blocks":             strings.Join(d.Blockers, "\n"),
		"what is the check":       d.Verification.ContractRef + "\n" + failing,
	}
}

func failed(f struct{ What, Why string }) string { return f.What + "\n" + f.Why }

func decided(d struct{ Decision, Rationale string }) string { return d.Decision + "\n" + d.Rationale }

func answersOf(t *testing.T, l *handoff.Ledger) map[string]string {
	t.Helper()
	raw, err := json.Marshal(l.Work)
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	return d.answers()
}

// answered reports whether each line of an answer is that of the truth, or 24 characters of its
// beginning at least.
func answered(got, want string) bool {
	lines, whole := strings.Split(got, "\n"), strings.Split(want, "\n")
	if len(lines) != len(whole) {
		return false
	}
	for i := range lines {
		head, cut := strings.CutSuffix(lines[i], "…")
		if lines[i] != whole[i] && !(cut && len(head) >= 24 && strings.HasPrefix(whole[i], head)) {
			return false
		}
	}
	return true
}

// TestReader: a reader who has only the 2 KB of the checkpoint can answer what the next agent
// has to know.
func TestReader(t *testing.T) {
	t.Parallel()
	const stories, must = 200, 95 // percent
	wrong := make(map[string]int)
	questions, right := 0, 0
	for seed := range stories {
		l := newStory(uint64(seed))
		text := compact(t, handoff.Project(l, 0))
		var d document
		if err := json.Unmarshal([]byte(text), &d); err != nil || len(text) > handoff.DefaultLimit {
			t.Fatalf("%v, %d bytes", err, len(text))
		}
		got := d.answers()
		for question, want := range answersOf(t, &l) {
			questions++
			if answered(got[question], want) {
				right++
			} else {
				wrong[question]++
			}
		}
	}
	t.Logf("%d of %d answers are right; wrong: %v", right, questions, wrong)
	if questions != 12*stories || right*100 < must*questions {
		t.Errorf("%d of %d answers are right, must be %d %%; wrong: %v", right, questions, must, wrong)
	}
}
