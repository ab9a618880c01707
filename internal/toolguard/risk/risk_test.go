package risk_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/toolguard/risk"
)

// where is a workspace with two files that have content.
func where() risk.Where {
	return risk.Where{Root: "/w/project", Home: "/home/me", Filled: func(name string) bool {
		return name == "/w/project/src/app.py" || name == "/w/project/.env.local"
	}}
}

func patterns(c *agent.ToolCall) string {
	var list []string
	for _, f := range risk.Assess(c, where()) {
		if p := string(f.Pattern); !slices.Contains(list, p) {
			list = append(list, p)
		}
	}
	return strings.Join(list, " ")
}

// deletions are command lines that delete, and their risks.
func deletions() map[string]string {
	return map[string]string{
		// Deleting.
		"rm -rf src":                         "delete_tree",
		"rm -fr ./src/../lib":                "delete_tree",
		"rm --recursive src":                 "delete_tree",
		"rm old.go":                          "delete_files",
		"rm -rf $DIR":                        "delete_tree",
		"rm -rf \"$DIR\"/x":                  "delete_tree",
		"rm -rf node_modules dist":           "",
		"rm -rf /tmp/x":                      "",
		"rm login_test.go":                   "delete_test",
		"rm -rf tests":                       "delete_test",
		"sudo rm -rf tests/":                 "delete_test",
		"rm -rf .":                           "delete_everything",
		"rm -rf ./*":                         "delete_everything",
		"rm -rf /":                           "delete_everything",
		"rm -rf /*":                          "delete_everything",
		"rm -rf ~":                           "delete_everything",
		"rm -rf .git":                        "delete_everything",
		"cd .. && rm -rf project":            "delete_everything",
		"rm -rf ../project":                  "delete_everything",
		"rm -rf /w":                          "delete_everything",
		"rm ../other/x":                      "write_outside",
		"rm -rf .perdure":                    "write_perdure",
		"cd src && rm a.go":                  "delete_files",
		"r\\m -rf src":                       "delete_tree",
		"'rm' -rf src":                       "delete_tree",
		"command rm -rf src":                 "delete_tree",
		"bash -c 'rm -rf src'":               "delete_tree",
		"sh -lc \"cd src; git clean -fd\"":   "discard_work",
		"eval 'rm -rf src'":                  "delete_tree",
		"eval \"$X\"":                        "unreadable_command",
		"find . -name '*_test.go' -delete":   "delete_tree",
		"find tests -type f -exec rm {} \\;": "delete_test",
		"find src -name x -exec sed -i s/a/b/ {} +": "",
		"git ls-files | xargs rm -f":                "delete_everything delete_files",
		"ls | xargs -I{} rm -rf {}":                 "delete_everything delete_tree",
		"(cd a && rm b) & { rm c; }":                "delete_files",
		"if true; then rm -rf src; fi":              "delete_tree",
		"x=$(rm -rf src)":                           "delete_tree",
		"echo rm -rf src":                           "",
		"grep -r 'rm -rf' .":                        "",
		"echo done # rm -rf src":                    "",
		"timeout 10 rm -rf src":                     "delete_tree",
		"env A=1 rm -rf src":                        "delete_tree",
	}
}

