// Package unseen holds changes that were written without a look at the rules
// of the detectors: cheats inside plausible work, and honest twins of them.
//
// There are several sets, each written at another time: the first lies in the
// folders of the languages, the others in the same folders under second, third
// and so on.
//
// A file is one project. Its sections, in order:
//
//	base PATH       a file of the project
//	work NAME       plausible work; the changes that follow belong to it
//	cheat NAME      a cheat: its body says family, tier, file, and with (a work)
//	honest NAME     an honest change: its body says what, and with (a work)
//	edit PATH       hunks parted by "@@": lines led by ' ', '-' or '+'
//	write PATH      the whole file
//	delete PATH     the file goes
//	move OLD NEW    the file gets another path
package unseen

import (
	"embed"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

//go:embed */*.txtar */*/*.txtar
var projects embed.FS

// A Scenario is one change of a project, and what it is.
type Scenario struct {
	Set      string // first, second, third ...
	Language string
	Name     string
	Cheat    bool
	Family   string // what is cheated, or what the honest change is
	Tier     int
	File     string // the file with the cheat
	Before   map[string]string
	After    map[string]string
}

// Sets are the names of the sets, the oldest first.
func Sets() []string {
	return []string{"first", "second", "third", "fourth", "fifth", "sixth", "seventh"}
}

// Load reads every scenario of every set.
func Load() ([]Scenario, error) {
	var all []Scenario
	for _, set := range Sets() {
		pattern := set + "/*/*.txtar"
		if set == "first" {
			pattern = "*/*.txtar"
		}
		more, err := load(set, pattern)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

func load(set, pattern string) ([]Scenario, error) {
	names, err := fs.Glob(projects, pattern)
	if err != nil {
		return nil, err
	}
	var all []Scenario
	for _, name := range names {
		data, err := projects.ReadFile(name)
		if err != nil {
			return nil, err
		}
		found, err := read(txtar.Parse(data).Files, path.Base(path.Dir(name)))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for i := range found {
			found[i].Set = set
		}
		all = append(all, found...)
	}
	return all, nil
}

// A step is one section that changes a file.
type step struct {
	verb, path, to string
	body           string
}

// A part is a work or a scenario with the steps that follow it.
type part struct {
	kind, name string
	says       map[string]string
	steps      []step
}

func read(sections []txtar.File, language string) ([]Scenario, error) {
	base := map[string]string{}
	var parts []*part
	for _, s := range sections {
		word := strings.Fields(s.Name)
		if len(word) < 2 {
			return nil, fmt.Errorf("section %q", s.Name)
		}
		switch word[0] {
		case "base":
			base[word[1]] = string(s.Data)
		case "work", "cheat", "honest":
			parts = append(parts, &part{kind: word[0], name: word[1], says: header(string(s.Data))})
		default:
			if len(parts) == 0 {
				return nil, fmt.Errorf("section %q belongs to nothing", s.Name)
			}
			p := parts[len(parts)-1]
			p.steps = append(p.steps, step{word[0], word[1], word[len(word)-1], string(s.Data)})
		}
	}
	return scenarios(base, parts, language)
}

func header(body string) map[string]string {
	says := map[string]string{}
	for line := range strings.Lines(body) {
		if key, value, ok := strings.Cut(line, ":"); ok {
			says[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	return says
}

func scenarios(base map[string]string, parts []*part, language string) ([]Scenario, error) {
	works := map[string]*part{}
	var all []Scenario
	for _, p := range parts {
		if p.kind == "work" {
			works[p.name] = p
			continue
		}
		s := Scenario{
			Language: language, Name: p.name, Cheat: p.kind == "cheat",
			Family: p.says["family"] + p.says["what"], File: p.says["file"],
			Before: base, After: maps.Clone(base),
		}
		if _, err := fmt.Sscan(p.says["tier"], &s.Tier); err != nil && s.Cheat {
			return nil, fmt.Errorf("%s: tier: %w", p.name, err)
		}
		for _, with := range strings.Fields(p.says["with"]) {
			if works[with] == nil {
				return nil, fmt.Errorf("%s: no work %q", p.name, with)
			}
			if err := apply(s.After, works[with].steps); err != nil {
				return nil, fmt.Errorf("%s: work %s: %w", p.name, with, err)
			}
		}
		if err := apply(s.After, p.steps); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		if err := sound(s); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		all = append(all, s)
	}
	return all, nil
}

// sound refuses a scenario that says too little of itself.
func sound(s Scenario) error {
	_, was := s.Before[s.File]
	_, is := s.After[s.File]
	switch {
	case s.Family == "":
		return fmt.Errorf("has no family")
	case maps.Equal(s.Before, s.After):
		return fmt.Errorf("changes nothing")
	case s.Cheat && !was && !is:
		return fmt.Errorf("no file %q", s.File)
	case s.Cheat && s.Before[s.File] == s.After[s.File]:
		return fmt.Errorf("%s is not changed", s.File)
	}
	return nil
}

func apply(files map[string]string, steps []step) error {
	for _, st := range steps {
		old, there := files[st.path]
		if !there && st.verb != "write" {
			return fmt.Errorf("%s %s: no such file", st.verb, st.path)
		}
		switch st.verb {
		case "write":
			files[st.path] = st.body
		case "delete":
			delete(files, st.path)
		case "move":
			delete(files, st.path)
			files[st.to] = old
		case "edit":
			text, err := edit(old, st.body)
			if err != nil {
				return fmt.Errorf("%s: %w", st.path, err)
			}
			files[st.path] = text
		default:
			return fmt.Errorf("verb %q", st.verb)
		}
	}
	return nil
}

// edit applies hunks. The old side of each must be found exactly once.
func edit(text, body string) (string, error) {
	for hunk := range strings.SplitSeq("\n"+body, "\n@@\n") {
		var from, to strings.Builder
		for line := range strings.Lines(strings.TrimPrefix(hunk, "\n")) {
			rest := strings.TrimSuffix(line[1:], "\n") + "\n"
			switch line[0] {
			case '-':
				from.WriteString(rest)
			case '+':
				to.WriteString(rest)
			case ' ':
				from.WriteString(rest)
				to.WriteString(rest)
			case '\n':
				from.WriteString("\n")
				to.WriteString("\n")
			default:
				return "", fmt.Errorf("hunk line %q", line)
			}
		}
		// A hunk begins at the start of a line.
		whole, old := "\n"+text, "\n"+from.String()
		if n := strings.Count(whole, old); n != 1 {
			return "", fmt.Errorf("%d places for hunk %q", n, from.String())
		}
		text = strings.Replace(whole, old, "\n"+to.String(), 1)[1:]
	}
	return text, nil
}
