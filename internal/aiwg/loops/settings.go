package loops

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// SettingsFile is the settings file of a project.
const SettingsFile = "aiwg.yml"

// section is the section of the settings file about loops.
const section = "agent_persistence"

// Setting is a setting of agent_persistence.
type Setting struct {
	// Name is the path in the section, with dots; Value is the text of the value.
	Name  string `json:"name"`
	Value string `json:"value"`
	File  string `json:"file"`
	Line  int    `json:"line"`
	// Problem is the error of the setting, "" for none.
	Problem string `json:"problem,omitempty"`
	// Own is the setting of perdure with the same meaning, "" for none. An import does
	// not set it.
	Own string `json:"perdure_setting"`
}

const maxSettings = 1 << 20

// sectionHead matches the first line of the section.
var sectionHead = lazyregexp.New(`(?m)^(?:agent_persistence|"agent_persistence"|'agent_persistence')[ \t]*:(?:[ \t\r]|$)`)

// sectionOf returns the offsets of the section, which ends before the next line that is
// not indented.
func sectionOf(text []byte) (from, to int) {
	at := sectionHead().FindIndex(text)
	if at == nil {
		return -1, -1
	}
	from, to = at[0], at[0]
	for line := range bytes.Lines(text[from:]) {
		inside := to == from || len(bytes.TrimSpace(line)) == 0 || bytes.IndexByte([]byte(" \t#"), line[0]) >= 0 ||
			bytes.HasPrefix(line, []byte("- "))
		if !inside {
			break
		}
		to += len(line)
	}
	return from, to
}

// settings imports the section of a settings file as a record.
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
		f.note(Left, -1, "not imported: it has no section %s", section)
		return nil
	}
	text := f.text[from:to]
	if nul := bytes.IndexByte(text, 0); nul >= 0 {
		f.note(NotRead, from+nul, "the section has a NUL character; it was not imported")
		return nil
	}
	if rest := bytes.TrimSpace(slices.Concat(f.text[:from], f.text[to:])); len(rest) > 0 {
		f.note(Left, -1, "only the section %s was imported", section)
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

func (m *importer) keepSettings(ctx context.Context, text []byte, found []Setting) error {
	if !bytes.HasSuffix(text, []byte("\n")) {
		text = append(slices.Clip(text), '\n')
	}
	sum := sha256.Sum256(text)
	key := importPrefix + "settings:" + hex.EncodeToString(sum[:])[:40]
	have, err := m.store.ImportedKeys(ctx, []string{key})
	if _, there := have[key]; err != nil || there || m.DryRun {
		return err
	}
	values := make(map[string]string, len(found))
	for _, s := range found {
		values[s.Name] = s.Value
	}
	now, own := time.Now().UTC(), mark{Kind: kindSettings, Key: section}
	task := perdure.Task{Prompt: "the section " + section + " of " + SettingsFile, State: perdure.Completed,
		CreatedAt: now, CompletedAt: now, Result: string(text),
		Metadata: jsontree.MustMarshal(map[string]any{"settings": values, importKey: own})}
	_, err = m.store.ImportTrees(ctx, []perdure.TreeRecord{{Key: key, Name: SettingsFile,
		Config: jsontree.MustMarshal(map[string]mark{importKey: own}),
		Tasks:  []perdure.TaskRecord{{Task: task}}}})
	return err
}

// readSettings returns the settings of a section; the error has a line of the section.
func readSettings(text []byte) (found []Setting, problem *jsontree.Error) {
	defer func() {
		if v := recover(); v != nil {
			found, problem = nil, yamlPanic(v)
		}
	}()
	file, problem := readYAML(text)
	if problem != nil {
		return nil, problem
	}
	for _, doc := range file.Docs {
		for _, pair := range pairs(doc.Body) {
			collect(&found, "", pair.Value)
		}
	}
	for i := range found {
		found[i].Problem = problemOf(found[i].Name, found[i].Value)
	}
	return found, nil
}

// pairs returns the members of a mapping.
func pairs(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

// collect adds the settings below a node; a list is one value.
func collect(found *[]Setting, name string, n ast.Node) {
	if below := pairs(n); below != nil {
		for _, pair := range below {
			key := pair.Key.String()
			if k := pair.Key.GetToken(); k != nil {
				key = k.Value
			}
			collect(found, strings.TrimPrefix(name+"."+key, "."), pair.Value)
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

// plain formats a value for people: strings without quotes, lists in one line.
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

// problemOf returns the error of a setting, "" for none.
func problemOf(name, value string) string {
	levels, flag := []string{"OFF", "MINIMAL", "STANDARD", "AGGRESSIVE", "ADAPTIVE"}, []string{"true", "false"}
	words := map[string][]string{"enabled": flag, "recovery.auto_escalate_on_critical": flag,
		"best_output_selection.enabled": flag, "best_output_selection.require_verification": flag,
		"detection.mode": {"off", "minimal", "standard", "aggressive"}, "reinforcement.default_level": levels}
	limits := map[string]float64{"reinforcement.quality_plateau_threshold": 1, "recovery.max_retries": 1000,
		"recovery.human_gate_timeout_minutes": 1e9, "best_output_selection.quality_threshold": 100,
		"performance.max_integration_overhead_percentage": 100, "performance.detection_latency_budget_ms": 1e9}
	n, ok := strings.CutPrefix(name, "reinforcement.escalation_thresholds.iteration_")
	if ok && n != "" && strings.Trim(n, "0123456789") == "" {
		words[name] = levels
	}
	limit, isNumber := limits[name]
	x, err := strconv.ParseFloat(value, 64)
	switch {
	case name == "detection.patterns_enabled":
		return patternsProblem(value)
	case name == "recovery.human_gate_timeout_minutes" && slices.Contains([]string{"null", "~", ""}, value):
		return ""
	case isNumber && (err != nil || x < 0 || x > limit):
		return fmt.Sprintf("is not a number from 0 to %s", strconv.FormatFloat(limit, 'f', -1, 64))
	case !isNumber && words[name] == nil:
		return "is not a setting of " + section
	case !isNumber && !slices.Contains(words[name], value):
		return "is not one of " + strings.Join(words[name], ", ")
	}
	return ""
}

func patternsProblem(value string) string {
	known := []string{"test_deletion", "test_skipping", "assertion_weakening", "coverage_regression",
		"validation_bypass", "error_suppression", "feature_removal"}
	inner, ok := strings.CutPrefix(value, "[")
	if !ok {
		return "is not a list"
	}
	for p := range strings.SplitSeq(strings.TrimSuffix(inner, "]"), ", ") {
		if p != "" && !slices.Contains(known, p) {
			return fmt.Sprintf("has the unknown pattern %s", shown(p))
		}
	}
	return ""
}
