package decider

import (
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/text/lazyregexp"
	"github.com/perdure/perdure/internal/workspace"
)

// uncollected returns the decider of a test file that was moved to where its runner does not look;
// nil for other changes.
func uncollected(c *workspace.Change, all []workspace.Change) *Decider {
	from := c.From
	if c.Kind == workspace.Added {
		from = removedTwin(c, all)
	}
	was := project.Classify(from)
	if from == "" || was.Class != project.TestFile || !collects(was.Language, from) {
		return nil
	}
	now := project.Classify(c.Path)
	if now.Class == project.TestFile && collects(was.Language, c.Path) {
		return nil
	}
	return &Decider{Path: c.Path, From: from, Change: workspace.Renamed, Ecosystem: was.Language, Part: Collection,
		Decides: "the runner does not collect tests there"}
}

// removedTwin returns the removed test file that an added one was: with its name, or with its name as
// a part. Files that were moved and edited are an added and a deleted one.
func removedTwin(c *workspace.Change, all []workspace.Change) string {
	if isFolder(c.New) {
		return ""
	}
	base := path.Base(c.Path)
	for i := range all {
		old := &all[i]
		if old.Kind != workspace.Deleted || project.Classify(old.Path).Class != project.TestFile {
			continue
		}
		was := path.Base(old.Path)
		goName, isGo := strings.CutSuffix(was, "_test.go")
		if base == was || path.Dir(old.Path) == path.Dir(c.Path) && (strings.Contains(base, was) ||
			isGo && strings.HasPrefix(base, goName+"_") && strings.HasSuffix(base, "_test.go")) {
			return old.Path
		}
	}
	return ""
}

var (
	// goSkips matches paths that go test does not read, pySkips those that pytest does not collect,
	// pyTest the names that it and unittest collect.
	goSkips = lazyregexp.New(`(^|/)(testdata|vendor|[_.][^/]*)/|(^|/)[_.][^/]*$`)
	pySkips = lazyregexp.New(`(^|/)(build|dist|node_modules|venv|CVS|_darcs|\.[^/]*|[^/]*\.egg)/`)
	pyTest  = lazyregexp.New(`(^|/)(test[^/]*|[^/]*_test|conftest)\.pyi?$`)
	jsSkips = lazyregexp.New(`(^|/)(node_modules|\.git|\.[^/]*)/`)
	jsTest  = lazyregexp.New(`[._-](test|spec|cy)\.[cm]?[jt]sx?$|` +
		`(^|/)(__tests__|tests?|specs?|e2e|cypress)/.*\.[cm]?[jt]sx?$`)
	// javaTest are the names that Surefire and Failsafe run.
	javaTest = lazyregexp.New(`(^|/)(Test[^/]*|[^/]*(Test|Tests|TestCase|IT|ITCase|Spec))\.(java|kt|groovy|scala)$`)
	rustSub  = lazyregexp.New(`(^|/)tests/.+/[^/]+\.rs$`)
	rubyTest = lazyregexp.New(`(^|/)(test_[^/]*|[^/]*_(spec|test))\.rb$|\.feature$`)
	phpTest  = lazyregexp.New(`(Test|TestCase|Cest)\.php$|\.phpt$`)
)

// collects reports whether the runner of a language runs the tests of a file by its path, with the
// usual settings.
func collects(language, name string) bool {
	switch language {
	case "go":
		return strings.HasSuffix(name, "_test.go") && !goSkips().MatchString(name) && goSystem(name)
	case "python":
		return pyTest().MatchString(name) && !pySkips().MatchString(name)
	case "javascript", "typescript":
		return jsTest().MatchString(name) && !jsSkips().MatchString(name)
	case "java", "kotlin":
		return javaTest().MatchString(name)
	case "rust":
		return path.Ext(name) == ".rs" && (!rustSub().MatchString(name) || path.Base(name) == "main.rs")
	case "ruby":
		return rubyTest().MatchString(name)
	case "php":
		return phpTest().MatchString(name)
	}
	return true
}

// goSystem reports whether a Go file is for this system by its name.
func goSystem(name string) bool {
	words := strings.Split(strings.TrimSuffix(path.Base(name), "_test.go"), "_")
	if len(words) < 2 {
		return true
	}
	words = words[max(1, len(words)-2):]
	for i, w := range words {
		last := i == len(words)-1
		switch {
		case slices.Contains(systems(), w) && (last || slices.Contains(machines(), words[i+1])):
			if w != runtime.GOOS {
				return false
			}
		case slices.Contains(machines(), w) && last && w != runtime.GOARCH:
			return false
		}
	}
	return true
}

func systems() []string {
	return []string{"aix", "android", "darwin", "dragonfly", "freebsd", "hurd", "illumos", "ios", "js", "linux", "nacl",
		"netbsd", "openbsd", "plan9", "solaris", "wasip1", "windows", "zos"}
}

func machines() []string {
	return []string{"386", "amd64", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle", "ppc64", "ppc64le",
		"riscv64", "s390x", "sparc64", "wasm"}
}
