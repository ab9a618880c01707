package decider

import (
	_ "embed" // names of modules
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/BurntSushi/toml"

	"github.com/perdure/perdure/internal/text/lazyregexp"
	"github.com/perdure/perdure/internal/workspace"
)

// shadows finds new files that are loaded instead of other ones.
type shadows struct {
	v *Versions
	// libraries returns the modules of the libraries that the project declared before.
	libraries func() (map[string]bool, error)
}

func newShadows(v *Versions) *shadows {
	return &shadows{v: v, libraries: sync.OnceValues(v.declared)}
}

// find returns the decider that a new file is; nil if it is loaded instead of nothing.
func (s *shadows) find(c *workspace.Change) (*Decider, error) {
	if isFolder(c.New) || !isFolder(c.Old) && c.From == "" {
		return nil, nil
	}
	instead, err := s.instead(c.Path)
	if instead == "" || err != nil {
		return nil, err
	}
	return &Decider{Path: c.Path, From: c.From, Change: c.Kind, Ecosystem: ecosystemOf(c.Path), Part: Loader,
		Decides: "is loaded instead of " + instead}, nil
}

func ecosystemOf(name string) string {
	switch path.Ext(name) {
	case ".py":
		return "python"
	case ".java", ".kt", ".groovy", ".scala":
		return "java"
	case ".rb":
		return "ruby"
	}
	return "node"
}

// instead returns what a new file is loaded instead of; "" for nothing.
func (s *shadows) instead(name string) (string, error) {
	ext := path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	if other := s.v.shadowed(stem, ext); other != "" {
		return other, nil
	}
	switch ext {
	case ".py":
		return s.insteadOfModule(name)
	case ".java", ".kt", ".groovy", ".scala":
		main := strings.Replace(name, "src/test/", "src/main/", 1)
		if main != name && s.v.Was(main) && s.v.Is(main) {
			return main, nil
		}
	case ".rb":
		if base := path.Base(stem); path.Dir(name) == "lib" || path.Dir(name) == "." || path.Dir(name) == "spec" ||
			path.Dir(name) == "test" {
			if libs, err := s.libraries(); err != nil || libs["gem "+base] {
				return "the library " + base, err
			}
			if slices.Contains([]string{"rspec", "minitest", "test_unit", "bundler", "rake", "set", "json", "date", "time",
				"minitest/autorun"}, base) {
				return "the library " + base, nil
			}
		}
	}
	return "", nil
}

// shadowed returns the file next to a new one of the same stem that is not loaded any more; "" for none.
func (v *Versions) shadowed(stem, ext string) string {
	both := func(name string) bool { return v.Was(name) && v.Is(name) }
	switch ext {
	case ".py":
		if dir, init := path.Split(stem); init == "__init__" && both(strings.TrimSuffix(dir, "/")+".py") {
			return strings.TrimSuffix(dir, "/") + ".py"
		}
	case ".js", ".jsx", ".mjs", ".cjs", ".json":
		for _, other := range []string{".ts", ".tsx", ".mts", ".cts", ".jsx"} {
			if other != ext && both(stem+other) {
				return stem + other
			}
		}
		if ext != ".js" && ext != ".json" && both(stem+".js") {
			return stem + ".js" // some resolvers prefer .mjs or .cjs
		}
	case "":
		for _, other := range []string{".js", ".json", ".cjs"} { // a path without extension is tried first
			if both(stem+other) && !strings.Contains(path.Base(stem), ".") {
				return stem + other
			}
		}
	}
	return ""
}

// insteadOfModule returns the library instead of which a new Python file is loaded; "" for none.
// Modules in a package have other names than libraries.
func (s *shadows) insteadOfModule(name string) (string, error) {
	top, dir := strings.TrimSuffix(path.Base(name), ".py"), path.Dir(name)
	if top == "__init__" {
		top, dir = path.Base(dir), path.Dir(dir)
	}
	if s.v.Is(path.Join(dir, "__init__.py")) || top == "." {
		return "", nil
	}
	if slices.Contains(pythonModules(), top) {
		return "the module " + top + " of Python", nil
	}
	libs, err := s.libraries()
	switch {
	case err != nil:
		return "", err
	case libs[strings.ToLower(top)]:
	case s.v.Installed == nil || !slices.ContainsFunc([]string{top, top + ".py"}, func(file string) bool {
		return s.v.Installed("{.venv,venv,env}/{lib,Lib}/{python*/site-packages,site-packages}/" + file)
	}):
		return "", nil
	}
	return "the library " + top, nil
}

//go:embed modules.txt
var moduleText string

