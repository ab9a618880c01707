package loops

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
	"github.com/perdure/perdure/internal/text/yamltext"
)

// SettingsFile is the file of settings of a project, of which one section is
// about loops.
const SettingsFile = "aiwg.yml"

// section is its name there.
const section = "agent_persistence"

// Setting is one of agent_persistence.
type Setting struct {
	// Name is the path in the section, with dots; Value is as it is written.
	Name  string `json:"name"`
	Value string `json:"value"`
	File  string `json:"file"`
	Line  int    `json:"line"`
	// Problem tells what is wrong with it, "" for nothing.
	Problem string `json:"problem,omitempty"`
	// Own is the setting of perdure that means the same, "" for none. Nothing is
	// set by an import either way.
	Own string `json:"perdure_setting"`
}

const maxSettings = 1 << 20

// sectionHead begins the section.
var sectionHead = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(
		`(?m)^(?:agent_persistence|"agent_persistence"|'agent_persistence')[ \t]*:(?:[ \t\r]|$)`)
})

// sectionOf finds the section: from its name to the next line that is not
// indented. The text stays as it is, with its comments.
func sectionOf(text []byte) (from, to int) {
	at := sectionHead().FindIndex(text)
	if at == nil {
		return -1, -1
	}
	from, to = at[0], at[0]
	for first := true; to < len(text); first = false {
		end := len(text)
		if i := bytes.IndexByte(text[to:], '\n'); i >= 0 {
			end = to + i + 1
		}
		line := text[to:end]
		inside := first || len(bytes.TrimSpace(line)) == 0 || bytes.IndexByte([]byte(" \t#"), line[0]) >= 0 ||
			bytes.HasPrefix(line, []byte("- "))
		if !inside {
			break
		}
		to = end
	}
	return from, to
}

// settings keeps the section of a file of settings as a record.
func (m *importer) settings(ctx context.Context, name string) error {
	f := m.open(name)
	if f == nil {
		return nil
	}
	if len(f.text) > maxSettings {
		f.note(NotRead, -1, "has %d bytes, the limit is %d", len(f.text), maxSettings)
		return nil
	}
	f.asText()
	from, to := sectionOf(f.text)
	if from < 0 {
		f.note(Left, -1, "there is no section %s in it", section)
		return nil
	}
	text := f.text[from:to]
	if bytes.IndexByte(text, 0) >= 0 {
		f.note(NotRead, from+bytes.IndexByte(text, 0), "the section holds a character 0; it was not taken")
		return nil
	}
	if rest := bytes.TrimSpace(slices.Concat(f.text[:from], f.text[to:])); len(rest) > 0 {
		f.note(Left, -1, "only the section %s was taken", section)
	}
	line, _ := f.lines.Position(from)
	found, problem := readSettings(text)
	if problem != nil {
		f.note(NotRead, f.lines.Start(line-1+problem.Line), "%s; the section %s was kept as text", problem.Msg, section)
	}
	for i := range found {
		found[i].File, found[i].Line = f.name, found[i].Line+line-1
	}
	m.counts.Settings = append(m.counts.Settings, found...)
	return m.keepSettings(ctx, text, found)
}

func settingsMark() mark { return mark{Kind: kindSettings, Key: section} }

func (m *importer) keepSettings(ctx context.Context, text []byte, found []Setting) error {
	if !bytes.HasSuffix(text, []byte("\n")) {
		text = append(slices.Clip(text), '\n')
	}
	sum := sha256.Sum256(text)
	key := "import:settings:" + hex.EncodeToString(sum[:])[:40]
	have, err := m.store.ImportedKeys(ctx, []string{key})
	if _, there := have[key]; err != nil || there || m.DryRun {
		return err
	}
	values := make(map[string]string, len(found))
	for _, s := range found {
		values[s.Name] = s.Value
	}
	now := time.Now().UTC()
	task := perdure.Task{Prompt: "the section " + section + " of " + SettingsFile, State: perdure.Completed,
		CreatedAt: now, CompletedAt: now, Result: string(text),
		Metadata: mustJSON(map[string]any{"settings": values, importKey: settingsMark()})}
	_, err = m.store.ImportTrees(ctx,
		[]perdure.TreeRecord{{Key: key, Name: SettingsFile, Config: mustJSON(map[string]mark{importKey: settingsMark()}),
			Tasks: []perdure.TaskRecord{{Task: task}}}})
	return err
}

