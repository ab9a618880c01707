package coverage_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/perdure/perdure/internal/check/coverage"
)

const text = `package shop

func Total(cart []Item) (int, error) {
	total := 0
	for _, item := range cart {
		if err := item.Check(); err != nil {
			return 0, err
		}
		total += item.Price * item.Count
	}
	return total, nil
}

func Discount(total int) int {
	if total > 10_000 {
		return total / 10
	}
	return 0
}
`

// where lists the lines that moved as "old>new".
func where(before, after string) []string {
	m := coverage.FollowLines([]byte(before), []byte(after))
	var all []string
	for i, line := range strings.Split(strings.TrimSuffix(before, "\n"), "\n") {
		now, ok := m.To(i + 1)
		if !ok && strings.ContainsAny(line, "abcdefghijklmnopqrstuvwxyz0") {
			all = append(all, fmt.Sprintf("%d gone", i+1))
		} else if ok && now != i+1 {
			all = append(all, fmt.Sprintf("%d>%d", i+1, now))
		}
	}
	return all
}

func TestFollowLines(t *testing.T) {
	t.Parallel()
	parts := strings.SplitN(text, "\n\n", 3)
	lines := strings.SplitAfter(text, "\n")
	cut := func(from, to int) string { return strings.Join(slices.Concat(lines[:from-1], lines[to:]), "") }
	tests := []struct {
		name  string
		after string
		want  []string
	}{
		{"same", text, nil},
		{"indented", "if x {\n\t" + strings.ReplaceAll(text, "\n", "\n\t"), []string{
			"1>2", "3>4", "4>5", "5>6", "6>7", "7>8", "9>10", "11>12", "14>15", "15>16", "16>17", "18>19",
		}},
		{"line removed", cut(4, 4), []string{"4 gone", "5>4", "6>5", "7>6", "9>8", "11>10", "14>13", "15>14", "16>15",
			"18>17"}},
		{"line changed", strings.Replace(text, "/ 10\n", "/ 20\n", 1), []string{"16 gone"}},
		{"functions exchanged", parts[0] + "\n\n" + parts[2] + "\n" + parts[1] + "\n", []string{
			"3>10", "4>11", "5>12", "6>13", "7>14", "9>16", "11>18", "14>3", "15>4", "16>5", "18>7",
		}},
		{"all gone", "func Other() error {\n\treturn nil\n}\n", []string{
			"1 gone", "3 gone", "4 gone", "5 gone", "6 gone", "7 gone", "9 gone", "11 gone", "14 gone", "15 gone", "16 gone",
			"18 gone",
		}},
		{"empty", "", []string{
			"1 gone", "3 gone", "4 gone", "5 gone", "6 gone", "7 gone", "9 gone", "11 gone", "14 gone", "15 gone", "16 gone",
			"18 gone",
		}},
		// The other function's "return 0" and "if err" are not those of Total.
		{"replaced by another function", strings.Replace(text, parts[1], "func Count() (n int, err error) {\n"+
			"\tlist, err := load()\n\tif err != nil {\n\t\treturn 0, err\n\t}\n\treturn len(list), nil\n}", 1), []string{
			"3 gone", "4 gone", "5 gone", "6 gone", "7 gone", "9 gone", "11 gone", "14>11", "15>12", "16>13", "18>15",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, where(text, tt.after)); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

// In any two versions, a line maps to an equal one, and no two lines to the same; a text maps
// to itself completely.
func TestFollowProperties(t *testing.T) {
	t.Parallel()
	line := rapid.SampledFrom([]string{"", "}", "return nil", "if err != nil {", "alpha := compute(1)",
		"beta := compute(2)", "gamma := compute(3)", "\tdelta := compute(4)", "a", "b"})
	rapid.Check(t, func(t *rapid.T) {
		before, after := rapid.SliceOfN(line, 0, 40).Draw(t, "before"), rapid.SliceOfN(line, 0, 40).Draw(t, "after")
		m := coverage.FollowLines([]byte(strings.Join(before, "\n")), []byte(strings.Join(after, "\n")))
		seen := make(map[int]bool)
		for i, l := range before {
			now, ok := m.To(i + 1)
			if !ok {
				continue
			}
			if seen[now] || now > len(after) || strings.TrimSpace(after[now-1]) != strings.TrimSpace(l) {
				t.Fatalf("line %d %q became %d", i+1, l, now)
			}
			seen[now] = true
		}
		self := same([]byte(strings.Join(before, "\n")))
		for i, l := range before {
			if now, ok := self.To(i + 1); strings.ContainsAny(l, "abcdefg") && (!ok || now != i+1) {
				t.Fatalf("line %d %q of the same text became %d", i+1, l, now)
			}
		}
	})
}

// Large files without unique lines are not compared cell by cell.
func TestFollowIsBounded(t *testing.T) {
	t.Parallel()
	var before, after strings.Builder
	for i := range 200_000 {
		fmt.Fprintf(&before, "value %d\n", i%7)
		fmt.Fprintf(&after, "value %d\n", i%5)
	}
	m := coverage.FollowLines([]byte("first line of all\n"+before.String()+"middle that is rare\n"+before.String()),
		[]byte("first line of all\n"+after.String()+"middle that is rare\n"+after.String()))
	if now, ok := m.To(200_002); !ok || now != 200_002 {
		t.Errorf("the rare line became %d, %v", now, ok)
	}
}

func TestLost(t *testing.T) {
	t.Parallel()
	const before = "mode: set\n./shop.go:3.1,12.2 1 1\n./shop.go:14.1,19.2 1 1\n./gone.go:1.1,9.2 1 1\n" +
		"./moved.go:1.1,2.2 1 1\n./never.go:1.1,2.2 1 0\n"
	parse := func(text string) *coverage.Profile {
		p, err := coverage.Parse(coverage.Go, strings.NewReader(text), coverage.Config{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	after := strings.Replace(text, "\ttotal := 0\n", "", 1) // one covered line less, all others one up
	follow := func(name string) (string, coverage.LineMap, bool) {
		switch name {
		case "shop.go":
			return name, coverage.FollowLines([]byte(text), []byte(after)), true
		case "moved.go":
			return "internal/auth/moved.go", same([]byte("one\ntwo\n")), true
		case "never.go":
			t.Error("a file without covered lines is followed")
		}
		return "", coverage.LineMap{}, false
	}
	now := "mode: set\n./shop.go:3.1,9.2 1 1\n./internal/auth/moved.go:1.1,1.9 1 1\n./internal/auth/moved.go:2.1,2.9 1 0\n"
	loss := coverage.Lost(parse(before), parse(now), follow)
	var got []string
	for _, f := range loss.Files {
		got = append(got, fmt.Sprintf("%s %s %d/%d %v", f.File, f.Now, f.Lost, f.Still, f.Lines.Ranges()))
	}
	want := []string{"moved.go internal/auth/moved.go 1/2 [{2 2}]",
		"shop.go shop.go 5/10 [{10 10} {13 15} {17 17}]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("loss (-want +got):\n%s", diff)
	}
	if loss.Lost != 6 || loss.Still != 12 || loss.Percent() != 50 {
		t.Errorf("%d of %d, %v %%", loss.Lost, loss.Still, loss.Percent())
	}
	sensitive := loss.Only(func(name string) bool { return strings.HasPrefix(name, "internal/auth/") })
	if sensitive.Lost != 1 || sensitive.Still != 2 || len(sensitive.Files) != 1 {
		t.Errorf("sensitive paths: %+v", sensitive)
	}
	if worst := loss.Worst(1); len(worst) != 1 || worst[0].File != "shop.go" {
		t.Errorf("worst: %+v", worst)
	}
	if kept := coverage.Lost(parse(now), parse(now), func(name string) (string, coverage.LineMap, bool) {
		return name, same([]byte(after)), true
	}); kept.Lost != 0 || kept.Still == 0 || kept.Percent() != 0 {
		t.Errorf("a profile lost against itself: %+v", kept)
	}
}

// TestUnchanged: Unchanged, with a profile without empty lines, gives the same result as
// reading the text.
func TestUnchanged(t *testing.T) {
	t.Parallel()
	text := []byte("func a() {\n\tif x {\n\t\treturn 1\n\t}\n\n\treturn 2\n}\n")
	profile := func(covered ...int) *coverage.Profile {
		f := &coverage.File{}
		f.Code.AddRange(1, 7)
		for _, line := range covered {
			f.Covered.Add(line)
		}
		return &coverage.Profile{Files: map[string]*coverage.File{"a.go": f}}
	}
	follow := func(m coverage.LineMap) func(string) (string, coverage.LineMap, bool) {
		return func(name string) (string, coverage.LineMap, bool) { return name, m, true }
	}
	now := profile(1, 2, 4, 5)
	want := coverage.Lost(profile(1, 2, 3, 4, 5, 6, 7), now, follow(same(text)))
	reduced := profile(1, 2, 3, 4, 5, 6, 7, 9)
	reduced.Files["a.go"].KeepSolid(text)
	got := coverage.Lost(reduced, now, follow(coverage.Unchanged()))
	if diff := cmp.Diff(fmt.Sprint(want), fmt.Sprint(got)); diff != "" || got.Still != 4 || got.Lost != 2 {
		t.Errorf("%+v (-want +got):\n%s", got, diff)
	}
	if lines := got.Files[0].Lines.String(); lines != "3, 6" {
		t.Errorf("lost %s", lines)
	}
	wide := profile(1, 2, 3, 7, 9, 10)
	if lines := wide.Files["a.go"].Covered.String(); lines != "1-3, 7, 9-10" {
		t.Errorf("covered %s", lines)
	}
}

// same maps every line of a text with a letter or digit to itself.
func same(text []byte) coverage.LineMap { return coverage.FollowLines(text, text) }