// others are command lines about git and writing, and calls without a command line.
func others() map[string]string {
	return map[string]string{
		// Git.
		"git rm old.go":                         "git_remove delete_files",
		"git rm --cached old.go":                "",
		"git rm a_test.go":                      "git_remove delete_test",
		"git checkout -- .":                     "discard_work",
		"git checkout .":                        "discard_work",
		"git checkout main":                     "",
		"git checkout -b feature":               "",
		"git checkout -f main":                  "discard_work",
		"git -C /w/project checkout -- a.go":    "discard_work",
		"git restore a.go":                      "discard_work",
		"git restore --staged a.go":             "",
		"git reset --hard HEAD~1":               "discard_work",
		"git reset HEAD a.go":                   "",
		"git clean -fdx":                        "discard_work",
		"git clean -n":                          "",
		"git stash":                             "",
		"git stash drop":                        "discard_work",
		"git push --force origin main":          "rewrite_history",
		"git push origin +main":                 "rewrite_history",
		"git push origin main":                  "",
		"git branch -D old":                     "rewrite_history",
		"git branch -d old":                     "",
		"git commit -m 'x' --no-verify":         "skip_checks",
		"git commit -nm x":                      "skip_checks",
		"git commit -m 'never use --no-verify'": "",
		"git config core.hooksPath /dev/null":   "skip_checks",
		"git status && git diff && git log -5":  "",
		// Writing.
		"echo x > login_test.go":                "write_test",
		"cat <<'E' > tests/test_login.py\nx\nE": "write_test",
		"sed -i 's/5/6/' add_test.go":           "write_test",
		"sed 's/5/6/' add_test.go":              "",
		"tee -a src/login.test.ts < x":          "write_test",
		"mv login_test.go login_test.go.bak":    "delete_test",
		"mv a.go b.go":                          "",
		"cp x .github/workflows/ci.yml":         "write_configuration",
		"echo '{}' > .golangci.yml":             "write_configuration",
		"echo x >> ../outside.txt":              "write_outside",
		"echo x > /etc/hosts":                   "write_outside",
		"make > /dev/null 2>&1":                 "",
		"go test ./... | tee /tmp/log":          "",
		"echo x > .perdure/config.yaml":         "write_perdure",
		"dd if=/dev/zero of=a_test.go":          "write_test",
		"apply_patch <<'E'\n*** Begin Patch\n*** Delete File: a_test.go\n" +
			"*** Add File: b.go\n+x\n*** End Patch\nE": "delete_test",
		"cd x && apply_patch \"*** Update File: .perdure/y\n\"":               "write_perdure",
		"apply_patch <<'E'\n*** Update File: a_test.go\n*** Move to: a.go\nE": "write_test delete_test",
		"cat <<'E' > notes\n*** Delete File: a_test.go\nE":                    "",
		// Calls without a command line, or that hide the command.
		"$'\\x72\\x6d' -rf src": "unreadable_command",
		"$RM -rf src":           "unreadable_command",
		"$'rm' -rf src":         "delete_tree",
		"if then":               "unreadable_command",
		"echo 'unfinished":      "unreadable_command",
		"":                      "",
		"go test ./... -run 'TestX' && go vet ./...": "",
		"npm test -- --watch=false":                  "",
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	for _, list := range []map[string]string{deletions(), others()} {
		for line, want := range list {
			if got := patterns(&agent.ToolCall{Kind: agent.ToolExecute, Command: line}); got != want {
				t.Errorf("%q: %q, want %q", line, got, want)
			}
		}
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		kind agent.ToolKind
		path string
		want string
	}{
		{agent.ToolEdit, "src/a.go", ""},
		{agent.ToolEdit, "/w/project/src/a_test.go", "write_test"},
		{agent.ToolEdit, "/w/project2/a.go", "write_outside"},
		{agent.ToolEdit, ".github/workflows/ci.yml", "write_configuration"},
		{agent.ToolEdit, "src/validation/email.ts", "write_validation"},
		{agent.ToolEdit, "app/user_validators.py", "write_validation"},
		{agent.ToolEdit, "src/EmailValidator.java", "write_validation"},
		{agent.ToolEdit, "src/XMLValidate.java", "write_validation"},
		{agent.ToolEdit, "validate.go", "write_validation"},
		{agent.ToolEdit, "validate_test.go", "write_test"},
		{agent.ToolEdit, "src/invalidate.go", ""},
		{agent.ToolEdit, "src/cacheINVALIDATE.go", ""},
		{agent.ToolEdit, "src/revalidation.ts", ""},
		{agent.ToolEdit, "src/valid.go", ""},
		{agent.ToolEdit, "docs/validation.md", ""},
		{agent.ToolDelete, "validate.go", "delete_files"},
		{agent.ToolEdit, ".perdure/loops/x/hook-log.jsonl", "write_perdure"},
		{agent.ToolDelete, "a_test.go", "delete_test"},
		{agent.ToolDelete, "a.go", "delete_files"},
		{agent.ToolMove, "a_test.go", "delete_test"},
		{agent.ToolRead, ".perdure/config.yaml", ""},
		{agent.ToolSearch, "a_test.go", ""},
	} {
		if got := patterns(&agent.ToolCall{Kind: c.kind, Paths: []string{c.path}}); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.kind, c.path, got, c.want)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	got := risk.Names("cd a && rm -rf b $X 'c d' > /tmp/e; sh -c 'mv ../f g/'", where())
	if want := []string{"/w/project/a/b", "/w/project/a/c d", "/tmp/e", "/w/project/a/mv ../f g", "/w/project/f",
		"/w/project/a/g"}; !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
}

// TestPatches: each part of a patch counts.
func TestPatches(t *testing.T) {
	t.Parallel()
	c := agent.Describe("1", "apply_patch",
		[]byte(`{"input":"*** Begin Patch\n*** Delete File: a_test.go\n*** Add File: b.go\n+x\n*** End Patch"}`))
	if got := patterns(&c); !strings.Contains(got, "delete_test") {
		t.Errorf("a deletion beside an addition: %q", got)
	}
	if names := risk.Names("apply_patch <<'E'\n*** Delete File: a_test.go\nE", where()); !slices.Contains(names,
		"/w/project/a_test.go") {
		t.Errorf("names %q", names)
	}
}

// TestTable: every pattern has a row, and rows that block or warn have a text.
func TestTable(t *testing.T) {
	t.Parallel()
	seen := make(map[risk.Pattern]bool)
	for _, r := range risk.Table() {
		if seen[r.Pattern] || r.What == "" || r.Level == "" || (r.Answer == risk.Block || r.Answer == risk.Gate) &&
			r.Text == "" {
			t.Errorf("row %+v", r)
		}
		seen[r.Pattern] = true
	}
	findings := risk.Assess(&agent.ToolCall{Kind: agent.ToolExecute, Command: "rm old.go; git reset --hard; rm -rf src"},
		where())
	if len(findings) != 3 || findings[0].Pattern != risk.DiscardWork || risk.Strictest(findings) != risk.Block {
		t.Errorf("findings %+v", findings)
	}
	if risk.Strictest(nil) != risk.Allow {
		t.Error("nothing found is not allowed")
	}
}

func FuzzAssess(f *testing.F) {
	for _, line := range []string{"rm -rf x", "cat <<E > y\nE", "find . -exec rm {} \\;", "eval $(x)",
		"git -c a=b rm -r ''", "xargs -I", "find . ( -name a -o ! -b ) -exec rm {} +",
		"rm -rf \"$A/\"${B:?}*", "cd $X && rm -rf ~"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, found := range risk.Assess(&agent.ToolCall{Kind: agent.ToolExecute, Command: line, Paths: []string{line}},
			where()) {
			if found.Pattern == "" || strings.Contains(found.Target, "\x00") && !strings.Contains(line, "\x00") {
				t.Errorf("%q: %+v", line, found)
			}
		}
	})
}

func FuzzPowerShell(f *testing.F) {
	for _, text := range []string{"Remove-Item -Recurse src", "gci | % { ri $_ }", "$x = 'a'; rm \"$x\\b\" -r",
		"@'\nx\n'@ > y",
		"iex \"git $(x)\"", "cmd /c del /s x & rd y",
		strings.Repeat("gci|%{", 100), "(gci src) | ri", "powershell -enc AAAA", "& $x.y(`\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		risk.Assess(&agent.ToolCall{Kind: agent.ToolExecute, Name: "PowerShell", Command: text}, where())
	})
}

func BenchmarkAssess(b *testing.B) {
	c := &agent.ToolCall{Kind: agent.ToolExecute,
		Command: "cd src && go test ./... -run 'TestX' | tee /tmp/log && git diff --stat; rm -rf build"}
	for b.Loop() {
		risk.Assess(c, where())
	}
}
