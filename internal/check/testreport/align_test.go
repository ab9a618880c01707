package testreport_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/check/testreport"
)

// noon is the end of the second run of a baseline.
var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// reportOf returns a complete report: a name with "-" before it is a test that failed.
func reportOf(names ...string) *testreport.Report {
	r := &testreport.Report{Complete: true}
	for _, name := range names {
		outcome := testreport.Passed
		if rest, failed := strings.CutPrefix(name, "-"); failed {
			name, outcome = rest, testreport.Failed
		}
		suite, own, _ := strings.Cut(name, "::")
		r.Tests = append(r.Tests, testreport.Test{ID: name, Suite: suite, Name: own, Outcome: outcome})
	}
	return r
}

// renamed are names of the same test in two runs of a baseline and in a later one.
var renamed = map[string][3]string{
	"port": {"a.js::listens on 23817", "a.js::listens on 20412", "a.js::listens on 28001"},
	"host and port": {
		"a::GET http://127.0.0.1:40123/x",
		"a::GET http://127.0.0.1:33999/x",
		"a::GET http://127.0.0.1:5555/x",
	},
	"suite with a port": {"server :40123::get", "server :40177::get", "server :50000::get"},
	"UUID": {
		"t.py::test_get[44499a74-6ba1-4c39-bc1e-7ee63635429d-None]",
		"t.py::test_get[b410692e-f635-4ab5-a1f9-c2272f73784c-None]",
		"t.py::test_get[dd52e0b3-f635-4ab5-a1f9-c2272f73784d-None]",
	},
	"temporary folder": {
		"a::reads /tmp/build-x7Gk2/in.txt",
		"a::reads /tmp/build-ppQ11/in.txt",
		"a::reads /tmp/build-00aaZ/in.txt",
	},
	"macOS folder": {
		"a::reads /var/folders/zz/a1/T/x",
		"a::reads /var/folders/zz/b2/T/y",
		"a::reads /var/folders/zz/c3/T/z",
	},
	"pytest folder": {
		"t.py::test_p[/tmp/pytest-of-me/pytest-1/a0]",
		"t.py::test_p[/tmp/pytest-of-me/pytest-2/a0]",
		"t.py::test_p[/tmp/pytest-of-me/pytest-9/a0]",
	},
	"bats timing":         {"add in 6ms", "add in 6ms", "add in 11ms"},
	"bats JUnit":          {"a.bats::mul # in 20 ms", "a.bats::mul # in 20 ms", "a.bats::mul # in 21 ms"},
	"time in parentheses": {"a::sorts (12 ms)", "a::sorts (12 ms)", "a::sorts (9 ms)"},
	"duration":            {"a::took 1.52s for all", "a::took 1.61s for all", "a::took 0.98s for all"},
	"address": {
		"t.py::test_x[<app.Box object at 0x7f1c2e3a4d50>]",
		"t.py::test_x[<app.Box object at 0x7fa2c111ab10>]",
		"t.py::test_x[<app.Box object at 0x7f00cc998860>]",
	},
	"Java object": {"A::runs(Foo@1b2c3d4)", "A::runs(Foo@7f9a81e)", "A::runs(Foo@22c1a0b)"},
	"commit":      {"a::build of 3f2a9c1", "a::build of 3f2a9c1b", "a::build of 90ab12c"},
	"seed": {
		"a::shuffles with seed 81",
		"a::shuffles with seed 7",
		"a::shuffles with seed 1932",
	},
	"PID":            {"a::worker pid=412", "a::worker pid=431", "a::worker pid=9"},
	"current day":    {"a::report of 2026-11-28", "a::report of 2026-11-28", "a::report of 2026-11-29"},
	"current minute": {"a::cron at 11:59", "a::cron at 11:59", "a::cron at 12:31"},
	"time stamp": {
		"a::saved 2026-11-28T11:58:03.123Z",
		"a::saved 2026-11-28T11:58:04.007Z",
		"a::saved 2026-11-28T13:00:00.000Z",
	},
	"JavaScript date": {
		"a::on Sat Nov 28 2026 11:58:03 GMT+0000 (Coordinated Universal Time)",
		"a::on Sat Nov 28 2026 11:58:09 GMT+0000 (Coordinated Universal Time)",
		"a::on Sun Nov 29 2026 00:00:01 GMT+0000 (Coordinated Universal Time)",
	},
	"Unix time":      {"a::id 1795867200123", "a::id 1795867200999", "a::id 1795867300000"},
	"generated list": {"a::sorts [3,1,2]", "a::sorts [9]", "a::sorts [5,-1,0,22]"},
	"generated text": {"a::trims \"kqz \"", "a::trims \"mmw vp \"", "a::trims \"a\""},
	"made up name": {
		"a::greets Ms. Ottilie Kunze",
		"a::greets Dr. Hans Blau",
		"a::greets Mr. Yusuf Can",
	},
	"set": {
		"t.py::test_s[{'a', 'b'}]",
		"t.py::test_s[{'b', 'a'}]",
		"t.py::test_s[{'a', 'b'}]",
	},
	"random fraction": {"a::rounds 0.7364518273", "a::rounds 0.1192837465", "a::rounds 0.9988776655"},
	"Go subtest": {
		"p::TestServe/127.0.0.1:34567",
		"p::TestServe/127.0.0.1:41001",
		"p::TestServe/127.0.0.1:9999",
	},
}

