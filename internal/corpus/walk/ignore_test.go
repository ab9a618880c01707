package walk_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/corpus/walk"
)

func TestIgnore(t *testing.T) {
	t.Parallel()
	root := files(t, map[string]string{
		".git/info/exclude":      "excluded.txt\n",
		".gitignore":             "*.log\n/top.txt\nnode_modules/\n!keep.log\n",
		"a.go":                   "a",
		"top.txt":                "t",
		"excluded.txt":           "x",
		"logs/x.log":             "x",
		"logs/keep.log":          "k",
		"node_modules/m/i.js":    "m",
		"sub/.gitignore":         "!x.log\nlocal\n",
		"sub/x.log":              "x",
		"sub/top.txt":            "t",
		"sub/local":              "l",
		"sub/local2":             "l",
		"vendored/.git":          "gitdir: elsewhere",
		"vendored/y.log":         "another work tree has its own rules",
		"vendored/excluded.txt":  "e",
		"vendored/sub/.keepme":   "k",
		"vendored/sub/app.log":   "l",
		"vendored/sub/sub/b.txt": "b",
	})
	tests := []struct {
		arg  string
		want []string
	}{
		{"a.go", []string{"a.go"}},
		{"top.txt", []string{"top.txt"}},       // named itself
		{"logs/x.log", []string{"logs/x.log"}}, // named itself
		{"logs", []string{"logs/keep.log"}},
		{"logs/*.log", []string{"logs/keep.log", "logs/x.log"}},   // a glob means its files
		{"node_modules", []string{"node_modules/m/i.js"}},         // named itself
		{"node_modules/**/*.js", []string{"node_modules/m/i.js"}}, // named itself
		{"sub", []string{"sub/.gitignore", "sub/local2", "sub/top.txt", "sub/x.log"}},
		{"sub/local*", []string{"sub/local", "sub/local2"}},
		{"vendored", []string{"vendored/excluded.txt", "vendored/sub/.keepme", "vendored/sub/app.log",
			"vendored/sub/sub/b.txt", "vendored/y.log"}},
		{"vendored/sub", []string{"vendored/sub/.keepme", "vendored/sub/app.log", "vendored/sub/sub/b.txt"}},
		{"*/*.log", []string{"logs/keep.log", "logs/x.log", "sub/x.log", "vendored/y.log"}},
	}
	for _, tt := range tests {
		got, err := into(t, root, tt.arg)
		if err != nil {
			t.Errorf("%q: %v", tt.arg, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got.names); diff != "" {
			t.Errorf("%q: names (-want +got):\n%s", tt.arg, diff)
		}
	}
	got, err := into(t, root, ".")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"excluded.txt": "line 1 of ", "top.txt": "line 2 of ", "node_modules/": "line 3 of ", "logs/x.log": "line 1 of ",
		"sub/local": "line 2 of ",
	} {
		if !strings.Contains(got.skipped[name], want) {
			t.Errorf("%s: skipped because %q, want %q", name, got.skipped[name], want)
		}
	}
	if _, err := into(t, root, "**/*.js"); err == nil || !strings.Contains(err.Error(), "matches no file") {
		t.Errorf("**/*.js: %v", err)
	}
}

// TestIgnoreAsGit compares random ignore files with what git says of them.
func TestIgnoreAsGit(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	list := map[string]string{}
	for _, dir := range []string{"", "a/", "b/", "a/a/", "a/b/", "ab/c/"} {
		for _, name := range []string{"a", "b", "ab", "a.b", "{a,b}", "c d", "#a", "!a", "x[a]"} {
			if !slices.Contains([]string{"a/a", "a/b", "ab/c", "a", "b", "ab"}, dir+name) {
				list["w/"+dir+name] = "text"
			}
		}
	}
	root := files(t, list)
	work := filepath.Join(root, "w")
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), git, args...)
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "HOME="+root,
			"XDG_CONFIG_HOME="+root)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git %q: %v", args, err)
		}
		return string(out)
	}
	run("init", "-q")
	seed := uint64(1)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for i := range 150 {
		top, inner := randomIgnore(rnd), randomIgnore(rnd)
		for name, text := range map[string]string{".gitignore": top, "a/.gitignore": inner} {
			if err := os.WriteFile(filepath.Join(work, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want := strings.FieldsFunc(run("ls-files", "-o", "--exclude-standard", "-z"), func(r rune) bool { return r == 0 })
		got, err := into(t, work, ".")
		if err != nil && len(want) > 0 {
			t.Fatal(err)
		}
		slices.Sort(want)
		slices.Sort(got.names)
		wanted := slices.DeleteFunc(want, func(name string) bool { return strings.HasSuffix(name, ".gitignore") })
		names := slices.DeleteFunc(got.names, func(name string) bool { return strings.HasSuffix(name, ".gitignore") })
		if diff := cmp.Diff(wanted, names,
			cmp.Transformer("nil", func(s []string) string { return fmt.Sprintf("%q", s) })); diff != "" {
			t.Fatalf("seed %d, round %d: .gitignore %q, a/.gitignore %q (-git +walk):\n%s", seed, i, top, inner, diff)
		}
	}
}

// randomIgnore makes patterns of whole path parts. Git has quirks of its own for
// ** next to other characters and for empty parts, which are not copied.
func randomIgnore(rnd *rand.Rand) string {
	tokens := []string{
		"a", "b", "c", "ab", ".b", "*", "?", "[ab]", "[!a]", "[^b]", "[a-c]", "{a,b}",
		`\{`, `\a`, `\#`, `\!`, "!", "#", " ", `\ `, "[[:alpha:]]", "d", "[a", "]", "[]a]", "[!]b]",
	}
	part := func() string {
		if rnd.IntN(5) == 0 {
			return "**"
		}
		var b strings.Builder
		for range 1 + rnd.IntN(3) {
			b.WriteString(tokens[rnd.IntN(len(tokens))])
		}
		return strings.ReplaceAll(b.String(), "**", "*")
	}
	var b strings.Builder
	for range rnd.IntN(4) {
		b.WriteString([]string{"", "", "!", "/", "!/"}[rnd.IntN(5)])
		b.WriteString(part())
		for range rnd.IntN(3) {
			b.WriteString("/" + part())
		}
		b.WriteString([]string{"\n", "/\n", " \n", "\r\n"}[rnd.IntN(4)])
	}
	return b.String()
}

// FuzzIgnore: no ignore file makes a walk fail.
func FuzzIgnore(f *testing.F) {
	f.Add([]byte("*.log\n!keep\n/a/**\n[a-\n{x,y}\n\\"))
	f.Add([]byte("\xef\xbb\xbf# comment\r\na/**/b\r\n**\n"))
	f.Fuzz(func(t *testing.T, rules []byte) {
		root := files(t, map[string]string{"d/a/b.log": "x", "d/keep": "k", "given": "g", "d/.gitignore": string(rules)})
		if err := walk.Into(t.Context(), walk.Config{Root: root, Args: []string{"given", "d"}}, newSink()); err != nil {
			t.Fatal(err)
		}
	})
}
