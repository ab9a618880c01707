package outline

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/clip"
)

// The timeline counts each moment of each call once, and each ended task.
func TestTimelineLosesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := &view{}
		var sum float64
		for range rapid.IntRange(1, 30).Draw(t, "calls") {
			from := rapid.Int64Range(1_000_000, 9_000_000).Draw(t, "from")
			to := from + rapid.Int64Range(0, 3_000_000).Draw(t, "length")
			v.calls = append(v.calls, span{from, to})
			sum += float64(to - from)
		}
		var ended int64
		for range rapid.IntRange(0, 30).Draw(t, "tasks") {
			state := rapid.SampledFrom([]perdure.State{perdure.Completed, perdure.Failed, perdure.Running}).Draw(t, "state")
			one := &task{state: state, started: rapid.Int64Range(1_000_000, 9_000_000).Draw(t, "started")}
			if state != perdure.Running {
				one.ended = one.started + rapid.Int64Range(0, 5_000_000).Draw(t, "ran")
				if rapid.Bool().Draw(t, "imported") {
					one.started = 0 // unknown
				}
				ended++
			}
			v.tasks = append(v.tasks, one)
		}
		line := v.timeline()
		if len(line.Steps) > maxBuckets {
			t.Fatalf("%d steps", len(line.Steps))
		}
		if len(line.Steps) > 0 && line.Start.UnixMicro() < 1_000_000 {
			t.Fatalf("begins at %s, before all else", line.Start)
		}
		var got float64
		for _, s := range line.Steps {
			got += s.Running * line.StepSeconds * 1e6
			ended -= s.Completed + s.Failed
		}
		if len(line.Steps) > 0 && (math.Abs(got-sum) > 1 || ended != 0) {
			t.Fatalf("%g microseconds of %g, %d tasks missing: %+v", got, sum, ended, line)
		}
	})
}

// An outline stays within its bound and stands for every task once.
func TestOutlineStandsForAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		states := []perdure.State{perdure.Completed, perdure.Completed, perdure.Completed, perdure.Failed, perdure.Running}
		total := 0
		var grow func(depth int) *task
		grow = func(depth int) *task {
			total++
			n := &task{id: int64(total), depth: depth, state: rapid.SampledFrom(states).Draw(t, "state")}
			if depth < 3 {
				for range rapid.IntRange(0, 14).Draw(t, "children") {
					n.children = append(n.children, grow(depth+1))
				}
			}
			return n
		}
		root := grow(0)
		root.markEven()
		f := folder{levels: 4}
		for ; ; f.levels-- {
			if f.parts = f.parts[:0]; f.draw([]*task{root}, 0) || f.levels <= 1 {
				break
			}
		}
		if len(f.parts) > maxOutline+1 {
			t.Fatalf("%d rows", len(f.parts))
		}
		var sum sumUp
		shown := int64(0)
		for _, p := range f.parts {
			if !p.whole {
				shown++
				continue
			}
			for _, one := range p.tasks {
				sum.add(one)
			}
		}
		if shown+sum.tasks != int64(total) {
			t.Fatalf("rows stand for %d tasks of %d", shown+sum.tasks, total)
		}
	})
}

// TestOutlineRestIsUnlike: a row that joins unlike siblings has only the marks and the error that
// all of them have.
func TestOutlineRestIsUnlike(t *testing.T) {
	t.Parallel()
	boom, other := perdure.TaskError{Kind: "model", Message: "boom"}, perdure.TaskError{Kind: "model", Message: "other"}
	failed := func(why perdure.TaskError) *task { return &task{state: perdure.Failed, why: &why} }
	lacks := &task{state: perdure.Completed, partial: true, skipped: true}
	for name, test := range map[string]struct {
		tasks []*task
		mark  bool
		why   *perdure.TaskError
	}{
		"alike":            {[]*task{failed(boom), failed(boom)}, false, &boom},
		"unlike errors":    {[]*task{failed(boom), failed(other)}, false, nil},
		"first failed":     {[]*task{failed(boom), {state: perdure.Completed}}, false, nil},
		"last failed":      {[]*task{{state: perdure.Completed}, failed(boom)}, false, nil},
		"all marked":       {[]*task{lacks, lacks}, true, nil},
		"only first":       {[]*task{lacks, {state: perdure.Completed}}, false, nil},
		"first and failed": {[]*task{lacks, failed(boom)}, false, nil},
	} {
		row, err := (&view{}).outlineRow(t.Context(), part{level: 1, tasks: test.tasks, whole: true})
		if err != nil || row.Partial != test.mark || row.Skipped != test.mark || (row.Error == nil) != (test.why == nil) ||
			row.Error != nil && *row.Error != *test.why {
			t.Errorf("%s: the row is %+v, %v", name, row.OutlineRow, err)
		}
	}
}

func FuzzHead(f *testing.F) {
	f.Add("a text", 3)
	f.Add(strings.Repeat("ä", 300), 120)
	f.Fuzz(func(t *testing.T, text string, runes int) {
		runes = max(1, min(runes, 1000))
		got := clip.Runes(text, runes)
		if utf8.RuneCountInString(got) > runes+1 {
			t.Fatalf("%q has more than %d characters", got, runes)
		}
	})
}
