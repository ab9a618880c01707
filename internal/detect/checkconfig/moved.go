package checkconfig

import (
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"
)

// Move is a file that a change renamed.
type Move struct{ From, To string }

// minMoved is the length of a path that is looked for in configurations: a shorter one can be
// another word.
const minMoved = 4

// Moved returns configurations whose old versions name renamed files and folders as the new
// ones do: a check of a file that was renamed is still the same check.
func Moved(files []File, moves []Move) []File {
	names := renamings(moves)
	if len(names) == 0 {
		return files
	}
	// Longer names first: one can be a part of another.
	from := slices.SortedFunc(maps.Keys(names), func(a, b string) int { return len(b) - len(a) })
	all := slices.Clone(files)
	from = slices.DeleteFunc(from, func(name string) bool {
		return !slices.ContainsFunc(files, func(f File) bool { return bytes.Contains(f.Old, []byte(name)) })
	})
	for i := range all {
		all[i].Old = renamed(all[i].Old, from, names)
	}
	return all
}

// renamings returns the new names of files, and of folders whose files all moved to one other
// folder.
func renamings(moves []Move) map[string]string {
	names := make(map[string]string)
	folders := make(map[string]map[string]int)
	for _, m := range moves {
		if m.From == m.To {
			continue
		}
		if len(m.From) >= minMoved {
			names[m.From] = m.To
		}
		from, to := path.Split(m.From)
		newDir, base := path.Split(m.To)
		if from == "" || from == newDir || base != to {
			continue
		}
		if folders[from] == nil {
			folders[from] = make(map[string]int)
		}
		folders[from][newDir]++
	}
	for from, to := range folders {
		for dir, n := range to {
			if name := strings.TrimSuffix(from, "/"); len(to) == 1 && n > 1 && dir != "" && len(name) >= minMoved {
				names[name] = strings.TrimSuffix(dir, "/")
			}
		}
	}
	return names
}

// renamed replaces paths where they stand by themselves or begin longer ones; of several at one
// place the first in the list.
func renamed(text []byte, from []string, names map[string]string) []byte {
	out := make([]byte, 0, len(text))
	for at := 0; at < len(text); {
		found := ""
		if at == 0 || !inPath(text[at-1]) {
			found = pathAt(text[at:], from)
		}
		if found == "" {
			out = append(out, text[at])
			at++
			continue
		}
		out = append(out, names[found]...)
		at += len(found)
	}
	return out
}

// pathAt returns the path that a text begins with, "" if it begins with none.
func pathAt(text []byte, from []string) string {
	for _, name := range from {
		end := len(name)
		if bytes.HasPrefix(text, []byte(name)) && (len(text) == end || text[end] == '/' || !inPath(text[end])) {
			return name
		}
	}
	return ""
}

// inPath reports whether a byte continues the name of a file.
func inPath(b byte) bool {
	return b == '_' || b == '-' || b == '/' || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}
