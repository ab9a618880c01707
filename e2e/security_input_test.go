package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// These tests run the program on hostile input: settings, repositories, templates and
// imports that come with a folder.

// yamlBomb is 1 KB of YAML whose aliases expand to billions of values.
func yamlBomb(key string) string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := 1; i < 11; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*a%d,", i-1), 10), ","))
	}
	return b.String() + key + ": [*a10]\n"
}

func (p *place) git(args ...string) {
	p.t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		p.t.Skip("needs git")
	}
	cmd := exec.CommandContext(p.t.Context(), "git",
		append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	cmd.Dir = p.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func TestSecurityYAMLAliases(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(".perdure/config.yaml", yamlBomb("model"))
	status, _, stderr := p.run("status")
	if status != 2 || !strings.Contains(stderr, "config.yaml:1:5: an anchor (&) is not allowed here") {
		t.Errorf("status %d\n%s", status, stderr)
	}
	p.write(".perdure/config.yaml", "")
	p.write("s.yaml", yamlBomb("replies"))
	p.bad(2, `line 1: column 5: an anchor`, "run", "x", "--model", "mock:s.yaml")
	p.write(".perdure/config.yaml", "prices: p.yaml\n")
	p.write("p.yaml", yamlBomb("models"))
	if status, _, stderr = p.run("run", "x"); status == 0 || strings.Contains(stderr, "panic") {
		t.Errorf("status %d\n%s", status, stderr)
	}
}

// Templates of reminders come with a folder. None of these writes anything, and none would
// end.
func TestSecurityTemplates(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for name, text := range map[string]string{
		"range":     "{{range 1000000000000000000}}{{end}}",
		"recursion": `{{define "a"}}{{template "a"}}{{template "a"}}{{end}}{{template "a"}}`,
		"doubling":  `{{$x := "12345678"}}` + strings.Repeat("{{$x = print $x $x}}", 60),
		"width":     `{{$x := printf "%1000000d" 1}}`,
		"size":      strings.Repeat("{{/* */}}", 100_000),
	} {
		p.write(name+"/minimal.md.tmpl", text)
		p.write(".perdure/config.yaml", "loop: {reminders: "+name+"}\n")
		status, _, stderr := p.run("loop", "run", "x", "--until", "false", "--agent", "exec:true", "--max-iterations", "1")
		if status == 0 || !regexp.MustCompile(`minimal\.md\.tmpl: .*(limit|maximum template depth)`).MatchString(stderr) {
			t.Errorf("%s: status %d\n%s", name, status, stderr)
		}
	}
}

// The settings of a pull request are read when it is checked.
func TestSecurityCheckSettings(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.git("init", "-q", "-b", "main")
	p.write(".perdure-check.yaml", yamlBomb("patterns_off"))
	p.git("add", ".perdure-check.yaml")
	p.git("commit", "-q", "-m", "first")
	const refused = `\.perdure-check\.yaml:1:5: an anchor \(&\) is not allowed here`
	if stdout := p.good("check"); !regexp.MustCompile("note: .*" + refused).MatchString(stdout) {
		t.Errorf("no note about the committed settings:\n%s", stdout)
	}
	p.write(".perdure-check.yaml", yamlBomb("protected_paths"))
	p.bad(2, refused, "check")
}

// Settings of a repository name programs. No command of perdure starts them.
func TestSecurityGitPrograms(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	p := newPlace(t)
	marks := t.TempDir()
	program := func(name string) string { return "touch '" + filepath.Join(marks, name) + "'" }
	p.git("init", "-q", "-b", "main")
	p.write("a.go", "package a\n")
	p.write(".gitignore", ".perdure\n")
	p.git("add", ".")
	p.git("commit", "-q", "-m", "first")
	p.write(".gitattributes", "* filter=f diff=d\n")
	p.write("monitor", "#!/bin/sh\n"+program("fsmonitor")+"\n")
	p.write(".git/hooks/post-index-change", "#!/bin/sh\n"+program("hook")+"\n")
	for _, name := range []string{"monitor", ".git/hooks/post-index-change"} {
		if err := os.Chmod(filepath.Join(p.dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for key, value := range map[string]string{
		"filter.f.clean": program("clean"), "filter.f.smudge": program("smudge"), "filter.f.required": "true",
		"filter.f.process": program("process"), "core.fsmonitor": filepath.Join(p.dir, "monitor"),
		"diff.external": program("external"), "diff.d.command": program("driver"), "diff.d.textconv": program("textconv"),
	} {
		p.git("config", key, value)
	}
	p.write("a.go", "package a\n\nfunc A() {}\n")
	for _, args := range [][]string{{"check"}, {"check", "--base", "HEAD", "--json"}, {"check", "--staged"}} {
		if status, stdout, stderr := p.run(args...); status != 0 && status != 3 {
			t.Errorf("%v: status %d\n%s%s", args, status, stdout, stderr)
		}
	}
	p.write("agent.sh", "echo x > note.txt\n")
	p.good("loop", "run", "x", "--until", "true", "--even-if-green", "--agent", "exec:sh agent.sh")
	p.run("handoff", "start", "x")
	p.run("handoff", "resume")
	entries, err := os.ReadDir(marks)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("%s of the repository was started", e.Name())
	}
}

// A store keeps its files from other users whatever the umask is, and tightens existing
// ones.
func TestSecurityModes(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("has no modes")
	}
	p := newPlace(t)
	program, err := exec.LookPath("perdure")
	if err != nil {
		t.Fatal(err)
	}
	run := func(command string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "umask 000; "+command)
		cmd.Dir = p.dir
		cmd.Env = append(append(os.Environ(), "perdure="+program), p.env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", command, err, out)
		}
	}
	public := func() (names []string) {
		t.Helper()
		err := filepath.WalkDir(filepath.Join(p.dir, ".perdure"), func(path string, _ fs.DirEntry, err error) error {
			info, statErr := os.Lstat(path)
			if err == nil && statErr == nil && info.Mode()&fs.ModeSymlink == 0 && info.Mode().Perm()&0o077 != 0 {
				names = append(names, fmt.Sprintf("%s %v", path, info.Mode()))
			}
			return errors.Join(err, statErr)
		})
		if err != nil {
			t.Error(err)
		}
		return names
	}
	p.write("ctx/a.txt", strings.Repeat("some text about leases\n", 1000))
	run(`"$perdure" run leases --context ctx --model builtin:extract`)
	run(`"$perdure" loop run x --until true --even-if-green --agent exec:true --workspace ctx`)
	if names := public(); len(names) > 0 {
		t.Errorf("other users can use:\n%s", strings.Join(names, "\n"))
	}
	run(`chmod 777 .perdure .perdure/sessions && chmod 666 .perdure/perdure.db`)
	run(`"$perdure" status`)
	if names := public(); len(names) > 0 {
		t.Errorf("not tightened:\n%s", strings.Join(names, "\n"))
	}
}

// Tokens in URLs are not printed, whatever part of the URL they are in.
func TestSecurityTokensInURLs(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, address := range []string{
		"https://example.com/v1?access_token=geheim", "https://geheim@example.com/v1", "https://example.com/v1?sig=geheim",
		"https://example.com/v1?X-Amz-Signature=geheim", "https://example.com/s/T0/geheimgeheimgeheim123456",
	} {
		p.write(".perdure/config.yaml", "base_url: "+address+"\nmodel: openai:x\n")
		for _, args := range [][]string{{"config"}, {"config", "--json"}, {"run", "x", "--model", "openai:x"},
			{"run", "x", "--model", "openai:x", "--base-url", address}} {
			_, stdout, stderr := p.run(args...)
			if text := stdout + stderr; strings.Contains(text, "geheim") {
				t.Errorf("%v with %s:\n%s", args, address, text)
			}
		}
	}
}

// The working tree of a repository's settings can be a folder that is not part of it. Files
// there are not read.
func TestSecurityWorktree(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"../..", "../../other", "/"} {
		p := newPlace(t)
		outer := p.dir
		p.write("a.go", "package secret\n")
		p.write("other/a.go", "package secret\n")
		p.dir = filepath.Join(outer, "repository")
		p.write("a.go", "package a\n")
		p.git("init", "-q", "-b", "main")
		p.git("add", ".")
		p.git("commit", "-q", "-m", "first")
		p.git("config", "core.worktree", to)
		status, stdout, stderr := p.run("check")
		if status != 2 || !regexp.MustCompile("not part of the repository|has no working tree").MatchString(stderr) {
			t.Errorf("core.worktree=%s: status %d\n%s%s", to, status, stdout, stderr)
		}
	}
}