// TestUnstableNamesAreOneTest: a test whose name differs from run to run is the same one,
// among stable tests, and its removal is still seen.
func TestUnstableNamesAreOneTest(t *testing.T) {
	t.Parallel()
	for kind, names := range renamed {
		baseline := testreport.MarkUnstable(reportOf("a::adds", names[0], "-a::subtracts"),
			reportOf("a::adds", names[1], "-a::subtracts"), noon)
		later := reportOf("a::subtracts", names[2], "a::adds", "a::is new")
		d := testreport.Compare(baseline, later)
		if len(d.Lost) != 0 || len(d.New) != 1 || len(d.Fixed) != 1 || d.Verdict != testreport.FixedBaseline {
			t.Errorf("%s: lost %+v, new %+v, fixed %+v", kind, d.Lost, d.New, d.Fixed)
		}
		d = testreport.Compare(baseline, reportOf("a::subtracts", "a::adds", "other::is new"))
		if len(d.Lost) != 1 || d.Lost[0].ID != names[0] {
			t.Errorf("%s removed: lost %+v", kind, d.Lost)
		}
		d = testreport.Compare(baseline, reportOf("a::subtracts", "a::adds", "-"+names[2]))
		if len(d.NewlyFailing) != 1 || len(d.Lost) != 0 {
			t.Errorf("%s fails: %+v", kind, d)
		}
		if !slices.Contains([]string{"generated text", "made up name", "set", "generated list"}, kind) &&
			!reportOf(names[0]).LooksUnstable() {
			t.Errorf("%s does not look unstable: %s", kind, names[0])
		}
	}
}

// TestStableNamesStayApart: tests whose names are the same in two runs match by their whole
// name only, however much another name looks alike.
func TestStableNamesStayApart(t *testing.T) {
	t.Parallel()
	for was, now := range map[string]string{
		"a::adds 2 and 5":         "a::adds 3 and 5",
		"a::adds":                 "a::adds 44499a74-6ba1-4c39-bc1e-7ee63635429d",
		"a::rejects port 80":      "a::rejects port 81",
		"a::times out after 5s":   "a::times out after 6s",
		"a::leap year 2024-02-29": "a::leap year 2023-02-28",
		"a::opens at 02:15":       "a::opens at 03:45",
		"a::status 404":           "a::status 200",
		"a::id 550e8400-e29b-41d4-a716-446655440000": "a::id 550e8400-e29b-41d4-a716-446655440001",
		"a::parses 0xdeadbeef01":                     "a::parses 0xdeadbeef02",
		"t.py::test_add[2-5-7]":                      "t.py::test_add[2-5--3]",
		"p::TestAdd/2+5":                             "p::TestAdd/0+0",
		"a::reads /tmp/in.txt":                       "a::reads /tmp/out.txt",
		"a::listens on x":                            "a::listens on 23817",
		"a::add in words":                            "a::add in 6ms",
	} {
		first := reportOf("a::other", was, "a::listens on 23817 or so")
		second := reportOf("a::other", was, "a::listens on 20412 or so")
		baseline := testreport.MarkUnstable(first, second, noon)
		d := testreport.Compare(baseline, reportOf("a::other", now, "a::listens on 20001 or so"))
		if len(d.Lost) != 1 || d.Lost[0].ID != was || len(d.New) != 1 {
			t.Errorf("%s became %s: lost %+v, new %+v", was, now, d.Lost, d.New)
		}
	}
}

