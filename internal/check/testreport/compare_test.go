package testreport_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/perdure/perdure/internal/check/testreport"
)

// report builds a report from "outcome identity" lines in the form of rows.
func report(lines ...string) *testreport.Report {
	r := &testreport.Report{Complete: true}
	for _, line := range lines {
		flaky := strings.HasPrefix(line, "flaky ")
		outcome, id, _ := strings.Cut(strings.TrimPrefix(line, "flaky "), " ")
		if outcome == "broken" {
			kind, suite, _ := strings.Cut(id, " ")
			r.Broken = append(r.Broken, testreport.Broken{Suite: suite, Kind: testreport.Kind(kind), Message: "why"})
			if kind == string(testreport.Incomplete) {
				r.Complete, r.Reason = false, "why"
			}
			continue
		}
		suite, name, _ := strings.Cut(id, "::")
		r.Tests = append(r.Tests, testreport.Test{ID: id, Suite: suite, Name: name, Outcome: testreport.Outcome(outcome),
			Flaky: flaky})
	}
	return r
}

func TestCompare(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		before, now []string
		want        []string // "list identity verdict"
		verdict     testreport.Verdict
	}{
		{"same", []string{"passed p::A", "skipped p::B"}, []string{"skipped p::B", "passed p::A"}, nil, testreport.Clean},
		{"lost", []string{"passed p::B", "failed p::A", "skipped p::C"}, []string{"passed p::D"},
			[]string{"lost p::A regressed", "lost p::B regressed", "lost p::C regressed", "new p::D clean"},
			testreport.Regressed},
		{"fails", []string{"passed p::A"}, []string{"failed p::A"}, []string{"newly failing p::A regressed"},
			testreport.Regressed},
		{"does not end", []string{"passed p::A"}, []string{"unfinished p::A"}, []string{"newly failing p::A regressed"},
			testreport.Regressed},
		{"switched off", []string{"passed p::A", "passed p::B", "passed p::C", "failed p::D"},
			[]string{"skipped p::A", "xfail p::B", "xpass p::C", "todo p::D"},
			[]string{"newly skipped p::A regressed", "newly skipped p::B regressed", "newly skipped p::C regressed",
				"newly skipped p::D regressed"}, testreport.Regressed},
		{"off in another way", []string{"xfail p::A"}, []string{"skipped p::A"}, nil, testreport.Clean},
		{"switched on", []string{"skipped p::A", "xfail p::B"}, []string{"passed p::A", "failed p::B"},
			[]string{"enabled p::A clean", "enabled p::B clean"}, testreport.Clean},
		{"fixed", []string{"failed p::A", "passed p::B"}, []string{"passed p::A", "passed p::B"},
			[]string{"fixed p::A fixed baseline"}, testreport.FixedBaseline},
		{"still failing", []string{"failed p::A", "failed p::B"}, []string{"failed p::A", "passed p::B"},
			[]string{"fixed p::B fixed baseline", "still failing p::A baseline broken"}, testreport.BaselineBroken},
		{"flaky", []string{"passed p::A", "failed p::B"}, []string{"flaky failed p::A", "flaky failed p::B"},
			[]string{"flaky p::A clean", "flaky p::B clean"}, testreport.Clean},
		{"new one fails", []string{"passed p::A"}, []string{"passed p::A", "failed p::B"}, []string{"new p::B clean"},
			testreport.Clean},
		{"does not build", []string{"passed p::A", "passed q::B"}, []string{"passed q::B", "broken build p"},
			[]string{"unrun p::A regressed"}, testreport.Regressed},
		{"deleted while another does not build", []string{"passed p::A", "passed q::B"}, []string{"broken build p"},
			[]string{"lost q::B regressed", "unrun p::A regressed"}, testreport.Regressed},
		{"crashed", []string{"passed p::A", "passed p::B"}, []string{"failed p::A", "broken crash p"},
			[]string{"newly failing p::A regressed", "unrun p::B regressed"}, testreport.Regressed},
		{"failed at its end", []string{"passed p::A", "passed p::B"}, []string{"passed p::A", "broken exit p"},
			[]string{"lost p::B regressed"}, testreport.Regressed},
		{"module without its file", []string{"passed tests.a.TestC::A"}, []string{"broken load tests.a"},
			[]string{"unrun tests.a.TestC::A regressed"}, testreport.Regressed},
		{"no end", []string{"passed p::A"}, []string{"broken incomplete "}, []string{"unrun p::A regressed"},
			testreport.Regressed},
		{"no end of a run without losses", []string{"passed p::A"}, []string{"passed p::A", "broken incomplete p"}, nil,
			testreport.Regressed},
		{"never had an end", []string{"passed p::A", "broken incomplete "}, []string{"passed p::A", "broken incomplete "},
			nil, testreport.BaselineBroken},
		{"builds again", []string{"broken build p"}, []string{"passed p::A"}, []string{"new p::A clean"},
			testreport.FixedBaseline},
		{"newly broken, nothing lost", []string{"passed p::A"}, []string{"passed p::A", "broken build q"}, nil,
			testreport.Regressed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := testreport.Compare(report(tt.before...), report(tt.now...))
			var got []string
			for _, list := range []struct {
				name    string
				changes []testreport.Change
			}{
				{"enabled", d.Enabled}, {"fixed", d.Fixed}, {"flaky", d.Flaky}, {"lost", d.Lost}, {"newly failing", d.NewlyFailing},
				{"newly skipped", d.NewlySkipped}, {"new", d.New}, {"still failing", d.StillFailing}, {"unrun", d.Unrun},
			} {
				for _, c := range list.changes {
					got = append(got, fmt.Sprintf("%s %s %s", list.name, c.ID, c.Verdict))
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			if d.Verdict != tt.verdict {
				t.Errorf("verdict %q, want %q", d.Verdict, tt.verdict)
			}
		})
	}
}

