package agent_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/agent"
)

func TestDescribe(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, input string
		kind        agent.ToolKind
		command     string
		paths       []string
	}{
		{"Bash", `{"command":"go test ./..."}`, agent.ToolExecute, "go test ./...", nil},
		{"run_shell_command", `{"command":"ls"}`, agent.ToolExecute, "ls", nil},
		{"Write", `{"file_path":"/w/a.go","content":"x"}`, agent.ToolEdit, "", []string{"/w/a.go"}},
		{"edit", `{"filePath":"a.go"}`, agent.ToolEdit, "", []string{"a.go"}},
		{"NotebookEdit", `{"notebook_path":"n.ipynb"}`, agent.ToolEdit, "", []string{"n.ipynb"}},
		{"read_many_files", `{"paths":["a","b","a"]}`, agent.ToolRead, "", []string{"a", "b"}},
		{"Grep", `{"pattern":"x","path":"src"}`, agent.ToolSearch, "", []string{"src"}},
		{"WebFetch", `{"url":"x"}`, agent.ToolFetch, "", nil},
		{"TodoWrite", `{"todos":[]}`, agent.ToolThink, "", nil},
		{"mcp__x__y", `{"path":3}`, agent.ToolOther, "", nil},
		{"apply_patch", `{"patchText":"*** Begin Patch\n*** Update File: a.go\n*** Add File: b.go\n*** End Patch"}`,
			agent.ToolEdit, "", []string{"a.go", "b.go"}},
		{"apply_patch", `{"input":"*** Delete File: a.go\n"}`, agent.ToolDelete, "", []string{"a.go"}},
		{"apply_patch", `{"input":"*** Update File: a.go\n*** Move to: b.go\n"}`, agent.ToolMove, "",
			[]string{"a.go", "b.go"}},
		{"apply_patch", `{"command":"*** Begin Patch\n*** Delete File: a.go\n"}`, agent.ToolDelete, "", []string{"a.go"}},
		{"mcp__shell__run", `{"command":"rm -rf x"}`, agent.ToolOther, "rm -rf x", nil},
		{"mcp__shell__run", `{"path":"/w","command":"rm -rf x"}`, agent.ToolOther, "rm -rf x", []string{"/w"}},
		{"mcp__serena__replace_content", `{"relative_path":".claude/settings.json","needle":"a","repl":"b","mode":"literal"}`,
			agent.ToolOther, "", []string{".claude/settings.json"}},
		{"mcp__x__apply", `{"edits":[{"where":{"uri":"file:///w/a%20b.go"}},{"to":"../c.go"}],"note":"see a/b.go now"}`,
			agent.ToolOther, "", []string{"/w/a b.go", "../c.go"}},
		{"mcp__x__put", `{"a":"~/x","b":"C:\\x\\y.go","c":"Makefile","d":".npmrc","e":"tests/**"}`, agent.ToolOther, "",
			[]string{"~/x", `C:\x\y.go`, "Makefile", ".npmrc", "tests/**"}},
		{"mcp__x__put", `{"url":"https://x.org/a.go","text":"a, b and c","n":"1.2.3","pkg":"@a/b","re":"^a/b$","id":"A-1"}`,
			agent.ToolOther, "", nil},
		{"mcp__x__saveIn", `{"outputFolder":"My Tests","content":"tests"}`, agent.ToolOther, "", []string{"My Tests"}},
		{"mcp__x__deleteTextFile", `{"name":"a.txt"}`, agent.ToolDelete, "", []string{"a.txt"}},
		{"mcp__x__start", `{"command":"rm","args":["-rf","src"]}`, agent.ToolOther, "rm '-rf' 'src'", nil},
		{"mcp__x__batch", `{"steps":[{"cmd":"ls"},{"commands":["a","b"]}]}`, agent.ToolOther, "ls\na\nb", nil},
		{"mcp__fs__delete_file", `{"path":"a"}`, agent.ToolDelete, "", []string{"a"}},
		{"mcp__fs__move_file", `{"source":"a","destination":"b"}`, agent.ToolMove, "", []string{"a", "b"}},
		{"mcp__fs__read_text_file", `{"path":"a"}`, agent.ToolRead, "", []string{"a"}},
		{"mcp__fs__get_and_set", `{"path":"a"}`, agent.ToolOther, "", []string{"a"}},
		{"mcp__board__delete", `{"id":"3"}`, agent.ToolOther, "", nil},
		{"shell", `{"command":["bash","-lc","rm it's"]}`, agent.ToolExecute, `'bash' '-lc' 'rm it'\''s'`, nil},
		{"exec_command", `{"cmd":"rm x","command":"ls"}`, agent.ToolExecute, "ls\nrm x", nil},
		{"Edit", `{"file_path":"a","patch":"*** Update File: b"}`, agent.ToolEdit, "", []string{"a", "b"}},
		{"Bash", `{"command":"rm x","COMMAND":"ls"}`, agent.ToolExecute, "rm x", nil},
		{"Bash", `not json`, agent.ToolExecute, "", nil},
		{"Bash", ``, agent.ToolExecute, "", nil},
	}
	for _, tt := range tests {
		got := agent.Describe("id", tt.name, []byte(tt.input))
		if got.Kind != tt.kind || got.Command != tt.command || !cmp.Equal(got.Paths, tt.paths) || got.Title == "" {
			t.Errorf("%s %s: %+v", tt.name, tt.input, got)
		}
	}
}

func FuzzDescribe(f *testing.F) {
	f.Add("apply_patch", `{"patchText":"*** Delete File: a\n"}`)
	f.Add("Bash", `{"command":["a"],"cmd":"b"}`)
	f.Fuzz(func(t *testing.T, name, input string) {
		if got := agent.Describe("id", name, []byte(input)); got.Kind == "" || json.Valid([]byte(input)) &&
			string(got.Input) != input {
			t.Errorf("%+v", got)
		}
	})
}
