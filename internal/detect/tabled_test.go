package detect_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/detect"
)

// A Go test becomes a row of a table, whatever its failure message was.
func TestTabled(t *testing.T) {
	t.Parallel()
	const (
		valid = "\nfunc TestValidate(t *testing.T) {\n\tif err := Validate(berlin()); err != nil {\n" +
			"\t\tt.Errorf(\"Validate: %v\", err)\n\t}\n}\n"
		long = "\nfunc TestValidateLongStreet(t *testing.T) {\n\ta := berlin()\n\ta.Street = strings.Repeat(\"x\", 61)\n" +
			"\tif Validate(a) == nil {\n\t\tt.Error(\"a street of 61 characters is accepted\")\n\t}\n}\n"
		table = "\nfunc TestValidate(t *testing.T) {\n\tfor name, tt := range map[string]struct {\n\t\tstreet string\n" +
			"\t\tok     bool\n\t}{\n\t\t\"as printed\":  {\"Torstr. 1\", true},\n" +
			"\t\t\"long street\": {strings.Repeat(\"x\", 61), false},\n\t} {\n\t\tt.Run(name, func(t *testing.T) {\n" +
			"\t\t\ta := berlin()\n\t\t\ta.Street = tt.street\n\t\t\tif err := Validate(a); (err == nil) != tt.ok {\n" +
			"\t\t\t\tt.Errorf(\"Validate = %v, want ok %v\", err, tt.ok)\n\t\t\t}\n\t\t})\n\t}\n}\n"
		votes = "\nfunc TestVoteErrors(t *testing.T) {\n\tp := open(t)\n" +
			"\tif err := p.Vote(\"ada\", \"beer\"); !errors.Is(err, ErrOption) {\n\t\tt.Errorf(\"beer: %v\", err)\n\t}\n" +
			"\tif err := p.Vote(\"ada\", \"milk\"); !errors.Is(err, ErrTwice) {\n\t\tt.Errorf(\"twice: %v\", err)\n\t}\n" +
			"\tp.Close()\n\tif err := p.Vote(\"bob\", \"tea\"); !errors.Is(err, ErrClosed) {\n" +
			"\t\tt.Errorf(\"closed: %v\", err)\n\t}\n}\n"
		steps = "\nfunc TestVote(t *testing.T) {\n\tp := open(t)\n\tfor _, step := range []struct {\n" +
			"\t\tname, voter, option string\n\t\tclosed              bool\n\t\twant                error\n\t}{\n" +
			"\t\t{name: \"no such option\", voter: \"ada\", option: \"beer\", want: ErrOption},\n" +
			"\t\t{name: \"second vote\", voter: \"ada\", option: \"milk\", want: ErrTwice},\n" +
			"\t\t{name: \"too late\", voter: \"bob\", option: \"tea\", closed: true, want: ErrClosed},\n\t} {\n" +
			"\t\tt.Run(step.name, func(t *testing.T) {\n\t\t\tif step.closed {\n\t\t\t\tp.Close()\n\t\t\t}\n" +
			"\t\t\tif err := p.Vote(step.voter, step.option); !errors.Is(err, step.want) {\n" +
			"\t\t\t\tt.Errorf(\"got %v, want %v\", err, step.want)\n\t\t\t}\n\t\t})\n\t}\n}\n"
		late = "\t\t{name: \"too late\", voter: \"bob\", option: \"tea\", closed: true, want: ErrClosed},\n"
	)
	for _, test := range []struct{ name, old, now, want string }{
		{"a row of a table that was a test", valid + long, table, ""},
		{"a table without the row", valid + long,
			strings.Replace(table, "\t\t\"long street\": {strings.Repeat(\"x\", 61), false},\n", "", 1), "act test-removed"},
		{"a table with another value", valid + long, strings.Replace(table, "61", "99", 1), "act test-removed"},
		{"subtests with the same checks", votes, steps, ""},
		{"subtests without one of them", votes, strings.Replace(steps, late, "", 1), "act test-removed"},
		{"subtests that want another error", votes, strings.Replace(steps, "want: ErrClosed", "want: nil", 1),
			"act test-removed"},
		{"subtests that are skipped", votes,
			strings.Replace(steps, "\tp := open(t)\n", "\tt.Skip(\"later\")\n\tp := open(t)\n", 1),
			"act test-removed, tell skip-new-test"},
	} {
		got := strings.Join(patternsOf(
			find(t, &detect.Input{Changes: edited("a_test.go", "package a\n"+test.old, "package a\n"+test.now)})), ", ")
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
