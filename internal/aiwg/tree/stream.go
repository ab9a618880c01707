package tree

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/text/jsontree"
)

// docWriter writes an indented JSON document part by part. After an error it writes
// nothing more.
type docWriter struct {
	out   *bufio.Writer
	empty bool // the open object or list has no member yet
	depth int
	err   error
}

const indent = "  "

// next begins the next member or item.
func (d *docWriter) next() {
	if !d.empty {
		d.write(",")
	}
	d.empty = false
	d.write("\n")
	for range d.depth {
		d.write(indent)
	}
}

func (d *docWriter) write(text string) {
	if d.err == nil {
		_, d.err = d.out.WriteString(text)
	}
}

// open opens an object or a list.
func (d *docWriter) open(bracket string) {
	d.write(bracket)
	d.empty = true
	d.depth++
}

// shut closes what was opened last.
func (d *docWriter) shut(bracket string) {
	d.depth--
	if !d.empty {
		d.empty = true
		d.next()
	}
	d.empty = false
	d.write(bracket)
}

func (d *docWriter) name(key string) {
	d.next()
	d.write(string(jsontree.MustMarshal(key)) + ": ")
}

// value writes a value.
func (d *docWriter) value(v any) {
	if d.err != nil {
		return
	}
	raw, err := jsontree.Marshal(v, "")
	var lines bytes.Buffer
	if err == nil {
		err = json.Indent(&lines, raw, string(bytes.Repeat([]byte(indent), d.depth)), indent)
	}
	if err == nil {
		_, err = lines.WriteTo(d.out)
	}
	d.err = err
}

// member writes a member, unless it is an empty text.
func (d *docWriter) member(key string, v any) {
	if v == "" {
		return
	}
	d.name(key)
	d.value(v)
}

// stream writes the document of a state as doc returns it, with the variables of its
// checkpoints, which have no files.
func (s *stateExport) stream(w io.Writer, tree, node string, state perdure.State) error {
	d := &docWriter{out: bufio.NewWriterSize(w, 256<<10)}
	d.open("{")
	d.member("version", cmp.Or(s.extra.Version, firstVersion))
	d.member("state_id", s.id)
	d.member("session_id", cmp.Or(s.rec.Ref.Session, s.extra.Session))
	d.member("tree_id", s.owner(tree))
	d.name("variables")
	d.open("{")
	s.each(s.isCurrent, func(name string, v any) { d.member(name, v) })
	d.shut("}")
	d.name("history")
	d.open("{")
	s.streamHistory(d)
	d.shut("}")
	d.member("metadata", s.meta(node, state))
	own := map[string]bool{"version": true, "state_id": true, "session_id": true, "tree_id": true, "variables": true,
		"history": true, "metadata": true}
	for _, key := range sortedKeys(s.extra.Fields) {
		if !own[key] {
			d.member(key, s.extra.Fields[key])
		}
	}
	d.shut("}")
	d.write("\n")
	if d.err == nil {
		d.err = d.out.Flush()
	}
	if d.err != nil {
		return fmt.Errorf("write state: %w", d.err)
	}
	return nil
}

func (s *stateExport) streamHistory(d *docWriter) {
	d.name("mutations")
	d.open("[")
	for _, m := range s.mutations() {
		d.next()
		d.value(m)
	}
	d.shut("]")
	d.name("checkpoints")
	d.open("[")
	for i, c := range s.checks {
		d.next()
		c.State = s.at(int64(s.rec.Checkpoints[i].ID))
		d.value(c)
	}
	d.shut("]")
}