// readSettings lists what is set in a section; the error has a line of it.
func readSettings(text []byte) (found []Setting, problem *jsontree.Error) {
	defer func() {
		if v := recover(); v != nil { // the library panics on some texts
			found, problem = nil, &jsontree.Error{Line: 1, Msg: fmt.Sprintf("the YAML cannot be understood (%v)", v)}
		}
	}()
	if yamltext.TooDeep(text) {
		return nil, &jsontree.Error{Line: 1, Msg: "the YAML is nested too deeply"}
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, yamlFault(err)
	}
	for _, doc := range file.Docs {
		for _, pair := range pairs(doc.Body) {
			collect(&found, "", pair.Value)
		}
	}
	for i := range found {
		found[i].Problem = judge(found[i].Name, found[i].Value)
	}
	return found, nil
}

func yamlFault(err error) *jsontree.Error {
	var placed interface {
		GetMessage() string
		GetToken() *token.Token
	}
	if errors.As(err, &placed) && placed.GetToken() != nil {
		return &jsontree.Error{Line: placed.GetToken().Position.Line, Msg: "is no YAML: " + placed.GetMessage()}
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return &jsontree.Error{Line: 1, Msg: "is no YAML: " + first}
}

// pairs are the members of a mapping.
func pairs(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

// collect lists the settings below a node; lists are values.
func collect(found *[]Setting, name string, n ast.Node) {
	if below := pairs(n); below != nil {
		for _, pair := range below {
			key := pair.Key.String()
			if k := pair.Key.GetToken(); k != nil {
				key = k.Value
			}
			if name != "" {
				key = name + "." + key
			}
			collect(found, key, pair.Value)
		}
		return
	}
	s := Setting{Name: name, Line: 1}
	if n != nil {
		s.Value = plain(n)
		if tok := n.GetToken(); tok != nil {
			s.Line = tok.Position.Line
		}
	}
	*found = append(*found, s)
}

// plain is how a value is told to people: texts without quotes, lists in one line.
func plain(n ast.Node) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.SequenceNode:
		list := make([]string, len(n.Values))
		for i, v := range n.Values {
			list[i] = plain(v)
		}
		return "[" + strings.Join(list, ", ") + "]"
	case *ast.NullNode:
		return "null"
	}
	text := n.String()
	if tok := n.GetToken(); tok != nil && tok.Value != "" {
		text = tok.Value
	}
	return strings.TrimSpace(text)
}

// judge tells what is wrong with a setting, as far as it is known.
func judge(name, value string) string {
	number := func(most float64) string {
		x, err := strconv.ParseFloat(value, 64)
		if err != nil || x < 0 || x > most {
			return fmt.Sprintf("is no number from 0 to %s", strconv.FormatFloat(most, 'f', -1, 64))
		}
		return ""
	}
	word := func(words ...string) string {
		if !slices.Contains(words, value) {
			return "is none of " + strings.Join(words, ", ")
		}
		return ""
	}
	levels := []string{"OFF", "MINIMAL", "STANDARD", "AGGRESSIVE", "ADAPTIVE"}
	switch name {
	case "enabled", "recovery.auto_escalate_on_critical", "best_output_selection.enabled",
		"best_output_selection.require_verification":
		return word("true", "false")
	case "detection.mode":
		return word("off", "minimal", "standard", "aggressive")
	case "detection.patterns_enabled":
		return judgePatterns(value)
	case "reinforcement.default_level":
		return word(levels...)
	case "reinforcement.quality_plateau_threshold":
		return number(1)
	case "recovery.max_retries":
		return number(1000)
	case "recovery.human_gate_timeout_minutes":
		if value == "null" || value == "~" || value == "" {
			return ""
		}
		return number(1e9)
	case "best_output_selection.quality_threshold", "performance.max_integration_overhead_percentage":
		return number(100)
	case "performance.detection_latency_budget_ms":
		return number(1e9)
	}
	if n, ok := strings.CutPrefix(name, "reinforcement.escalation_thresholds.iteration_"); ok && n != "" &&
		strings.Trim(n, "0123456789") == "" {
		return word(levels...)
	}
	return "is no setting of " + section
}

func judgePatterns(value string) string {
	known := []string{"test_deletion", "test_skipping", "assertion_weakening", "coverage_regression",
		"validation_bypass", "error_suppression", "feature_removal"}
	inner, ok := strings.CutPrefix(value, "[")
	if !ok {
		return "is no list"
	}
	for _, p := range strings.Split(strings.TrimSuffix(inner, "]"), ", ") {
		if p != "" && !slices.Contains(known, p) {
			return fmt.Sprintf("names %s, which is no pattern", shown(p))
		}
	}
	return ""
}
