package permit_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/toolguard/permit"
)

// show writes a rule with ... for further arguments.
func show(rules []agent.CommandRule) []string {
	var lines []string
	for _, r := range rules {
		if r.More {
			r.Line += " ..."
		}
		lines = append(lines, r.Line)
	}
	return lines
}

// TestRules: a check passes as it is written, its parts with further arguments where their
// program is a test runner, a build tool or a script of the workspace.
func TestRules(t *testing.T) {
	t.Parallel()
	tests := []struct {
		check string
		want  []string // without the check itself
	}{
		{"go test ./...", []string{"go test ..."}},
		{"go vet ./... && CGO_ENABLED=0 go test -race ./...", []string{"go vet ...", "go test ..."}},
		{"cd web && npm test", []string{"cd web", "npm test ..."}},
		{"npm run test:unit -- --ci", []string{"npm run test:unit ..."}},
		{"npx jest", []string{"npx jest ..."}},
		{"npx -y jest", nil},
		{"python -m pytest -q", []string{"python -m pytest ..."}},
		{"python3 -m http.server", nil},
		{"python check.py", nil},
		{"poetry run pytest -q", []string{"poetry run pytest ..."}},
		{"poetry run python -m pytest", []string{"poetry run python -m pytest ..."}},
		{"poetry run python x.py", nil},
		{"uv run bash x", nil},
		{"make check", []string{"make check ..."}},
		{"make -C sub check", []string{"make -C sub check ..."}},
		{"make", nil},
		{"make SHELL=/bin/x check", nil},
		{"cargo test", []string{"cargo test ..."}},
		{"cargo run", nil},
		{"go run ./check", nil},
		{"./gradlew test", []string{"./gradlew test ..."}},
		{"mvn -q test", nil},
		{"timeout 60 go test ./...", []string{"go test ..."}},
		{"env A=b pytest", []string{"pytest ..."}},
		{"./scripts/check.sh --fast", []string{"./scripts/check.sh ..."}},
		{"../check.sh", nil},
		{"/opt/check", nil},
		{"bash -c 'go test ./...'", nil},
		{"sh check.sh", nil},
		{"node check.js", nil},
		{"node --test", []string{"node --test ..."}},
		{"git diff --quiet", nil},
		{`test "$(cat n)" = 3`, []string{"cat n"}},
		{"go test ./... | tee log", []string{"go test ...", "tee log"}},
		{"for f in *.sh; do bash $f; done", nil},
		{"$RUNNER test", nil},
		{"go $VERB ./...", nil},
		{"if pytest; then true; fi", []string{"pytest ...", "true"}},
		{"mytool verify", nil},
		{"'my tool' test", nil},
		{"go test (", nil},
	}
	for _, tt := range tests {
		got := show(permit.Rules(tt.check))
		if len(got) == 0 || got[0] != tt.check {
			t.Errorf("%s: it does not pass as it is written: %q", tt.check, got)
			continue
		}
		if diff := cmp.Diff(tt.want, append([]string(nil), got[1:]...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.check, diff)
		}
	}
	got := show(permit.Rules("go test ./a\ngo vet ./b"))
	if !slices.Equal(got, []string{"go test ...", "go vet ..."}) {
		t.Errorf("two lines: %q", got)
	}
}

// TestAllows: each command of a line has to be allowed.
func TestAllows(t *testing.T) {
	t.Parallel()
	check := "go test ./... && bash -c 'npm test'"
	rules := slices.Concat(permit.Rules(check), permit.Handoff("/opt/perdure"))
	for _, line := range []string{check, "go test", "go test ./pkg -run 'TestX|TestY'", "go test ./a && go test ./b",
		"go test ./... 2>&1 | tail -20", "cd sub && go test ./...", "bash -c 'npm test'", "(go test ./a; go test ./b)",
		"perdure handoff step 'a; rm -rf b' --modified x", "/opt/perdure handoff show", "go test ./... > /dev/null",
		"time go test ./...", "go test \"$PKG\"", "! go test ./..."} {
		if !permit.Allows(rules, line) {
			t.Errorf("%s is not allowed", line)
		}
	}
	for _, line := range []string{"", " ", "go vet ./...", "go testing", "npm test", "bash -c 'npm run x'", "bash",
		"bash x", "go test ./... && rm -rf x", "go test; rm x", "go test | sh", "go test || rm x", "go test & rm x",
		"go test\nrm x", "go test $(rm x)", "go test `rm x`", "go test \"$(rm x)\"", "go test <(rm x)",
		"go test > x", "go test >> x",
		"go test &> x", "go test 2> x", "go test >&x", "GOFLAGS=-exec=x go test", "export X=1; go test", "eval go test",
		"go() { rm x; }; go test", "for i in 1; do go test; done", "${X:=go} test", "$GO test", "perdure loop abort",
		"perdure", "go test <<EOF\n$(rm x)\nEOF", "echo x > y", "PATH=. go test", "go test (", "cat x | sh",
		"case a in a) rm x;; esac", "[[ -f x ]] && rm x", "declare x=$(rm y)", "coproc go test"} {
		if permit.Allows(rules, line) {
			t.Errorf("%s is allowed", line)
		}
	}
}

// FuzzRules: a check passes by its own rules, and rules with further arguments never start
// with a program that can do anything.
func FuzzRules(f *testing.F) {
	for _, seed := range []string{"go test ./...", "npx jest && make check",
		"poetry run pytest | tee x", "cd a; ./b 'c d'",
		"bash -c 'x'", `test "$(cat n)" = 3`, "env A=b timeout 3 go vet", "x\ny"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, check string) {
		rules := permit.Rules(check)
		if line := strings.TrimSpace(check); len(rules) > 0 && rules[0].Line == line && !permit.Allows(rules, line) {
			t.Errorf("%q does not pass", check)
		}
		for _, r := range rules {
			if r.Line == "" || strings.ContainsAny(r.Line, "\n\r\x00") {
				t.Errorf("%q has the rule %q", check, r.Line)
			}
			first, _, _ := strings.Cut(r.Line, " ")
			if r.More && slices.Contains([]string{"sh", "bash", "git", "rm", "sudo", "xargs", "curl"}, first) {
				t.Errorf("%q has the rule %q with further arguments", check, r.Line)
			}
			if r.More && permit.Allows([]agent.CommandRule{r}, r.Line+" x; rm -rf y") {
				t.Errorf("the rule %q of %q allows another command", r.Line, check)
			}
		}
	})
}
