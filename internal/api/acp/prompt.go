package acp

import (
	"cmp"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
)

// input is a prompt as the editor sent it.
type input struct {
	Prompt
	// command is the command with which the text begins, "" for none.
	command string
	// shown is the text of the user, with the command.
	shown string
}

// readPrompt reads the content blocks of a prompt. Resources are named in the text where they
// stand in the prompt.
func readPrompt(dir string, blocks []block) (input, error) {
	if len(blocks) == 0 || len(blocks) > MaxBlocks {
		return input{}, invalidf("the prompt has %d content blocks; 1 to %d are read", len(blocks), MaxBlocks)
	}
	var in input
	var text strings.Builder
	for i := range blocks {
		b := &blocks[i]
		switch b.Type {
		case "text":
			text.WriteString(b.Text)
		case "resource_link":
			name, err := in.link(dir, b.URI)
			if err != nil {
				return input{}, err
			}
			text.WriteString("`" + name + "`")
		case "resource":
			name, err := in.embed(dir, &b.Resource)
			if err != nil {
				return input{}, err
			}
			text.WriteString("`" + name + "`")
		default:
			return input{}, invalidf("content block %d: type %.50q is not supported", i+1, b.Type)
		}
	}
	in.shown = strings.TrimSpace(strings.ToValidUTF8(text.String(), "\uFFFD"))
	in.command, in.Text = splitCommand(in.shown)
	return in, nil
}

// link adds a file that the editor refers to, and returns its name.
func (in *input) link(dir, uri string) (string, error) {
	path, _, ok := filePath(uri)
	if !ok {
		return "", invalidf("resource_link %.200q is not a file: URI with an absolute path", uri)
	}
	name := nameIn(dir, path)
	in.Files = append(in.Files, name)
	return name, nil
}

// embed adds text that the editor sent, and returns its name.
func (in *input) embed(dir string, r *resource) (string, error) {
	if r.Text == nil {
		return "", invalidf("resource %.200q has no text; binary content is not supported", r.URI)
	}
	path, lines, isFile := filePath(r.URI)
	name := cmp.Or(r.URI, "attachment")
	if isFile {
		name = nameIn(dir, path)
		if lines != "" {
			name += "#" + lines
		}
	}
	in.Parts = append(in.Parts, Part{Name: in.unused(clean(name)), Text: *r.Text, File: isFile})
	return in.Parts[len(in.Parts)-1].Name, nil
}

// unused returns a name that no other part has.
func (in *input) unused(name string) string {
	for n, free := 1, name; ; free = fmt.Sprintf("%s (%d)", name, n) {
		used := false
		for i := range in.Parts {
			used = used || in.Parts[i].Name == free
		}
		if !used {
			return free
		}
		n++
	}
}

// clean returns a name without control characters.
func clean(name string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(name, "\uFFFD"))
}

// filePath returns the path of a file: URI, and its fragment, such as L10:20 for lines.
func filePath(uri string) (path, fragment string, ok bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" {
		return "", "", false
	}
	path = u.Path
	if runtime.GOOS == "windows" {
		path = strings.TrimPrefix(path, "/")
	}
	path = filepath.Clean(filepath.FromSlash(path))
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return "", "", false
	}
	return path, clean(u.Fragment), true
}

// nameIn returns a path relative to dir if it is below it.
func nameIn(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}