func TestFewerExecuted(t *testing.T) {
	t.Parallel()
	d := testreport.Compare(report("passed A", "failed B", "xfail C", "skipped D"),
		report("passed A", "skipped B", "skipped C", "todo D"))
	if d.FewerExecuted != 2 || d.Before.Executed != 3 || d.Now.Executed != 1 || d.Now.Skipped != 2 || d.Now.Todo != 1 {
		t.Errorf("%+v", d)
	}
	if got := len(d.Regressed()); got != 1 {
		t.Errorf("%d regressions", got)
	}
}

func TestMarkFlaky(t *testing.T) {
	t.Parallel()
	first := report("passed A", "failed B", "failed C", "failed D", "failed E", "skipped F")
	again := testreport.MarkFlaky(first, report("passed B", "failed C", "skipped D", "passed F"),
		report("failed B", "failed C"))
	want := []string{"passed A", "flaky failed B", "failed C", "failed D", "failed E", "skipped F"}
	if diff := cmp.Diff(want, rows(again)); diff != "" {
		t.Errorf("tests (-want +got):\n%s", diff)
	}
	if first.Tests[1].Flaky {
		t.Error("the first report was changed")
	}
	var failing []string
	for _, test := range again.Failing() {
		failing = append(failing, test.ID)
	}
	if diff := cmp.Diff([]string{"C", "D", "E"}, failing); diff != "" {
		t.Errorf("failing (-want +got):\n%s", diff)
	}
}

func TestMarkNotRun(t *testing.T) {
	t.Parallel()
	before := report("passed a::A", "passed b::B", "passed b::C", "passed c::D", "passed E")
	now := report("failed a::X", "broken build c")
	marked := testreport.MarkNotRun(before, now, false, "stopped")
	want := []string{"failed a::X", "broken build c", "broken not run b", "broken not run E"}
	if diff := cmp.Diff(want, rows(marked)); diff != "" || len(now.Broken) != 1 {
		t.Errorf("%d broken before (-want +got):\n%s", len(now.Broken), diff)
	}
	d := testreport.Compare(before, marked)
	var unrun []string
	for _, c := range d.Unrun {
		unrun = append(unrun, c.ID+" "+c.Message)
	}
	if diff := cmp.Diff([]string{"E stopped", "b::B stopped", "b::C stopped", "c::D why"}, unrun); diff != "" ||
		len(d.Lost) != 1 {
		t.Errorf("lost %+v, unrun (-want +got):\n%s", d.Lost, diff)
	}
	d = testreport.Compare(before, testreport.MarkNotRun(before, now, true, "stopped"))
	if len(d.Unrun) != 5 || len(d.Lost) != 0 {
		t.Errorf("lost %+v, unrun %+v", d.Lost, d.Unrun)
	}
}

// Every test of the baseline is classified exactly once, the same reports give the same
// result in any order of their tests, and a report does not differ from itself.
func TestCompareProperties(t *testing.T) {
	t.Parallel()
	outcomes := []testreport.Outcome{testreport.Passed, testreport.Failed, testreport.Unfinished, testreport.Skipped,
		testreport.XFail, testreport.XPass, testreport.Todo}
	draw := func(t *rapid.T, name string) *testreport.Report {
		r := report()
		for _, n := range rapid.SliceOfDistinct(rapid.IntRange(0, 9), rapid.ID).Draw(t, name) {
			r.Tests = append(r.Tests, testreport.Test{ID: fmt.Sprintf("p%d::%d", n%3, n), Suite: fmt.Sprintf("p%d", n%3),
				Outcome: rapid.SampledFrom(outcomes).Draw(t, "outcome"), Flaky: rapid.Bool().Draw(t, "flaky")})
		}
		if rapid.Bool().Draw(t, "broken") {
			r.Broken = []testreport.Broken{{Suite: "p1", Kind: testreport.Build}}
		}
		return r
	}
	rapid.Check(t, func(t *rapid.T) {
		before, now := draw(t, "before"), draw(t, "now")
		d := testreport.Compare(before, now)
		count := make(map[string]int)
		for _, list := range [][]testreport.Change{d.Lost, d.Unrun, d.NewlySkipped, d.NewlyFailing, d.StillFailing, d.Fixed,
			d.Enabled, d.New, d.Flaky} {
			for _, c := range list {
				count[c.ID]++
			}
		}
		present := make(map[string]bool)
		for _, test := range now.Tests {
			present[test.ID] = true
		}
		for _, test := range before.Tests {
			if count[test.ID] > 1 || (!present[test.ID] && count[test.ID] != 1) {
				t.Fatalf("test %s is in %d lists", test.ID, count[test.ID])
			}
		}
		for _, tests := range [][]testreport.Test{before.Tests, now.Tests} {
			for i := range tests {
				j := rapid.IntRange(0, i).Draw(t, "swap")
				tests[i], tests[j] = tests[j], tests[i]
			}
		}
		if diff := cmp.Diff(d, testreport.Compare(before, now)); diff != "" {
			t.Fatalf("other order (-want +got):\n%s", diff)
		}
		if self := testreport.Compare(now, now); self.Verdict == testreport.Regressed || len(self.New) > 0 {
			t.Fatalf("a report differs from itself: %+v", self)
		}
	})
}

// Reports are stored without loss.
func TestReportJSON(t *testing.T) {
	t.Parallel()
	r, err := testreport.ParseFiles("", []string{"testdata/pytest.xml"}, testreport.Config{})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back testreport.Report
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, &back); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
