package handoff_test

import (
	"encoding/json"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/perdure/perdure/handoff"
)

// anyText is what agents may write: short and huge, multi-byte, escapes,
// control characters, bytes that are not UTF-8.
func anyText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.StringMatching(`[a-zA-Z ./"\\-]{0,60}`),
		rapid.StringN(0, 40, -1),
		rapid.SampledFrom([]string{"", "…", "é…", "\x00\x01", "\u2028\u2029", "\xff\xfe", "日本語のテキスト", "👩‍👩‍👧‍👦 family",
			"<script>&amp;", "line\nbreak\t\"q\""}),
		rapid.Custom(func(t *rapid.T) string {
			piece := rapid.SampledFrom([]string{"a", "é", "漢", "😀", "\"", "\\", "\n", "\x07", "\u2028", "\xff", "word "}).Draw(
				t, "piece")
			return strings.Repeat(piece, rapid.SampledFrom([]int{1, 99, 100, 101, 199, 200, 201, 5000}).Draw(t, "times"))
		}),
	)
}

func anyTime() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		if rapid.IntRange(0, 20).Draw(t, "odd") == 0 {
			return rapid.SampledFrom([]time.Time{{}, time.Unix(1<<55, 0), time.Unix(-1<<55, 0),
				time.Date(2026, 1, 1, 0, 0, 0, 1, time.FixedZone("x", 12345))}).Draw(t, "time")
		}
		return time.Unix(rapid.Int64Range(1_700_000_000, 1_900_000_000).Draw(t, "seconds"),
			rapid.Int64Range(0, 999_999_999).Draw(t, "nanos"))
	})
}

func anyExtra() *rapid.Generator[handoff.Extra] {
	return rapid.Custom(func(t *rapid.T) handoff.Extra {
		n := rapid.SampledFrom([]int{0, 0, 0, 1, 3}).Draw(t, "unknown fields")
		extra := make(handoff.Extra, n)
		for range n {
			raw := rapid.SampledFrom([]string{`1`, `123456789012345678901234567890.10`, `"x"`, `{"a":[1,{"b":null}]}`, `null`,
				`"` + strings.Repeat("y", 3000) + `"`}).Draw(t, "value")
			extra[rapid.SampledFrom([]string{"x-vendor", "phase2", "note", "ünï", "a\"b"}).Draw(t, "name")] = json.RawMessage(
				raw)
		}
		return extra
	})
}

// lists are mostly short and sometimes long.
func list[T any](t *rapid.T, g *rapid.Generator[T], name string) []T {
	if rapid.IntRange(0, 7).Draw(t, "long "+name) == 0 {
		one := rapid.SliceOfN(g, 1, 5).Draw(t, name)
		var all []T
		for range rapid.SampledFrom([]int{20, 1000}).Draw(t, "times "+name) {
			all = append(all, one...)
		}
		return all
	}
	return rapid.SliceOfN(g, 0, 6).Draw(t, name)
}

func anyPath() *rapid.Generator[string] {
	return rapid.OneOf(rapid.StringMatching(`src/[a-z]{1,12}/[a-z]{1,12}\.(go|ts)`), anyText())
}

func anyStep() *rapid.Generator[handoff.Step] {
	return rapid.Custom(func(t *rapid.T) handoff.Step {
		return handoff.Step{
			Step: anyText().Draw(t, "step"), Timestamp: anyTime().Draw(t, "at"), RunAgain: rapid.Bool().Draw(t, "again"),
			FilesCreated: list(t, anyPath(), "created"), FilesModified: list(t, anyPath(), "modified"),
			Extra: anyExtra().Draw(t, "extra"),
		}
	})
}

func anyDecision() *rapid.Generator[handoff.Decision] {
	return rapid.Custom(func(t *rapid.T) handoff.Decision {
		return handoff.Decision{Decision: anyText().Draw(t, "decision"), Rationale: anyText().Draw(t, "why"),
			Timestamp: anyTime().Draw(t, "at"), Extra: anyExtra().Draw(t, "extra")}
	})
}

func anyApproach() *rapid.Generator[handoff.FailedApproach] {
	return rapid.Custom(func(t *rapid.T) handoff.FailedApproach {
		return handoff.FailedApproach{What: anyText().Draw(t, "what"), Outcome: anyText().Draw(t, "outcome"),
			Why: anyText().Draw(t, "why"), Extra: anyExtra().Draw(t, "extra")}
	})
}

func anyResult() *rapid.Generator[handoff.Result] {
	return rapid.Custom(func(t *rapid.T) handoff.Result {
		return handoff.Result{
			Activity: anyText().Draw(t, "activity"), RunAt: anyTime().Draw(t, "at"), Extra: anyExtra().Draw(t, "extra"),
			Status: rapid.SampledFrom([]handoff.Status{"", handoff.StatusPassed, handoff.StatusFailed, handoff.StatusPending,
				"odd"}).Draw(t, "status"),
			RanBy: rapid.SampledFrom([]handoff.Runner{"", handoff.RanByAgent, handoff.RanByEngine}).Draw(t, "by"),
		}
	})
}

func anyEntry() *rapid.Generator[handoff.FileEntry] {
	return rapid.Custom(func(t *rapid.T) handoff.FileEntry {
		e := handoff.FileEntry{Path: anyPath().Draw(t, "path"), Exists: rapid.Bool().Draw(t, "exists")}
		if e.Exists {
			e.Hash = rapid.SampledFrom([]string{"", strings.Repeat("0a", 32), strings.Repeat("f1", 32), "short"}).Draw(t, "hash")
		}
		return e
	})
}

func anyLedger() *rapid.Generator[handoff.Ledger] {
	return rapid.Custom(func(t *rapid.T) handoff.Ledger {
		l := handoff.Ledger{Ref: anyText().Draw(t, "ref"), Workspace: anyText().Draw(t, "workspace"),
			Snapshot: anyText().Draw(t, "snapshot")}
		l.TaskID = anyText().Draw(t, "task")
		l.Phase = handoff.Phase(anyText().Draw(t, "phase"))
		l.NextAction = anyText().Draw(t, "next")
		if rapid.Bool().Draw(t, "has current") {
			l.CurrentStep = &handoff.CurrentStep{Description: anyText().Draw(t, "current"),
				StartedAt:   anyTime().Draw(t, "started"),
				PartialWork: anyText().Draw(t, "partial"), Extra: anyExtra().Draw(t, "extra")}
		}
		l.PendingSteps = list(t, anyText(), "pending")
		l.CompletedSteps = list(t, anyStep(), "steps")
		l.Decisions = list(t, anyDecision(), "decisions")
		l.FailedApproaches = list(t, anyApproach(), "approaches")
		l.Blockers = list(t, anyText(), "blockers")
		l.NotAllowed = list(t, anyText(), "not allowed")
		l.Verification = handoff.Verification{ContractRef: anyText().Draw(t, "contract"),
			Results: list(t, anyResult(), "results"), Extra: anyExtra().Draw(t, "extra")}
		l.Metadata = handoff.Metadata{CreatedBy: anyText().Draw(t, "by"), LastUpdatedAt: anyTime().Draw(t, "updated"),
			Reason: handoff.Reason(anyText().Draw(t, "reason")), PreviousAgents: list(t, anyText(), "agents"),
			Extra: anyExtra().Draw(t, "extra")}
		l.Error = anyText().Draw(t, "error")
		l.Extra = anyExtra().Draw(t, "extra")
		l.Files = list(t, anyEntry(), "files")
		return l
	})
}
