package agentconfig_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/text/jsonc"
	"github.com/perdure/perdure/internal/toolguard/agentconfig"
)

// source is what the tests install.
var source = agentconfig.Source{Program: "/it's/perdure", Skill: "# Skill\n"}

// place is an empty home with a project.
func place(t *testing.T) agentconfig.Place {
	t.Helper()
	home := t.TempDir()
	return agentconfig.Place{Project: filepath.Join(home, "project"), Getenv: func(name string) string {
		return map[string]string{"HOME": home}[name]
	}}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(name), 0o700)
	if err == nil {
		err = os.WriteFile(name, []byte(text), 0o640)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// files are the files in a home without perdure's records, by their content.
func files(t *testing.T, p agentconfig.Place) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(p.Getenv("HOME"), func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.Contains(name, "/.local/state/") {
			return err
		}
		text, err := os.ReadFile(name)
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func install(t *testing.T, a *agentconfig.Agent, p agentconfig.Place, s agentconfig.Scope) []*agentconfig.Change {
	t.Helper()
	changes, err := a.Install(p, s, source)
	if err == nil {
		err = agentconfig.Apply(p, changes)
	}
	if err != nil {
		t.Fatalf("%s: %v", a.Name, err)
	}
	return changes
}

func uninstall(t *testing.T, a *agentconfig.Agent, p agentconfig.Place, s agentconfig.Scope) {
	t.Helper()
	changes, err := a.Uninstall(p, s)
	if err == nil {
		err = agentconfig.Apply(p, changes)
	}
	if err != nil {
		t.Fatalf("%s: %v", a.Name, err)
	}
}

// before are settings of users, by agent.
func before(name string) []string {
	if name == "codex" {
		return []string{"", "model = \"m\"", "# mine\nmodel = \"m\"\n\n[[hooks.PreToolUse]]\n[[hooks.PreToolUse.hooks]]\n" +
			"type = \"command\"\ncommand = \"mine\"\n", "a = 1\r\nb = 2\r\n"}
	}
	return []string{"{}", "{\"hooks\":{}}\n", " {\n\t\"z\": 1, // mine\n\t\"a\": [1,2,],\n }\n",
		"{\n  \"hooks\": {\n    \"PreToolUse\": [\n" +
			"      {\"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]}\n    ],\n" +
			"    \"BeforeTool\": [],\n    \"Stop\": []\n  },\n  \"env\": {\"KEY\": \"secret\"}\n}"}
}

// TestInstallAndBack: for each agent and scope, an installation adds the hook and keeps
// everything else; a second one changes nothing; its removal restores every byte, mode and
// folder.
func TestInstallAndBack(t *testing.T) {
	t.Parallel()
	for _, a := range agentconfig.Agents() {
		for _, s := range agentconfig.Scopes() {
			for _, text := range append(before(a.Name), noFile) {
				if a.Name != "opencode" || text == noFile { // the plugin is a file of its own
					installAndBack(t, &a, s, text)
				}
			}
		}
	}
}

// noFile stands for no settings.
const noFile = "no file"

func installAndBack(t *testing.T, a *agentconfig.Agent, s agentconfig.Scope, text string) {
	t.Helper()
	p := place(t)
	path := a.File(p, s)
	if text != noFile {
		write(t, path, text)
	}
	was := files(t, p)
	install(t, a, p, s)
	after := files(t, p)
	words, err := a.Installed(p, s)
	if err != nil || len(words) < 3 || !strings.Contains(strings.Join(words, " "), "perdure") {
		t.Errorf("%s %s %q: installed %q, %v", a.Name, s, text, words, err)
	}
	if text != noFile && !keeps(after[path], text) {
		t.Errorf("%s %s: %q became %q", a.Name, s, text, after[path])
	}
	for _, c := range install(t, a, p, s) {
		if c.Kind() != "unchanged" || c.Diff() != "" {
			t.Errorf("%s %s %q: a second time: %s\n%s", a.Name, s, text, c.Kind(), c.Diff())
		}
	}
	uninstall(t, a, p, s)
	if diff := cmp.Diff(was, files(t, p)); diff != "" {
		t.Errorf("%s %s %q: after the removal (-before +after):\n%s", a.Name, s, text, diff)
	}
	if _, err := os.Stat(filepath.Dir(path)); (err == nil) != (text != noFile) {
		t.Errorf("%s %s %q: the folder %s: %v", a.Name, s, text, filepath.Dir(path), err)
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm() != 0o640 {
		t.Errorf("%s: mode %v", path, info.Mode())
	}
}

// keeps reports whether all lines of a text are in another in their order.
func keeps(text, want string) bool {
	for line := range strings.Lines(want) {
		line = strings.Trim(line, "\r\n ,]}")
		at := strings.Index(text, line)
		if at < 0 {
			return false
		}
		text = text[at+len(line):]
	}
	return true
}

// TestUninstallAfterChanges: if the user has changed the file since, only what perdure added
// is removed.
func TestUninstallAfterChanges(t *testing.T) {
	t.Parallel()
	for _, a := range agentconfig.Agents() {
		if a.Name == "opencode" {
			continue
		}
		p := place(t)
		path := a.File(p, agentconfig.User)
		text, changed, want := "{\n  \"a\": 1\n}\n", "\"a\": 2", "{\n  \"a\": 2\n}\n"
		old := "\"a\": 1"
		if a.Name == "codex" {
			text, old, changed, want = "a = 1\n", "a = 1", "a = 2", "a = 2\n[b]\nc = 3\n"
		}
		write(t, path, text)
		install(t, &a, p, agentconfig.User)
		now := strings.Replace(files(t, p)[path], old, changed, 1)
		if a.Name == "codex" {
			now += "[b]\nc = 3\n"
		}
		write(t, path, now)
		uninstall(t, &a, p, agentconfig.User)
		if got := files(t, p)[path]; got != want {
			t.Errorf("%s: %q, want %q", a.Name, got, want)
		}
	}
}

// TestInvalidFiles: a file that is not valid is left alone, and the error names it and the
// line; a foreign file at the place of one of perdure's is left alone, too.
func TestInvalidFiles(t *testing.T) {
	t.Parallel()
	for _, a := range agentconfig.Agents() {
		if a.Name == "opencode" {
			continue
		}
		p := place(t)
		path := a.File(p, agentconfig.User)
		bad := []string{"{\n  \"a\": 1\n  \"b\": 2\n}", "{\n\n", "{\n\"hooks\": []}"}
		if a.Name == "codex" {
			bad = []string{"a = 1\nb =\n", "a = 1\n[x\n", "# mine\nhooks = {PreToolUse = []}\n"}
		}
		for i, text := range bad {
			write(t, path, text)
			_, err := a.Install(p, agentconfig.User, source)
			fault, ok := errors.AsType[*jsonc.Error](err)
			if !ok || !strings.Contains(err.Error(), path) || fault.Line < 2 {
				t.Errorf("%s %q: %v", a.Name, text, err)
			}
			if _, err := a.Uninstall(p, agentconfig.User); i < 2 && err == nil {
				t.Errorf("%s %q: the removal finds no fault", a.Name, text)
			}
			if got := files(t, p)[path]; got != text {
				t.Errorf("%s %q is %q", a.Name, text, got)
			}
		}
	}
	for name, file := range map[string]string{"opencode": ".config/opencode/plugin/perdure.js",
		"claude-code": ".claude/skills/perdure-handoff/SKILL.md"} {
		p := place(t)
		path := filepath.Join(p.Getenv("HOME"), file)
		write(t, path, "mine")
		a, _ := agentconfig.AgentOf(name)
		if _, err := a.Install(p, agentconfig.User, source); !errors.Is(err, agentconfig.ErrForeign) {
			t.Errorf("%s: %v", path, err)
		}
		uninstall(t, &a, p, agentconfig.User)
		if got := files(t, p)[path]; got != "mine" {
			t.Errorf("%s is %q", path, got)
		}
	}
}

// TestChangedMeanwhile: a file that another program changes after the plan is left alone.
func TestChangedMeanwhile(t *testing.T) {
	t.Parallel()
	p := place(t)
	a, _ := agentconfig.AgentOf("claude-code")
	write(t, a.File(p, agentconfig.User), "{}")
	changes, err := a.Install(p, agentconfig.User, source)
	if err != nil {
		t.Fatal(err)
	}
	write(t, a.File(p, agentconfig.User), `{"a":1}`)
	if err := agentconfig.Apply(p, changes); err == nil || files(t, p)[a.File(p, agentconfig.User)] != `{"a":1}` {
		t.Errorf("the change of another program is lost: %v", err)
	}
}

// TestTrust: the trust of Codex is appended and removed with the hooks, in each scope, and
// doctor reports hooks without it.
func TestTrust(t *testing.T) {
	t.Parallel()
	a, _ := agentconfig.AgentOf("codex")
	for _, s := range agentconfig.Scopes() {
		p := place(t)
		user := a.File(p, agentconfig.User)
		write(t, user, "model = \"m\"\n")
		was := files(t, p)
		install(t, &a, p, s)
		if got, _ := a.Status(p); got != agentconfig.NoTrust {
			t.Errorf("%s without trust: %s", s, got)
		}
		var hooks []agentconfig.Hook
		for _, event := range []string{"pre_tool_use", "post_tool_use"} {
			hooks = append(hooks, agentconfig.Hook{Key: a.File(p, s) + ":" + event + ":0:0", Hash: "sha256:x",
				Status: "untrusted", Command: a.Line(source.Program)})
		}
		if own := agentconfig.Own(append(slices.Clone(hooks), agentconfig.Hook{Command: "theirs"}),
			a.Line(source.Program)); len(own) != 2 {
			t.Errorf("own hooks: %+v", own)
		}
		c, err := a.Trust(p, s, hooks)
		if err == nil {
			err = agentconfig.Apply(p, []*agentconfig.Change{c})
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, file := a.Status(p); got != agentconfig.State(s) || file != a.File(p, s) {
			t.Errorf("%s with trust: %s %s", s, got, file)
		}
		home := agentconfig.Place{Getenv: p.Getenv, Project: p.Getenv("HOME")}
		if got, _ := a.Status(home); s == agentconfig.User && got != agentconfig.InUser {
			t.Errorf("in the home folder: %s", got)
		}
		for _, c := range install(t, &a, p, s) {
			if c.Kind() != "unchanged" {
				t.Errorf("%s: a second time: %s", s, c.Diff())
			}
		}
		uninstall(t, &a, p, s)
		if diff := cmp.Diff(was, files(t, p)); diff != "" {
			t.Errorf("%s (-before +after):\n%s", s, diff)
		}
	}
}

// TestVariables: agents find their settings by variables, and so does the installation.
func TestVariables(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"claude-code": "/c/settings.json", "codex": "/x/config.toml",
		"opencode": "/g/opencode/plugin/perdure.js", "gemini": "/m/.gemini/settings.json"} {
		a, _ := agentconfig.AgentOf(name)
		p := agentconfig.Place{Getenv: func(name string) string {
			return map[string]string{"CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x", "XDG_CONFIG_HOME": "/g",
				"GEMINI_CLI_HOME": "/m", "HOME": "/h"}[name]
		}}
		if got := a.File(p, agentconfig.User); got != want {
			t.Errorf("%s: %s", name, got)
		}
		if got := agentconfig.Files(p.Getenv); !slices.Contains(got, want) {
			t.Errorf("%q does not contain %s", got, want)
		}
	}
}

// FuzzInstall: an installation into any settings keeps them valid, and its removal restores
// them.
func FuzzInstall(f *testing.F) {
	for i := range 2 {
		for _, name := range []string{"codex", "gemini"} {
			for _, text := range before(name) {
				f.Add(text, i == 0)
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string, codex bool) {
		a, _ := agentconfig.AgentOf(map[bool]string{true: "codex", false: "gemini"}[codex])
		p := place(t)
		path := a.File(p, agentconfig.User)
		write(t, path, text)
		changes, err := a.Install(p, agentconfig.User, source)
		if err != nil || strings.Contains(text, "perdure") {
			return
		}
		if err := agentconfig.Apply(p, changes); err != nil {
			t.Fatal(err)
		}
		if words, err := a.Installed(p, agentconfig.User); err != nil || words == nil {
			t.Errorf("%q is %q: %q, %v", text, files(t, p)[path], words, err)
		}
		uninstall(t, &a, p, agentconfig.User)
		if got := files(t, p)[path]; got != text {
			t.Errorf("%q is %q after the removal", text, got)
		}
	})
}
