package machine

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Cache is a folder of downloaded packages that checks share, because they would download
// all of them again otherwise.
type Cache struct {
	// Name is the name in messages.
	Name string
	// Dir is the folder, absolute.
	Dir string
	// key identifies the cache in a record; empty is Dir.
	key string
	// Env are the variables, "NAME=value", that lead tools to it.
	Env []string
	// Link, if set, is the path in a home folder where tools expect it.
	Link string
	// recorded are patterns of the parts of Dir to record, with slashes; none: all of it.
	recorded []string
	// flat is set if files in subfolders do not count.
	flat bool
	// volatile reports whether tools change a file in their ordinary work.
	volatile func(slashed string) bool
	// added reports whether a new file is a change. inPackage is set if it is in a folder
	// that had files, or below one. nil: it is one then.
	added func(slashed string, inPackage bool) bool
}

// Caches returns the caches of the user of an environment, sorted by name, also those that
// do not exist: what is in them later is new.
func Caches(env []string) []Cache {
	at := locations{env: env}
	all := slices.Concat(at.goModules(), at.rust(), at.java(), at.python(), at.others())
	all = slices.DeleteFunc(all, func(c Cache) bool { return !filepath.IsAbs(c.Dir) })
	slices.SortFunc(all, func(x, y Cache) int { return strings.Compare(x.Name, y.Name) })
	return all
}

// Existing returns those of the caches that exist.
func Existing(caches []Cache) []Cache {
	return slices.DeleteFunc(slices.Clone(caches), func(c Cache) bool {
		info, err := os.Stat(c.Dir)
		return err != nil || !info.IsDir() || len(c.parts()) == 0
	})
}

// parts returns the paths of the recorded parts that exist, with slashes.
func (c *Cache) parts() []string {
	if len(c.recorded) == 0 {
		return []string{"."}
	}
	var parts []string
	for _, pattern := range c.recorded {
		found, err := fs.Glob(os.DirFS(c.Dir), pattern)
		if err == nil { // the patterns are valid
			parts = append(parts, found...)
		}
	}
	return parts
}

// inPackageBut returns Cache.added for a cache in which package managers add files to the
// folder named here for every new package, and compare these files with a lock file.
func inPackageBut(folder string) func(string, bool) bool {
	return func(name string, inPackage bool) bool { return inPackage && !strings.HasPrefix(name, folder+"/") }
}

// Installed returns variables for the managers of installed tool chains, which otherwise
// look for them in the home folder.
func Installed(env []string) []string {
	at := locations{env: env}
	var found []string
	for _, v := range [][2]string{{"PYENV_ROOT", ".pyenv"}, {"RBENV_ROOT", ".rbenv"}, {"NODENV_ROOT", ".nodenv"},
		{"NVM_DIR", ".nvm"}, {"VOLTA_HOME", ".volta"}, {"ASDF_DATA_DIR", ".asdf"},
		{"MISE_DATA_DIR", ".local/share/mise"}, {"SDKMAN_DIR", ".sdkman"}, {"RUSTUP_HOME", ".rustup"}} {
		dir := at.folder(v[0], v[1])
		if _, err := os.Stat(dir); err == nil && filepath.IsAbs(dir) {
			found = append(found, v[0]+"="+dir)
		}
	}
	return found
}

// Selections returns the files outside of the workspace that select versions of installed
// tool chains, in the form of caches. Every change of them counts.
func Selections(env []string) []Cache {
	at := locations{env: env}
	var all []Cache
	for _, f := range [][3]string{{"HOME", "", ".tool-versions"}, {"PYENV_ROOT", ".pyenv", "version"},
		{"RBENV_ROOT", ".rbenv", "version"}, {"NODENV_ROOT", ".nodenv", "version"},
		{"RUSTUP_HOME", ".rustup", "settings.toml"}} {
		if dir := at.folder(f[0], f[1]); filepath.IsAbs(dir) {
			all = append(all, Cache{Name: "selected versions", Dir: dir, recorded: []string{f[2]},
				added: func(string, bool) bool { return true }})
		}
	}
	return all
}

// Settings returns the files outside of the workspace with which an agent can change what
// the check does in the workspace, in the form of caches. Every change of them counts.
func Settings(env []string) []Cache {
	file := (locations{env: env}).goSettings()
	if !filepath.IsAbs(file) {
		return nil
	}
	return []Cache{{Name: "Go settings", Dir: filepath.Dir(file), key: "settings " + file,
		recorded: []string{filepath.Base(file)}, added: func(string, bool) bool { return true }}}
}

// locations finds folders of the user of an environment.
type locations struct{ env []string }

// get returns the value of a variable; of two the last one counts.
func (l locations) get(name string) string { return Get(l.env, name) }

// Get returns the value of a variable of an environment; of two the last one counts. On
// Windows names match in any case.
func Get(env []string, name string) string { return get(env, name, runtime.GOOS == "windows") }

func get(env []string, name string, fold bool) string {
	for _, v := range slices.Backward(env) {
		if value, ok := valueOf(v, name, fold); ok {
			return value
		}
	}
	return ""
}

// Set returns an environment with the value of a variable replaced; see [Get] for names.
func Set(env []string, name, value string) []string {
	return set(env, name, value, runtime.GOOS == "windows")
}

func set(env []string, name, to string, fold bool) []string {
	others := slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		_, ok := valueOf(v, name, fold)
		return ok
	})
	return append(others, name+"="+to)
}

// valueOf returns the value of a variable "NAME=value" if it has this name. fold is set if
// names match in any case.
func valueOf(variable, name string, fold bool) (value string, ok bool) {
	is, value, ok := strings.Cut(variable, "=")
	return value, ok && (is == name || fold && strings.EqualFold(is, name))
}

