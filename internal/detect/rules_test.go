package detect_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/detect"
)

func custom(change func(c *detect.Custom)) detect.Custom {
	c := detect.Custom{ID: "no-print", Type: detect.ErrorSuppression, Tier: detect.Sign, Severity: detect.Low,
		Message: "print", Match: `\bprint\(`}
	if change != nil {
		change(&c)
	}
	return c
}

func TestCustomPatterns(t *testing.T) {
	t.Parallel()
	const path = "src/a.py"
	tests := []struct {
		name     string
		pattern  detect.Custom
		old, now string
		want     []string
	}{
		{"added", custom(nil), "x = 1\n", "x = 1\nprint(x)\n", []string{"act no-print"}},
		{"not in a comment", custom(nil), "x = 1\n", "x = 1 # print(x)\n", nil},
		{"not in a string", custom(nil), "x = 1\n", "x = 'print(x)'\n", nil},
		{"in comments only", custom(func(c *detect.Custom) { c.In = "comments" }), "x = 1\n",
			"x = 'print(x)'\ny = 2 # print(x)\n", []string{"act no-print"}},
		{"in the text", custom(func(c *detect.Custom) { c.In = "text" }), "x = 1\n", "x = 'print(x)'\n",
			[]string{"act no-print"}},
		{"was there", custom(nil), "x = 1\nprint(x)\n", "print(x)\ny = 2\n", nil},
		{"once more", custom(nil), "print(x)\n", "print(x)\nprint(x)\n", []string{"act no-print"}},
		{"removed", custom(func(c *detect.Custom) { c.When = "removed" }), "print(x)\n", "x = 1\n", []string{"act no-print"}},
		{"another language", custom(func(c *detect.Custom) { c.Languages = []string{"go"} }), "x = 1\n", "print(x)\n", nil},
		{"another path", custom(func(c *detect.Custom) { c.Paths = []string{"lib/**"} }), "x = 1\n", "print(x)\n", nil},
		{"a path", custom(func(c *detect.Custom) { c.Paths = []string{"src/**/*.py"} }), "x = 1\n", "print(x)\n",
			[]string{"act no-print"}},
		{"unsure", custom(func(c *detect.Custom) { c.Confidence = 0.5 }), "x = 1\n", "print(x)\n", []string{"warn no-print"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			rules, err := detect.NewRules(detect.Config{Patterns: []detect.Custom{test.pattern}})
			if err != nil {
				t.Fatal(err)
			}
			report := find(t, &detect.Input{Rules: rules, Changes: edited(path, test.old, test.now)})
			if diff := cmp.Diff(test.want, patternsOf(report)); diff != "" {
				t.Errorf("findings differ (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSwitches(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		config detect.Config
		want   []string
	}{
		{"all", detect.Config{}, []string{"act skip-added"}},
		{"off", detect.Config{Off: []string{"skip-added"}}, nil},
		{"off by alias", detect.Config{Off: []string{"T002"}}, nil},
		{"its type", detect.Config{Types: []detect.Type{detect.TestSkipping}}, []string{"act skip-added"}},
		{"other types", detect.Config{Types: []detect.Type{detect.TestDeletion}}, nil},
	}
	for _, test := range tests {
		rules, err := detect.NewRules(test.config)
		if err != nil {
			t.Fatal(err)
		}
		report := find(t, &detect.Input{Rules: rules, Changes: edited("test_a.py", skipOld, skipNew)})
		if diff := cmp.Diff(test.want, patternsOf(report)); diff != "" {
			t.Errorf("%s: findings differ (-want +got):\n%s", test.name, diff)
		}
	}
}

// All problems are reported at once, each with its field.
func TestBadRules(t *testing.T) {
	t.Parallel()
	_, err := detect.NewRules(detect.Config{
		Types: []detect.Type{"deletion"}, Off: []string{"T999"},
		Patterns: []detect.Custom{
			{ID: "Bad ID", Type: "x", Tier: 4, Severity: "urgent", Languages: []string{"cobol"}, Paths: []string{"["},
				Match: "(", In: "all", When: "ever", Confidence: 2},
			custom(func(c *detect.Custom) { c.ID = "skip-added" }), custom(nil), custom(nil),
		},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`types[0]: unknown type "deletion"`, `off[0]: unknown pattern "T999"`, `patterns[0] "Bad ID": id:`,
		"tier: 4", `"urgent": use critical, high, medium or low`,
		"message: ", `"cobol": use one of go,`, `paths: invalid glob "["`,
		"match: error parsing regexp", `"all": use code, comments or text`, `"ever": use added or removed`,
		"confidence: 2 is not", `patterns[1] "skip-added": id: `,
		`patterns[3] "no-print": id: `,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error lacks %q:\n%v", want, err)
		}
	}
}
