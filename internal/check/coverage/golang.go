package coverage

import (
	"io"
	"path"
	"strings"
)

// golang reads Go's coverprofile: blocks of statements. A line is code if a block with
// statements touches it, and covered if one of those ran; a line that two blocks share
// (an if and the end of its condition) is covered by either.
func (b *builder) golang(r io.Reader) error {
	last, started := "", false
	var f *File
	err := b.lines(r, func(line string) error {
		if mode, ok := strings.CutPrefix(line, "mode: "); ok {
			started = true
			if mode != "set" && mode != "count" && mode != "atomic" {
				return b.wrong("unknown mode %q", mode)
			}
			return nil
		}
		if !started {
			return b.wrong("the first line has no mode")
		}
		if line == "" {
			return nil
		}
		name, block, err := b.block(line)
		if err != nil {
			return err
		}
		if name != last || f == nil {
			if f, err = b.file(b.imported(name), name); err != nil {
				return err
			}
			last = name
		}
		if f == nil || block.statements == 0 {
			return nil
		}
		return b.add(f, block.first, block.last, block.ran)
	})
	if err == nil && !started {
		b.incomplete("the input is empty")
	}
	return err
}

// goBlock is one line of a coverprofile, without the columns.
type goBlock struct {
	first, last, statements int
	ran                     bool
}

// block reads "name.go:12.34,15.2 3 1".
func (b *builder) block(line string) (string, goBlock, error) {
	colon := strings.LastIndexByte(line, ':')
	if colon <= 0 {
		return "", goBlock{}, b.wrong("%.80q is not a block of a coverprofile", line)
	}
	fields := strings.Fields(line[colon+1:])
	if len(fields) != 3 {
		return "", goBlock{}, b.wrong("%.80q is not a block of a coverprofile", line)
	}
	start, end, _ := strings.Cut(fields[0], ",")
	start, _, _ = strings.Cut(start, ".")
	end, _, _ = strings.Cut(end, ".")
	var block goBlock
	numbers := [...]struct {
		text string
		to   *int
	}{{start, &block.first}, {end, &block.last}, {fields[1], &block.statements}}
	for _, n := range numbers {
		value, err := b.number(n.text)
		if err != nil {
			return "", goBlock{}, err
		}
		*n.to = value
	}
	if block.first < 1 || block.last < block.first {
		return "", goBlock{}, b.wrong("invalid block from line %d to %d", block.first, block.last)
	}
	block.ran = strings.Trim(fields[2], "0") != ""
	if strings.Trim(fields[2], "0123456789") != "" {
		return "", goBlock{}, b.wrong("%q is not a number", fields[2])
	}
	return line[:colon], block, nil
}

// imported converts an import path with a file name to a path in the workspace; empty if
// it is in none of the modules.
func (b *builder) imported(name string) string {
	if absolute(name) || strings.HasPrefix(name, "./") {
		return b.cfg.place(name)
	}
	var best *Module
	for i := range b.cfg.Modules {
		m := &b.cfg.Modules[i]
		if strings.HasPrefix(name, m.Path+"/") && (best == nil || len(m.Path) > len(best.Path)) {
			best = m
		}
	}
	if best == nil {
		return ""
	}
	joined := path.Join(best.Dir, name[len(best.Path)+1:])
	if joined == ".." || strings.HasPrefix(joined, "../") {
		return ""
	}
	return joined
}
