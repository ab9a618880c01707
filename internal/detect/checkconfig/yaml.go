package checkconfig

import (
	"bytes"
	"fmt"
	"path"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/perdure/perdure/internal/text/yamltext"
)

// readYAML reads YAML, and NEON as far as it is YAML with tabs.
func readYAML(name string, text []byte) ([]setting, bool) {
	if base := path.Base(name); strings.Contains(base, ".neon") {
		text = untabbed(text)
	}
	file, problem := yamltext.ParseAliased(text, maxBytes)
	if problem != nil {
		return nil, false
	}
	w := &yamlReader{anchors: make(map[string]ast.Node)}
	for _, doc := range file.Docs {
		w.node(nil, doc.Body, 0)
	}
	return w.all, true
}

// untabbed replaces the tabs before each line, which YAML does not allow.
func untabbed(text []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(text) {
		rest := bytes.TrimLeft(line, "\t")
		b.WriteString(strings.Repeat("    ", len(line)-len(rest)))
		b.Write(rest)
	}
	return b.Bytes()
}

// yamlReader collects the settings of a tree. The limit on settings bounds what aliases
// repeat.
type yamlReader struct {
	all     []setting
	anchors map[string]ast.Node
	merged  int
}

func (w *yamlReader) node(at []string, n ast.Node, depth int) {
	if depth > maxDepth || len(w.all) > maxSettings || w.merged > maxSettings || n == nil {
		return
	}
	w.merged++
	switch n := n.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			w.value(at, v, depth)
		}
	case *ast.MappingValueNode:
		w.value(at, n, depth)
	case *ast.SequenceNode:
		for i, v := range n.Values {
			w.node(joined(at, itemName(v, i)), v, depth+1)
		}
	case *ast.AnchorNode:
		if n.Name != nil {
			w.anchors[n.Name.String()] = n.Value
		}
		w.node(at, n.Value, depth+1)
	case *ast.AliasNode:
		if n.Value != nil {
			w.node(at, w.anchors[n.Value.String()], depth+1)
		}
	case *ast.TagNode:
		w.node(at, n.Value, depth+1)
	default:
		w.scalar(at, n)
	}
}

func (w *yamlReader) value(at []string, v *ast.MappingValueNode, depth int) {
	if _, merge := v.Key.(*ast.MergeKeyNode); merge {
		w.node(at, v.Value, depth+1)
		return
	}
	w.node(joined(at, scalarText(v.Key)), v.Value, depth+1)
}

func (w *yamlReader) scalar(at []string, n ast.Node) {
	s := setting{path: at, value: scalarText(n)}
	if t := n.GetToken(); t != nil && t.Position != nil {
		s.line = t.Position.Line
	}
	if _, block := n.(*ast.LiteralNode); block {
		s.line++
	}
	w.all = append(w.all, s)
}

// scalarText returns the value of a scalar.
func scalarText(n ast.Node) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value
	case *ast.LiteralNode:
		return n.Value.Value
	case *ast.NullNode:
		return ""
	case ast.ScalarNode:
		if t := n.GetToken(); t != nil {
			return t.Value
		}
	}
	return strings.TrimSpace(n.String())
}

// itemName returns the path of an item of a list: its ID, if it has one, or its index.
func itemName(n ast.Node, i int) string {
	if m, ok := n.(*ast.MappingNode); ok {
		for _, v := range m.Values {
			if key := scalarText(v.Key); key == "id" {
				return "#id " + scalarText(v.Value)
			}
		}
	}
	return fmt.Sprintf("#%d", i)
}

// joined returns a path with one more key, in memory of its own.
func joined(at []string, key string) []string { return append(at[:len(at):len(at)], key) }
