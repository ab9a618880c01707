package decider

import (
	"bytes"
	"encoding/json"
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"github.com/perdure/perdure/internal/text/lazyregexp"
	"github.com/perdure/perdure/internal/workspace"
)

// A manifest that only gains dependencies of a registry, and its lock file, are honest work in
// most cases, and the work needs them. Such a file is shown, and used as it is. A dependency
// from a folder, a link, an archive or a repository, another version of one that there was, and
// every other change is not such.

// dependencyFile is a changed file that may declare dependencies.
type dependencyFile struct {
	path     string
	old, now []byte
}

// onlyAdds reports whether a change only adds dependencies of a registry.
func (v *Versions) onlyAdds(f *dependencyFile, all []workspace.Change) (bool, error) {
	if f.now == nil {
		return false, nil
	}
	base := strings.ToLower(path.Base(f.path))
	if manifests, locks := manifestsOf(base); locks {
		return v.locksAdditions(f, manifests, all)
	}
	if f.old == nil {
		return false, nil
	}
	return addsTo(base, f), nil
}

// manifestsOf returns the manifests of which a file is the lock file, and whether it is one.
func manifestsOf(base string) (manifests []string, isLock bool) {
	switch base {
	case "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb":
		return []string{"package.json"}, true
	case "go.sum":
		return []string{"go.mod"}, true
	case "cargo.lock":
		return []string{"cargo.toml"}, true
	case "poetry.lock", "uv.lock", "pdm.lock", "pylock.toml":
		return []string{"pyproject.toml"}, true
	case "pipfile.lock":
		return []string{"pipfile"}, true
	case "gemfile.lock":
		return []string{"gemfile"}, true
	case "composer.lock":
		return []string{"composer.json"}, true
	}
	return nil, false
}

// otherSource matches added lines of lock files with a source that is no registry.
var otherSource = lazyregexp.New(`(?i)(resolved|resolution|version|source|url|specifier)\W.*(file:|link:|portal:|` +
	`workspace:|git\+|git@|github:|\.\./|directory|editable|virtual)|"link":\s*true|` +
	`^(path|directory|editable|git)\s*[:=]|^remote: *[./]`)

// locksAdditions reports whether the lock file of a manifest that only gains dependencies gains
// some, all from registries.
func (v *Versions) locksAdditions(f *dependencyFile, manifests []string, all []workspace.Change) (bool, error) {
	for i := range all {
		c := &all[i]
		if path.Dir(c.Path) != path.Dir(f.path) || !slices.Contains(manifests, strings.ToLower(path.Base(c.Path))) {
			continue
		}
		m := dependencyFile{path: c.Path}
		var err error
		if m.old, err = content(c.Old, v.Old); err == nil {
			m.now, err = content(c.New, v.New)
		}
		if err != nil || m.old == nil || m.now == nil || !addsTo(strings.ToLower(path.Base(c.Path)), &m) {
			return false, err
		}
		for _, line := range addedLines(f.old, f.now) { // go.sum has hashes only
			if path.Base(f.path) != "go.sum" && otherSource().MatchString(line) {
				return false, nil
			}
		}
		return true, nil
	}
	return false, nil
}

// addedLines returns the lines of a text that another one does not have.
func addedLines(old, now []byte) []string {
	had := make(map[string]bool)
	for line := range strings.Lines(string(old)) {
		had[strings.TrimSpace(line)] = true
	}
	var added []string
	for line := range strings.Lines(string(now)) {
		if bare := strings.TrimSpace(line); !had[bare] {
			added = append(added, bare)
		}
	}
	return added
}

