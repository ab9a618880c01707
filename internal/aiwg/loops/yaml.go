package loops

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/perdure/perdure/internal/text/yamltext"
)

// maxYAML bounds a document in YAML, whose parser needs much memory.
const maxYAML = 4 << 20

// parseYAML reads a YAML text as the value that the same in JSON would be. What
// JSON cannot say (anchors, tags, several documents) is a fault.
func parseYAML(f *file) (v *value, problem *fault) {
	defer func() {
		if r := recover(); r != nil { // the library panics on some texts
			v, problem = nil, &fault{0, fmt.Sprintf("the YAML cannot be understood (%v)", r)}
		}
	}()
	if len(f.text) > maxYAML {
		return nil, &fault{0, fmt.Sprintf("it has %d bytes, as YAML the limit is %d", len(f.text), maxYAML)}
	}
	if yamltext.TooDeep(f.text) {
		return nil, &fault{0, "the YAML is nested too deeply"}
	}
	doc, err := parser.ParseBytes(f.text, 0)
	if err != nil {
		at := yamlFault(err) // its place is a line
		_, _ = f.place(0)
		return nil, &fault{f.lines[max(0, min(at.off, len(f.lines))-1)], at.what}
	}
	if len(doc.Docs) != 1 || doc.Docs[0].Body == nil {
		return nil, &fault{0, fmt.Sprintf("it holds %d YAML documents, and has to hold one", len(doc.Docs))}
	}
	y := &yamlReader{file: f}
	v = y.value(doc.Docs[0].Body, 0)
	return v, y.fault
}

// yamlReader makes values of the library's nodes. It stops at its first fault.
type yamlReader struct {
	file  *file
	fault *fault
}

func (y *yamlReader) fail(n ast.Node, what string) *value {
	if y.fault == nil {
		y.fault = &fault{y.offset(n.GetToken()), what}
	}
	return nil
}

// offset is where a token begins: its line and column count characters, and are
// right where its own offset is not.
func (y *yamlReader) offset(t *token.Token) int {
	if t == nil || t.Position == nil {
		return 0
	}
	_, _ = y.file.place(0) // finds the lines
	line := max(0, min(t.Position.Line, len(y.file.lines))-1)
	at := y.file.lines[line]
	for n := 1; n < t.Position.Column && at < len(y.file.text) && y.file.text[at] != '\n'; n++ {
		_, size := utf8.DecodeRune(y.file.text[at:])
		at += size
	}
	return at
}

func (y *yamlReader) value(n ast.Node, depth int) *value {
	if n == nil || y.fault != nil {
		return &value{kind: 'n', text: "null"}
	}
	if depth > maxNesting {
		return y.fail(n, fmt.Sprintf("values are nested deeper than %d", maxNesting))
	}
	v := &value{off: y.offset(n.GetToken())}
	switch n := n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return y.mapping(n, depth)
	case *ast.SequenceNode:
		v.kind = '['
		for _, item := range n.Values {
			v.vals = append(v.vals, y.value(item, depth+1))
		}
	case *ast.StringNode:
		v.kind, v.text = '"', n.Value
	case *ast.LiteralNode:
		v.kind, v.text = '"', n.Value.Value
	case *ast.IntegerNode:
		v.kind, v.text = '0', number(n.GetToken().Value, n.Value)
	case *ast.FloatNode:
		v.kind, v.text = '0', number(n.GetToken().Value, n.Value)
	case *ast.BoolNode:
		v.kind, v.text = 't', fmt.Sprint(n.Value)
	case *ast.NullNode:
		v.kind, v.text = 'n', "null"
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		return y.fail(n, "anchors, aliases and tags of YAML are not read")
	default:
		return y.fail(n, "is no value that such a document can hold")
	}
	return v
}

func (y *yamlReader) mapping(n ast.Node, depth int) *value {
	v := &value{kind: '{', off: y.offset(n.GetToken())}
	for i, pair := range pairs(n) {
		key, ok := pair.Key.(ast.ScalarNode)
		if _, merge := pair.Key.(*ast.MergeKeyNode); !ok || merge {
			return y.fail(pair.Key, "is no name of a member")
		}
		if i == 0 && n.Type() == ast.MappingType && !n.(*ast.MappingNode).IsFlowStyle || n.Type() == ast.MappingValueType {
			v.off = y.offset(pair.Key.GetToken())
		}
		name := key.GetToken().Value
		if text, ok := pair.Key.(*ast.StringNode); ok {
			name = text.Value
		}
		member := y.value(pair.Value, depth+1)
		if y.fault != nil {
			return nil
		}
		v.add(name, member)
	}
	return v
}

// number is how JSON writes a number that YAML may write otherwise.
func number(written string, is any) string {
	if json.Valid([]byte(written)) {
		return written
	}
	raw, err := json.Marshal(is)
	if err != nil {
		return "null"
	}
	return string(raw)
}
