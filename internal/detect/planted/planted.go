// Package planted holds small clean projects in ten languages and edits of them: cheats,
// each with the pattern that must find it, and legitimate twins, which must not block.
// Tests and the benchmark of the detectors use it.
package planted

import (
	"embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/rogpeppe/go-internal/txtar"
)

//go:embed corpus/*.txtar
var corpus embed.FS

// Edit is a change of a project.
type Edit struct {
	Language string
	// Cheat is set for edits that must be found; otherwise the edit is a legitimate twin.
	Cheat bool
	// Pattern is the pattern that finds the cheat, or that the twin resembles.
	Pattern string
	// Name describes the edit.
	Name string
	// Old and New are the files before and after, by path.
	Old, New map[string]string
}

// Edits returns all edits of the corpus, by language. An error names the file and the
// edit that cannot be applied.
func Edits() ([]Edit, error) {
	names, err := corpus.ReadDir("corpus")
	if err != nil {
		return nil, fmt.Errorf("read corpus: %w", err)
	}
	var all []Edit
	for _, entry := range names {
		text, err := corpus.ReadFile(path.Join("corpus", entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read corpus: %w", err)
		}
		edits, err := parse(strings.TrimSuffix(entry.Name(), ".txtar"), text)
		if err != nil {
			return nil, fmt.Errorf("read corpus: %s: %w", entry.Name(), err)
		}
		all = append(all, edits...)
	}
	return all, nil
}

// parse reads an archive: the files of the project, then edits, whose names are "cheat
// PATTERN: text" or "twin PATTERN: text".
func parse(language string, text []byte) ([]Edit, error) {
	base := make(map[string]string)
	var all []Edit
	for _, f := range txtar.Parse(text).Files {
		head, what, ok := strings.Cut(f.Name, ": ")
		if !ok {
			base[f.Name] = string(f.Data)
			continue
		}
		kind, pattern, _ := strings.Cut(head, " ")
		e := Edit{Language: language, Cheat: kind == "cheat", Pattern: pattern, Name: what, Old: base, New: maps.Clone(base)}
		if err := e.apply(string(f.Data)); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		all = append(all, e)
	}
	return all, nil
}

// apply carries out the script of an edit. A line "@ PATH" chooses a file; "@move A B",
// "@delete A" and "@add A" move, delete and add one; "@old A" adds one to the project before
// the edit. Blocks between <<<<, ==== and >>>>
// replace a text that occurs once.
func (e *Edit) apply(script string) error {
	lines := strings.SplitAfter(script, "\n")
	file := ""
	for i := 0; i < len(lines); i++ {
		words := strings.Fields(lines[i])
		if len(words) == 0 {
			continue
		}
		switch {
		case words[0] == "@":
			file = words[1]
		case words[0] == "@move":
			e.New[words[2]] = e.New[words[1]]
			delete(e.New, words[1])
			file = words[2]
		case words[0] == "@delete":
			delete(e.New, words[1])
		case words[0] == "@add", words[0] == "@old":
			end := i + 1
			for end < len(lines) && !command(lines[end]) {
				end++
			}
			e.New[words[1]] = strings.Join(lines[i+1:end], "")
			if words[0] == "@old" {
				e.Old = maps.Clone(e.Old)
				e.Old[words[1]], file = e.New[words[1]], words[1]
			}
			i = end - 1
		case words[0] == "<<<<":
			middle := i + slices.Index(lines[i:], "====\n")
			end := i + slices.Index(lines[i:], ">>>>\n")
			if middle < i || end < middle {
				return fmt.Errorf("line %d: block without ==== and >>>>", i+1)
			}
			old, now := strings.Join(lines[i+1:middle], ""), strings.Join(lines[middle+1:end], "")
			if n := strings.Count(e.New[file], old); n != 1 {
				return fmt.Errorf("line %d: text to replace occurs in %q %d times", i+1, file, n)
			}
			e.New[file] = strings.Replace(e.New[file], old, now, 1)
			i = end
		default:
			return fmt.Errorf("line %d: unknown command %q", i+1, lines[i])
		}
	}
	return nil
}

// command reports whether a line of a script is a command, and not a part of a file.
func command(line string) bool {
	word, _, _ := strings.Cut(strings.TrimSpace(line), " ")
	return slices.Contains([]string{"@", "@move", "@delete", "@add", "@old", "<<<<"}, word)
}
