package project_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/check/testreport"
)

func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

func TestClearAndCollect(t *testing.T) {
	t.Parallel()
	root, scratch := t.TempDir(), filepath.Join(t.TempDir(), "deep", "er[1]")
	c := project.Measure("cd svc && mvn test && pytest && cargo nextest run", project.Config{Scratch: scratch})
	if c.Weak != "" {
		t.Fatal(c.Weak)
	}
	old := map[string]string{
		"svc/a/target/surefire-reports/TEST-A.xml":              "<old/>",
		"svc/a/target/surefire-reports/A.txt":                   "kept",
		"svc/node_modules/x/target/surefire-reports/TEST-B.xml": "kept",
		"other/target/surefire-reports/TEST-C.xml":              "kept",
	}
	write(t, root, old)
	write(t, scratch, map[string]string{"results-1.xml": "<old/>", "unrelated": "kept"})
	outside := t.TempDir()
	write(t, outside, map[string]string{"target/surefire-reports/TEST-D.xml": "kept"})
	if err := os.Symlink(outside, filepath.Join(root, "svc", "link")); err != nil {
		t.Skip("no links here")
	}
	if err := c.Clear(root); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{
		filepath.Join(root, "svc/a/target/surefire-reports/TEST-A.xml"):              false,
		filepath.Join(root, "svc/a/target/surefire-reports/A.txt"):                   true,
		filepath.Join(root, "svc/node_modules/x/target/surefire-reports/TEST-B.xml"): true,
		filepath.Join(root, "other/target/surefire-reports/TEST-C.xml"):              true,
		filepath.Join(outside, "target/surefire-reports/TEST-D.xml"):                 true,
		filepath.Join(scratch, "results-1.xml"):                                      false,
		filepath.Join(scratch, "unrelated"):                                          true,
		filepath.Join(scratch, "results-2.toml"):                                     true,
	} {
		if exists(name) != want {
			t.Errorf("after Clear: %s is there: %v", name, !want)
		}
	}
	if err := c.Clear(root); err != nil {
		t.Errorf("with nothing there: %v", err)
	}

	started := time.Now()
	write(t, root, map[string]string{"svc/a/target/surefire-reports/TEST-A.xml": "<new/>",
		"svc/b/target/failsafe-reports/TEST-B.xml": "<new/>"})
	stale := filepath.Join(root, "svc/b/target/failsafe-reports/TEST-B.xml")
	if err := os.Chtimes(stale, started.Add(-time.Hour), started.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	write(t, scratch, map[string]string{"results-1.xml": "<new/>"})
	found, err := c.Collect(root, started)
	if err != nil {
		t.Fatal(err)
	}
	want := []project.Found{
		{Format: project.FormatJUnit, Files: []string{filepath.Join(root, "svc/a/target/surefire-reports/TEST-A.xml")},
			Stale: []string{stale}},
		{Format: project.FormatJUnit, Files: []string{filepath.Join(scratch, "results-1.xml")}},
		{Format: project.FormatJUnit},
	}
	if diff := cmp.Diff(want, found); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	for _, pattern := range []string{"../../x/*.xml", "link/target/surefire-reports/TEST-D.xml"} {
		c.Results = []project.Result{{Files: []string{pattern}}}
		found, err := c.Collect(root, started)
		if err == nil && len(found[0].Files)+len(found[0].Stale) > 0 {
			t.Errorf("%s leads out of the workspace", pattern)
		}
		_ = c.Clear(root) // refused or not: see below
	}
	if !exists(filepath.Join(outside, "target/surefire-reports/TEST-D.xml")) {
		t.Error("a file outside of the workspace was removed")
	}
}

// run runs a command like a loop, and parses its results.
func run(t *testing.T, root string, c project.Command) (*testreport.Report, bool) {
	t.Helper()
	if err := c.Clear(root); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", c.Script)
	cmd.Dir = filepath.Join(root, filepath.FromSlash(c.Dir))
	cmd.Env = append(append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local", "GOPROXY=off"), c.Env...)
	var output bytes.Buffer
	cmd.Stdout = &output
	if c.Results[0].Stream == project.Both {
		cmd.Stderr = &output
	}
	failed := cmd.Run() != nil
	found, err := c.Collect(root, started)
	if err != nil {
		t.Fatal(err)
	}
	cfg := testreport.Config{Root: root}
	var r *testreport.Report
	if f := found[0]; f.Stream != "" {
		r, err = testreport.Parse(testreport.Format(f.Format), &output, cfg)
	} else {
		r, err = testreport.ParseFiles(testreport.Format(f.Format), f.Files, cfg)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, output.String())
	}
	return r, failed
}

// Changed commands run and have readable results, and so have reruns of their failed
// tests.
func TestRunners(t *testing.T) {
	t.Parallel()
	tests := []struct {
		program, command string
		files            map[string]string
		want             []string
	}{
		{"go", "cd sub && go test ./...", map[string]string{
			"sub/go.mod": "module example.com/m\n\ngo 1.24\n",
			"sub/a_test.go": "package a\n\nimport (\n\t\"os\"\n\t\"testing\"\n)\n\nfunc TestA(t *testing.T) {}\n" +
				"func TestB(t *testing.T) {\n\tif _, err := os.Stat(\"flag\"); err != nil {\n" +
				"\t\tos.WriteFile(\"flag\", nil, 0o600)\n\t\tt.Fatal(\"first\")\n\t}\n}\n",
		}, []string{"passed example.com/m::TestA", "flaky failed example.com/m::TestB"}},
		{"node", "node --test a.test.cjs", map[string]string{
			"a.test.cjs": "const {test, describe} = require('node:test');\ntest('fine', () => {});\n" +
				"describe('outer', () => { test('wrong', () => { throw new Error('x') }) });\n",
		}, []string{"passed fine", "failed outer::wrong"}},
		{"cargo", "cargo test --offline", map[string]string{
			"Cargo.toml": "[package]\nname = \"foo\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[lib]\ndoctest = false\n",
			"src/lib.rs": "#[test]\nfn fine() {}\n#[test]\nfn wrong() { if !std::path::Path::new(\"flag\").exists() { " +
				"std::fs::write(\"flag\", \"\").unwrap(); panic!(\"first\") } }\n",
		}, []string{"passed foo src/lib.rs::fine", "flaky failed foo src/lib.rs::wrong"}},
	}
	for _, tt := range tests {
		t.Run(tt.program, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(tt.program); err != nil {
				t.Skip("no " + tt.program)
			}
			junit := exec.CommandContext(t.Context(), "node", "--test-reporter=junit", "--version")
			if tt.program == "node" && junit.Run() != nil {
				t.Skip("this version of node has no JUnit reporter")
			}
			root := t.TempDir()
			write(t, root, tt.files)
			c := project.Measure(tt.command, project.Config{Scratch: t.TempDir()})
			if c.Weak != "" {
				t.Fatal(c.Weak)
			}
			first, failed := run(t, root, c)
			if !failed || !first.Complete {
				t.Errorf("failed %v, complete %v: %s", failed, first.Complete, first.Reason)
			}
			if again, ok := c.Again(first.Failing()); ok {
				second, _ := run(t, root, again)
				if len(second.Tests) != 1 {
					t.Errorf("run again: %+v", second.Tests)
				}
				first = testreport.MarkFlaky(first, second)
			}
			var got []string
			for _, test := range first.Tests {
				line := string(test.Outcome) + " " + test.ID
				if test.Flaky {
					line = "flaky " + line
				}
				got = append(got, strings.TrimPrefix(line, ""))
			}
			if diff := cmp.Diff(tt.want, sorted(got, tt.want)); diff != "" {
				t.Errorf("tests (-want +got):\n%s", diff)
			}
		})
	}
}

// sorted brings lines into the order of others, because the order of tests varies.
func sorted(got, want []string) []string {
	var all []string
	for _, w := range want {
		for _, g := range got {
			if g == w {
				all = append(all, g)
			}
		}
	}
	if len(all) != len(got) {
		return got
	}
	return all
}