// TestUnstableTestsAreCounted: of several tests with the same form, the missing ones
// are lost, those that failed first.
func TestUnstableTestsAreCounted(t *testing.T) {
	t.Parallel()
	baseline := testreport.MarkUnstable(reportOf("a::port 1001", "-a::port 1002", "a::port 1003", "a::adds"),
		reportOf("a::port 2001", "a::port 2002", "-a::port 2003", "a::adds"), noon)
	d := testreport.Compare(baseline, reportOf("a::port 3001", "a::port 3002", "a::adds"))
	if len(d.Lost) != 1 || d.Lost[0].ID != "a::port 1002" {
		t.Errorf("lost %+v", d.Lost)
	}
	d = testreport.Compare(baseline, reportOf("-a::port 3001", "a::port 3002", "a::port 3003", "a::port 3004", "a::adds"))
	if len(d.Lost) != 0 || len(d.NewlyFailing) != 0 || len(d.StillFailing) != 1 || len(d.New) != 1 {
		t.Errorf("%+v", d)
	}
	d = testreport.Compare(baseline, reportOf("a::port 3001", "a::port 3002", "a::port 3003"))
	if len(d.Lost) != 1 || d.Lost[0].ID != "a::adds" {
		t.Errorf("a stable test is not replaced by an unstable one: %+v", d.Lost)
	}
}

// TestPresenceOfTests: a test that a second run of the baseline does not have is not missed
// later; a second run that did not end proves nothing.
func TestPresenceOfTests(t *testing.T) {
	t.Parallel()
	first := reportOf("a::adds", "a::on Linux", "a::slow one")
	d := testreport.Compare(testreport.MarkUnstable(first, reportOf("a::adds", "a::on Linux"), noon), reportOf("a::adds"))
	if len(d.Lost) != 1 || d.Lost[0].ID != "a::on Linux" {
		t.Errorf("lost %+v", d.Lost)
	}
	ended := reportOf("a::adds", "a::on Linux")
	ended.Complete = false
	for what, second := range map[string]*testreport.Report{"ended early": ended, "has few tests": reportOf("a::adds")} {
		d := testreport.Compare(testreport.MarkUnstable(first, second, noon), reportOf("a::adds"))
		if len(d.Lost) != 2 {
			t.Errorf("second run %s: lost %+v", what, d.Lost)
		}
	}
}

// TestEqualNamesInAnyOrder: tests with one name are compared by how many passed, since their
// order may be random.
func TestEqualNamesInAnyOrder(t *testing.T) {
	t.Parallel()
	baseline := reportOf("a::works", "-a::works#2", "p::T/x", "-p::T/x#01", "a::fixes #12", "-a::fixes #13")
	d := testreport.Compare(baseline,
		reportOf("-a::works", "a::works#2", "-p::T/x", "p::T/x#01", "a::fixes #12", "-a::fixes #13"))
	if len(d.NewlyFailing) != 0 || len(d.Fixed) != 0 || len(d.StillFailing) != 3 {
		t.Errorf("%+v", d)
	}
	d = testreport.Compare(baseline, reportOf("-a::works", "p::T/x", "p::T/x#01", "-a::fixes #12", "a::fixes #13"))
	if len(d.Lost) != 1 || len(d.NewlyFailing) != 2 {
		t.Errorf("%+v", d)
	}
}

// TestNewTestsInACopy: a new test with an unstable name is the same one in a clean copy.
func TestNewTestsInACopy(t *testing.T) {
	t.Parallel()
	baseline := testreport.MarkUnstable(reportOf("a::adds"), reportOf("a::adds"), noon)
	candidate := testreport.Align(baseline, reportOf("a::adds", "a::listens on 4711", "a::greets Ada"))
	d := testreport.Compare(candidate, reportOf("a::adds", "a::listens on 4799", "a::greets Bob"))
	if len(d.Lost) != 0 || d.Verdict != testreport.Clean {
		t.Errorf("%+v", d)
	}
	d = testreport.Compare(candidate, reportOf("a::adds 2", "a::listens on 4799", "a::greets Bob"))
	if len(d.Lost) != 1 || d.Lost[0].ID != "a::adds" {
		t.Errorf("%+v", d.Lost)
	}
}

// TestBaselineOfAnOlderVersion: names with volatile forms match although the check ran once
// only, because no second run showed which names are stable.
func TestBaselineOfAnOlderVersion(t *testing.T) {
	t.Parallel()
	baseline := reportOf("a::GET http://localhost:4001/x", "a::status 404")
	d := testreport.Compare(baseline, reportOf("a::GET http://localhost:4777/x", "a::status 200"))
	if len(d.Lost) != 1 || d.Lost[0].ID != "a::status 404" {
		t.Errorf("%+v", d.Lost)
	}
}