func (l locations) home() string {
	if runtime.GOOS == "windows" {
		return l.get("USERPROFILE")
	}
	return l.get("HOME")
}

// folder returns the value of a variable, else a folder in the home folder.
func (l locations) folder(name, inHome string) string {
	if dir := l.get(name); dir != "" {
		return dir
	}
	if l.home() == "" {
		return ""
	}
	return filepath.Join(l.home(), filepath.FromSlash(inHome))
}

// goSettings returns the file that `go env -w` writes; "off" or empty for none.
func (l locations) goSettings() string {
	if file := l.get("GOENV"); file != "" {
		return file
	}
	dir := ""
	switch runtime.GOOS {
	case "windows":
		dir = l.get("APPDATA")
	case "darwin":
		dir = filepath.Join(l.home(), "Library", "Application Support")
	default:
		dir = l.folder("XDG_CONFIG_HOME", ".config")
	}
	return filepath.Join(dir, "go", "env")
}

func (l locations) goModules() []Cache {
	dir := l.get("GOMODCACHE")
	if dir == "" {
		gopath, _, _ := strings.Cut(l.folder("GOPATH", "go"), string(filepath.ListSeparator))
		dir = filepath.Join(gopath, "pkg", "mod")
	}
	return []Cache{{Name: "Go modules", Dir: dir, Env: []string{"GOMODCACHE=" + dir}, volatile: func(name string) bool {
		base := name[strings.LastIndexByte(name, '/')+1:]
		return base == "list" || base == "lock" || strings.HasSuffix(base, ".lock") ||
			strings.HasPrefix(name, "cache/download/sumdb/") || strings.HasPrefix(name, "cache/vcs/")
	}, added: inPackageBut("cache/download")}}
}

// rust returns the caches of cargo. The rest of its folder has settings that can replace
// the compiler, so each part is linked into another one.
func (l locations) rust() []Cache {
	dir := l.folder("CARGO_HOME", ".cargo")
	return []Cache{
		{Name: "cargo registry", Dir: filepath.Join(dir, "registry"), Link: ".cargo/registry",
			recorded: []string{"src", "cache"}, added: inPackageBut("cache")},
		{Name: "cargo git", Dir: filepath.Join(dir, "git"), Link: ".cargo/git", recorded: []string{"checkouts"}},
	}
}

func (l locations) java() []Cache {
	var found []Cache
	if l.home() != "" {
		m2 := filepath.Join(l.home(), ".m2")
		repository := filepath.Join(m2, "repository")
		found = []Cache{{Name: "Maven repository", Dir: repository, Link: ".m2/repository", volatile: writtenByMaven},
			{Name: "Maven wrapper", Dir: filepath.Join(m2, "wrapper"), Link: ".m2/wrapper"}}
	}
	gradle := l.folder("GRADLE_USER_HOME", ".gradle")
	return append(found,
		Cache{Name: "Gradle modules", Dir: filepath.Join(gradle, "caches"), recorded: []string{"modules-2/files-2.1"},
			Env: []string{"GRADLE_RO_DEP_CACHE=" + filepath.Join(gradle, "caches")}},
		Cache{Name: "Gradle wrapper", Dir: filepath.Join(gradle, "wrapper"), Link: ".gradle/wrapper",
			volatile: func(name string) bool { return strings.HasSuffix(name, ".lck") }})
}

// writtenByMaven reports whether Maven writes a file of its repository again, also when it
// installs a module of the project.
func writtenByMaven(name string) bool {
	base := name[strings.LastIndexByte(name, '/')+1:]
	return strings.HasSuffix(base, ".lastUpdated") || base == "resolver-status.properties" ||
		base == "_remote.repositories" || strings.HasPrefix(base, "maven-metadata-") || strings.Contains(name, "-SNAPSHOT/")
}

// python returns the packages that pip installed for the user. Any new file can be executed
// by programs that do not name it: it hides a package of the system, is a plug-in, or is
// executed by every program, as usercustomize.py and *.pth are.
func (l locations) python() []Cache {
	dir := l.folder("PYTHONUSERBASE", ".local")
	if dir == "" {
		return nil
	}
	return []Cache{{Name: "Python packages of the user", Dir: dir, Env: []string{"PYTHONUSERBASE=" + dir},
		recorded: []string{"lib/python*"},
		volatile: func(name string) bool { return strings.Contains(name, "__pycache__/") },
		added:    func(string, bool) bool { return true }}}
}

func (l locations) others() []Cache {
	var found []Cache
	add := func(name, variable, inHome string, linked bool) {
		c := Cache{Name: name, Dir: l.folder(variable, inHome)}
		if linked {
			c.Link = inHome
		}
		if variable != "" {
			c.Env = []string{variable + "=" + c.Dir}
		}
		found = append(found, c)
	}
	add("NuGet packages", "NUGET_PACKAGES", ".nuget/packages", false)
	add("Ruby gems", "", ".gem", true)
	add("Ruby gems (XDG)", "", ".local/share/gem", true)
	add("Mix archives", "", ".mix", true)
	add("Hex packages", "", ".hex", true)
	found[len(found)-1].added = inPackageBut("packages")
	add("Corepack", "COREPACK_HOME", ".cache/node/corepack", false)
	browsers := map[string]string{"darwin": "Library/Caches/ms-playwright", "windows": "AppData/Local/ms-playwright"}
	add("Playwright browsers", "PLAYWRIGHT_BROWSERS_PATH", cmp.Or(browsers[runtime.GOOS], ".cache/ms-playwright"), false)
	return found
}
