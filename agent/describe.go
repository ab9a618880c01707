package agent

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// Describe returns a tool call for an agent's name of a tool and its input. The names
// of all agents are in one table: shared names have the same meaning. Unknown members
// stay in Input. If the tool may read any of several members, all count, so that the
// call is judged by the one that the tool reads.
func Describe(id, name string, input json.RawMessage) ToolCall {
	call := ToolCall{ID: id, Name: name, Kind: toolKind(name), Input: slices.Clone(input)}
	in := toolInput{}
	_ = json.Unmarshal(input, &in.members) // then there are none
	for _, member := range []string{"file_path", "filePath", "absolute_path", "notebook_path", "path", "dir_path",
		"source", "destination", "old_path", "new_path", "target_file"} {
		call.touches(in.text(member))
	}
	for _, p := range in.texts("paths") {
		call.touches(p)
	}
	lines := []string{in.text("command"), in.text("cmd"), quoted(in.texts("command"))}
	if call.Kind == ToolOther {
		v := valuesOf(input)
		lines = v.lines
		for _, p := range v.paths {
			call.touches(p)
		}
	}
	if call.Kind == ToolExecute || call.Kind == ToolOther {
		call.Command = strings.Join(slices.DeleteFunc(lines, func(l string) bool { return l == "" }), "\n")
	}
	if call.Kind == ToolOther && len(call.Paths) > 0 && call.Command == "" {
		call.Kind = namedKind(name)
	}
	if call.Kind == ToolEdit {
		kind, paths := patched(strings.Join([]string{in.text("patchText"), in.text("input"), in.text("patch"),
			in.text("command")}, "\n"))
		if len(call.Paths) == 0 {
			call.Kind = kind
		}
		for _, p := range paths {
			call.touches(p)
		}
	}
	call.Title = title(call)
	return call
}

func (c *ToolCall) touches(path string) {
	if path != "" && !slices.Contains(c.Paths, path) {
		c.Paths = append(c.Paths, path)
	}
}

// toolInput is what an agent gives a tool. Names of members are taken letter by
// letter: the tool does not read "COMMAND" either.
type toolInput struct{ members map[string]json.RawMessage }

func (in toolInput) text(name string) string {
	var text string
	_ = json.Unmarshal(in.members[name], &text) // empty when it is none
	return text
}

func (in toolInput) texts(name string) []string {
	var list []string
	if json.Unmarshal(in.members[name], &list) != nil {
		return nil
	}
	return list
}

// quoted makes a command line of the words of one.
func quoted(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
	}
	return strings.Join(quoted, " ")
}

func title(call ToolCall) string {
	switch {
	case call.Command != "":
		return call.Command
	case len(call.Paths) > 0:
		return call.Name + " " + strings.Join(call.Paths, ", ")
	}
	return call.Name
}

// camel matches the beginning of a word in a name such as createTextFile.
var camel = lazyregexp.New(`([a-z0-9])([A-Z])`)

// namedKind is what a tool does with files by the words of its name, which servers of
// tools choose as they like.
func namedKind(name string) ToolKind {
	if at := strings.LastIndex(name, "__"); at >= 0 {
		name = name[at+2:]
	}
	name = camel().ReplaceAllString(name, "${1}_$2") // createTextFile
	words := strings.FieldsFunc(strings.ToLower(name), func(c rune) bool { return c == '_' || c == '-' || c == '.' })
	has := func(any ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(any, w) })
	}
	switch {
	case has("delete", "remove", "unlink", "rm"):
		return ToolDelete
	case has("move", "rename", "mv"):
		return ToolMove
	case has("write", "edit", "update", "create", "replace", "set", "append", "insert", "patch", "run", "exec", "execute"):
	case len(words) > 0 && slices.Contains([]string{"read", "list", "get", "search", "view", "find", "stat", "grep",
		"show"}, words[0]):
		return ToolRead
	}
	return ToolOther
}

func toolKind(name string) ToolKind {
	switch strings.ToLower(name) {
	case "bash", "shell", "exec_command", "run_shell_command", "powershell", "local_shell", "monitor":
		return ToolExecute
	case "edit", "multiedit", "write", "notebookedit", "patch", "apply_patch", "write_file", "replace", "save_memory":
		return ToolEdit
	case "read", "ls", "list", "read_file", "read_many_files", "list_directory", "notebookread", "view_image":
		return ToolRead
	case "grep", "glob", "codesearch", "grep_search", "search_file_content":
		return ToolSearch
	case "webfetch", "websearch", "web_fetch", "google_web_search", "web_search":
		return ToolFetch
	case "todowrite", "todoread", "write_todos", "update_plan", "exitplanmode", "enterplanmode", "update_topic":
		return ToolThink
	}
	return ToolOther
}

// patched reads from a patch in the form of apply_patch which files it touches.
func patched(patch string) (ToolKind, []string) {
	kind := ToolEdit
	deleted, moved := 0, 0
	var paths []string
	for line := range strings.Lines(patch) {
		verb, path, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || path == "" {
			continue
		}
		switch verb {
		case "*** Delete File":
			deleted++
		case "*** Move to":
			moved++
		case "*** Add File", "*** Update File":
		default:
			continue
		}
		paths = append(paths, path)
	}
	switch {
	case deleted > 0 && deleted == len(paths):
		kind = ToolDelete
	case moved > 0 && moved*2 == len(paths):
		kind = ToolMove
	}
	return kind, paths
}