// pythonModules are the modules of the standard library and of test runners.
var pythonModules = sync.OnceValue(func() []string {
	names, _, _ := strings.Cut(moduleText, "\n\n")
	return strings.Fields(names)
})

// aliases are the modules of libraries of another name.
var aliases = sync.OnceValue(func() map[string]string {
	_, text, _ := strings.Cut(moduleText, "\n\n")
	all := make(map[string]string)
	for line := range strings.Lines(text) {
		if library, module, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			all[library] = strings.ToLower(module)
		}
	}
	return all
})

// manifestName matches manifests that declare libraries of Python or Ruby.
var manifestName = lazyregexp.New(`(?i)^(requirements.*\.(txt|in)|constraints.*\.txt|pyproject\.toml|pipfile|` +
	`setup\.(py|cfg)|poetry\.lock|gemfile|environment\.ya?ml|tox\.ini)$|\.gemspec$`)

// declared returns the modules of the libraries that the manifests of the version before declare.
func (v *Versions) declared() (map[string]bool, error) {
	all := make(map[string]bool)
	for _, name := range v.Names() {
		if !manifestName().MatchString(path.Base(name)) || libraryFolder(name) != "" {
			continue
		}
		text, err := v.Old(name)
		if err != nil {
			return nil, err
		}
		for _, lib := range librariesIn(path.Base(name), text) {
			lib = strings.ToLower(lib)
			all[lib], all[strings.ReplaceAll(lib, "-", "_")] = true, true
			all[aliases()[lib]] = true
		}
	}
	delete(all, "")
	return all, nil
}

var (
	requirement = lazyregexp.New(`^\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(\[[^\]]*\])?\s*($|[=<>!~;@#,\s])`)
	installs    = lazyregexp.New(`(?s)(?:install_requires|tests_require|setup_requires|extras_require|deps)\s*=\s*(.*)`)
	quoted      = lazyregexp.New(`["']([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]"']*\])?\s*(?:[=<>!~;][^"']*)?["']`)
	lockedName  = lazyregexp.New(`(?m)^name = "([^"]+)"`)
	gemName     = lazyregexp.New(`(?m)(?:^|\s)(?:gem|add(?:_\w+)?_dependency)[\s(]+["']([^"']+)["']`)
	condaName   = lazyregexp.New(`(?m)^\s*-\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*($|[=<>!~])`)
)

// librariesIn returns the libraries that a manifest declares. Those of Ruby begin with "gem ".
func librariesIn(base string, text []byte) []string {
	matches := func(re *regexp.Regexp, text, prefix string) (all []string) {
		for _, m := range re.FindAllStringSubmatch(text, -1) {
			all = append(all, prefix+m[1])
		}
		return all
	}
	switch base = strings.ToLower(base); {
	case base == "pyproject.toml", base == "pipfile":
		return tomlLibraries(text)
	case base == "poetry.lock":
		return matches(lockedName(), string(text), "")
	case base == "gemfile", strings.HasSuffix(base, ".gemspec"):
		return matches(gemName(), string(text), "gem ")
	case strings.HasPrefix(base, "environment."):
		return matches(condaName(), string(text), "")
	case base == "setup.py":
		if m := installs().FindSubmatch(text); m != nil {
			return matches(quoted(), string(m[1]), "")
		}
		return nil
	case base == "setup.cfg", base == "tox.ini":
		if m := installs().FindSubmatch(text); m != nil {
			text = m[1]
		} else {
			return nil
		}
	}
	var all []string
	for line := range strings.Lines(string(text)) {
		if m := requirement().FindStringSubmatch(line); m != nil {
			all = append(all, m[1])
		}
	}
	return all
}

// tomlLibraries returns the libraries of pyproject.toml and Pipfile.
func tomlLibraries(text []byte) []string {
	var top map[string]any
	if toml.Unmarshal(text, &top) != nil {
		return nil
	}
	var all []string
	var walk func(key string, v any)
	walk = func(key string, v any) {
		lists := strings.Contains(key, "dependencies") || strings.Contains(key, "dependency-groups") ||
			key == "packages" || key == "dev-packages"
		switch v := v.(type) {
		case map[string]any:
			for name, inner := range v {
				if _, list := inner.([]any); lists && !list {
					all = append(all, name)
				}
				if lists {
					name = key
				}
				walk(name, inner)
			}
		case []any:
			for _, item := range v {
				if m := requirement().FindStringSubmatch(asText(item)); lists && m != nil {
					all = append(all, m[1])
				}
			}
		}
	}
	walk("", top)
	return all
}

func asText(v any) string {
	text, _ := v.(string)
	return text
}