// addsTo reports whether a manifest of this name only gains dependencies of a registry.
func addsTo(base string, f *dependencyFile) bool {
	switch {
	case base == "package.json":
		return addsKeys(decodeJSON, f, "dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
	case base == "composer.json":
		return addsKeys(decodeJSON, f, "require", "require-dev")
	case base == "cargo.toml":
		return addsKeys(decodeTOML, f, "dependencies", "dev-dependencies")
	case base == "pipfile":
		return addsKeys(decodeTOML, f, "packages", "dev-packages")
	case base == "pyproject.toml":
		return addsKeys(decodeTOML, f, "project.dependencies", "project.optional-dependencies.*", "dependency-groups.*",
			"tool.poetry.dependencies", "tool.poetry.dev-dependencies", "tool.poetry.group.*.dependencies",
			"tool.uv.dev-dependencies")
	case base == "go.mod":
		f = &dependencyFile{old: withoutIndirect(f.old), now: withoutIndirect(f.now)}
		return addsLines(f, goRequire().MatchString)
	case base == "gemfile":
		return addsLines(f, gemLine().MatchString)
	case strings.HasSuffix(base, ".txt"), strings.HasSuffix(base, ".in"):
		return addsLines(f, plainRequirement().MatchString)
	}
	return false
}

var (
	goRequire = lazyregexp.New(`^(require\s+)?[a-z0-9][a-z0-9.-]*\.[a-z]+/\S+\s+v\d\S*$|^(require\s*)?\($|^\)$`)
	gemLine   = lazyregexp.New(`^gem\s+["'][\w-]+["'](\s*,\s*["'][~><=!\d. \w-]*["'])*(\s*,\s*(require|group):?\s*\S+)*$`)
	// plainRequirement matches a requirement of pip without options and addresses.
	plainRequirement = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]*\s*(\[[\w, .-]*\])?\s*` +
		`([=<>!~]=?=?\s*[\w.*+!-]+\s*,?\s*)*(;[^@/]*)?(#.*)?$`)
	// plainVersion matches a version of a registry, also as a range.
	plainVersion = lazyregexp.New(`^[\s\w^~><=*|&,.+-]+$`)
)

// withoutIndirect returns a go.mod without its marks of indirect dependencies.
func withoutIndirect(text []byte) []byte {
	return bytes.ReplaceAll(text, []byte(" // indirect"), nil)
}

// addsLines reports whether a text only gains lines of a form. Lines of the version before may
// have moved.
func addsLines(f *dependencyFile, isPlain func(string) bool) bool {
	if len(addedLines(f.now, f.old)) > 0 { // removed ones
		return false
	}
	names := make(map[string]bool)
	for _, line := range meaning(f.old) {
		names[firstName(line)] = true
	}
	for _, line := range meaning([]byte(strings.Join(addedLines(f.old, f.now), "\n"))) {
		if !isPlain(line) || names[firstName(line)] && line != "(" && line != ")" && !strings.HasPrefix(line, "require") {
			return false
		}
	}
	return true
}

var nameInLine = lazyregexp.New(`[A-Za-z0-9][\w./@-]*`)

// firstName returns the name of the dependency of a line.
func firstName(line string) string {
	line = strings.TrimPrefix(strings.TrimPrefix(strings.TrimSpace(line), "require "), "gem ")
	return strings.ToLower(nameInLine().FindString(line))
}

func decodeJSON(text []byte) (map[string]any, error) {
	var top map[string]any
	return top, json.Unmarshal(text, &top)
}

func decodeTOML(text []byte) (map[string]any, error) {
	var top map[string]any
	return top, toml.Unmarshal(text, &top)
}

// addsKeys reports whether two versions of a manifest differ only in added keys, or added items of
// lists, of these sections. A star in a section stands for any key.
func addsKeys(decode func([]byte) (map[string]any, error), f *dependencyFile, sections ...string) bool {
	old, err := decode(f.old)
	if err != nil {
		return false
	}
	now, err := decode(f.now)
	return err == nil && addsBelow("", old, now, sections)
}

func addsBelow(at string, old, now any, sections []string) bool {
	inSection := slices.ContainsFunc(sections, func(s string) bool {
		ok, err := path.Match(strings.ReplaceAll(s, ".", "/"), strings.ReplaceAll(at, ".", "/"))
		return ok && err == nil
	})
	was, wasMap := old.(map[string]any)
	is, isMap := now.(map[string]any)
	if inSection && !isMap {
		return addsItems(old, now)
	}
	if !wasMap && old != nil || !isMap {
		return reflect.DeepEqual(old, now)
	}
	for _, key := range slices.Sorted(maps.Keys(is)) {
		before, had := was[key]
		inner := strings.TrimPrefix(at+"."+key, ".")
		switch {
		case had && !inSection:
			if !addsBelow(inner, before, is[key], sections) {
				return false
			}
		case had:
			if !reflect.DeepEqual(before, is[key]) {
				return false
			}
		case inSection:
			if !isPlainDependency(is[key]) {
				return false
			}
		default: // a new section
			if empty := map[string]any(nil); !leadsTo(inner, sections) || !addsBelow(inner, empty, is[key], sections) {
				return false
			}
		}
	}
	for key := range was {
		if _, has := is[key]; !has {
			return false
		}
	}
	return true
}

// leadsTo reports whether a key is one of the sections, or above one.
func leadsTo(at string, sections []string) bool {
	parts := strings.Split(at, ".")
	return slices.ContainsFunc(sections, func(s string) bool {
		want := strings.Split(s, ".")
		if len(parts) > len(want) {
			return false
		}
		for i, p := range parts {
			if want[i] != "*" && want[i] != p {
				return false
			}
		}
		return true
	})
}

// addsItems reports whether a list of requirements only gains plain ones of new names.
func addsItems(old, now any) bool {
	was, _ := old.([]any)
	is, ok := now.([]any)
	if !ok {
		return false
	}
	names := make(map[string]bool)
	for _, item := range was {
		if !slices.ContainsFunc(is, func(n any) bool { return reflect.DeepEqual(item, n) }) {
			return false
		}
		names[firstName(asText(item))] = true
	}
	for _, item := range is {
		had := slices.ContainsFunc(was, func(o any) bool { return reflect.DeepEqual(item, o) })
		text := asText(item)
		if !had && (text == "" || !plainRequirement().MatchString(text) || names[firstName(text)]) {
			return false
		}
	}
	return true
}

// isPlainDependency reports whether a value declares a version of a registry.
func isPlainDependency(v any) bool {
	switch v := v.(type) {
	case string:
		return plainVersion().MatchString(v)
	case map[string]any:
		for key, inner := range v {
			switch key {
			case "version":
				if !isPlainDependency(inner) {
					return false
				}
			case "features", "extras", "optional", "default-features", "python", "markers", "groups":
			default:
				return false
			}
		}
		return len(v) > 0
	}
	return false
}
