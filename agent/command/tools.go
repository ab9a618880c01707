package command

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/perdure/perdure/agent"
)

// toolInput is what the agents give their tools, as far as it is understood.
type toolInput struct {
	Command      string   `json:"command"`
	Cmd          string   `json:"cmd"`
	FilePath     string   `json:"file_path"`
	FilePathJS   string   `json:"filePath"`
	AbsolutePath string   `json:"absolute_path"`
	NotebookPath string   `json:"notebook_path"`
	Path         string   `json:"path"`
	DirPath      string   `json:"dir_path"`
	Paths        []string `json:"paths"`
	Patch        string   `json:"patchText"`
	PatchInput   string   `json:"input"`
}

// describe makes a tool call of an agent's words for it. The names of all four
// agents are in one table: those they share mean the same.
func describe(id, name string, input json.RawMessage) agent.ToolCall {
	call := agent.ToolCall{ID: id, Name: name, Kind: toolKind(name), Input: slices.Clone(input)}
	var in toolInput
	if len(input) > 0 {
		decode(input, &in) // what is not understood stays in Input
	}
	if call.Kind == agent.ToolExecute {
		call.Command = firstOf(in.Command, in.Cmd)
	}
	for _, p := range append([]string{in.FilePath, in.FilePathJS, in.AbsolutePath, in.NotebookPath, in.Path, in.DirPath}, in.Paths...) {
		if p != "" && !slices.Contains(call.Paths, p) {
			call.Paths = append(call.Paths, p)
		}
	}
	if patch := firstOf(in.Patch, in.PatchInput); call.Kind == agent.ToolEdit && patch != "" {
		call.Kind, call.Paths = patched(patch)
	}
	call.Title = title(call)
	return call
}

func firstOf(texts ...string) string {
	for _, text := range texts {
		if text != "" {
			return text
		}
	}
	return ""
}

func title(call agent.ToolCall) string {
	switch {
	case call.Command != "":
		return call.Command
	case len(call.Paths) > 0:
		return call.Name + " " + strings.Join(call.Paths, ", ")
	}
	return call.Name
}

func toolKind(name string) agent.ToolKind {
	switch strings.ToLower(name) {
	case "bash", "shell", "exec_command", "run_shell_command", "powershell", "local_shell", "monitor":
		return agent.ToolExecute
	case "edit", "multiedit", "write", "notebookedit", "patch", "apply_patch", "write_file", "replace", "save_memory":
		return agent.ToolEdit
	case "read", "ls", "list", "read_file", "read_many_files", "list_directory", "notebookread", "view_image":
		return agent.ToolRead
	case "grep", "glob", "codesearch", "grep_search", "search_file_content":
		return agent.ToolSearch
	case "webfetch", "websearch", "web_fetch", "google_web_search", "web_search":
		return agent.ToolFetch
	case "todowrite", "todoread", "write_todos", "update_plan", "exitplanmode", "enterplanmode", "update_topic":
		return agent.ToolThink
	}
	return agent.ToolOther
}

// patched reads from a patch in the form of apply_patch which files it touches.
func patched(patch string) (agent.ToolKind, []string) {
	kind := agent.ToolEdit
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
		kind = agent.ToolDelete
	case moved > 0 && moved*2 == len(paths):
		kind = agent.ToolMove
	}
	return kind, paths
}
