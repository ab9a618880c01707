// Package folders describes the files of a context by their folders, with sizes and
// kinds of files, for models that cannot read all of it.
package folders

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/corpus/pack"
	"github.com/perdure/perdure/internal/text/human"
)

// shownKinds is how many kinds of files are named of a folder.
const shownKinds = 4

// folder is a folder with what is below it.
type folder struct {
	name    string // with a slash at its end; "" for the root
	files   int
	bytes   int64
	kinds   map[string]int
	folders map[string]*folder
}

// tree returns the folder that holds all files.
func tree(files []pack.File) *folder {
	root := newFolder("")
	for _, f := range files {
		at, rest := root, f.Name
		at.add(f)
		for {
			i := strings.IndexByte(rest, '/')
			if i < 0 {
				break
			}
			name := rest[:i+1]
			below := at.folders[name]
			if below == nil {
				below = newFolder(at.name + name)
				at.folders[name] = below
			}
			below.add(f)
			at, rest = below, rest[i+1:]
		}
	}
	return root
}

func newFolder(name string) *folder {
	return &folder{name: name, kinds: make(map[string]int), folders: make(map[string]*folder)}
}

func (f *folder) add(file pack.File) {
	f.files++
	f.bytes += file.Length
	f.kinds[kind(file.Name)]++
}

// kind is the ending of a file's name without its dot, or the name itself.
func kind(name string) string {
	base := path.Base(name)
	if ext := path.Ext(base); len(ext) > 1 && len(ext) <= 12 && ext != base {
		return strings.ToLower(ext[1:])
	}
	if len(base) <= 12 {
		return base
	}
	return "other"
}

// line describes the folder.
func (f *folder) line() string {
	kinds := slices.SortedFunc(maps.Keys(f.kinds), func(a, b string) int {
		return cmp.Or(cmp.Compare(f.kinds[b], f.kinds[a]), cmp.Compare(a, b))
	})
	var parts []string
	others := 0
	for i, k := range kinds {
		if i < shownKinds {
			parts = append(parts, fmt.Sprintf("%s %d", k, f.kinds[k]))
		} else {
			others += f.kinds[k]
		}
	}
	if others > 0 {
		parts = append(parts, fmt.Sprintf("others %d", others))
	}
	return fmt.Sprintf("%q, %s, %s (%s)\n", cmp.Or(f.name, "./"), human.Count(f.files, "file"), human.Size(f.bytes),
		strings.Join(parts, ", "))
}

// below returns the folders directly in a folder, in order.
func (f *folder) below() []*folder {
	return slices.SortedFunc(maps.Values(f.folders), func(a, b *folder) int { return cmp.Compare(a.name, b.name) })
}

// Describe lists folders with the number, the sizes and the kinds of all files below
// them, in at most room bytes: the largest folders are divided into theirs as long as
// there is room.
func Describe(files []pack.File, room int) string {
	top := tree(files)
	for len(top.folders) == 1 { // what all names have in common says nothing
		only := top.below()[0]
		if only.files != top.files {
			break
		}
		top = only
	}
	shown := []*folder{top}
	room -= len(top.line())
	for divisible := []*folder{top}; len(divisible) > 0; {
		i := largest(divisible)
		next := divisible[i].below()
		divisible = slices.Delete(divisible, i, i+1)
		size := 0
		for _, f := range next {
			size += len(f.line())
		}
		if size > room {
			continue // a smaller one may fit
		}
		room -= size
		shown, divisible = append(shown, next...), append(divisible, next...)
	}
	slices.SortFunc(shown, func(a, b *folder) int { return cmp.Compare(a.name, b.name) })
	var b strings.Builder
	for _, f := range shown {
		b.WriteString(f.line())
	}
	return b.String()
}

func largest(list []*folder) int {
	at := 0
	for i, f := range list {
		if f.bytes > list[at].bytes {
			at = i
		}
	}
	return at
}

// List describes what is directly in a folder: its folders, then its files with their
// sizes. Each entry is one line. The name of the folder may lack its last slash; "" and
// "." are the top.
func List(files []pack.File, name string) []string {
	name = strings.TrimPrefix(strings.TrimSuffix(name, "/")+"/", "./")
	if name == "/" {
		name = ""
	}
	var inside []pack.File
	var direct []string
	for _, f := range files {
		rest, ok := strings.CutPrefix(f.Name, name)
		if !ok {
			continue
		}
		if inside = append(inside, f); !strings.Contains(rest, "/") {
			direct = append(direct, File(f))
		}
	}
	if len(inside) == 0 {
		return nil
	}
	at := tree(inside)
	for at.name != name {
		next := at.folders[name[len(at.name):len(at.name)+strings.IndexByte(name[len(at.name):], '/')+1]]
		if next == nil {
			return nil
		}
		at = next
	}
	var out []string
	for _, f := range at.below() {
		out = append(out, f.line())
	}
	return append(out, direct...)
}

// File describes a file in one line.
func File(f pack.File) string {
	return fmt.Sprintf("%q, %s, %s\n", f.Name, human.Count(f.Lines, "line"), human.Size(f.Length))
}
