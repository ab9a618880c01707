package coverage

import (
	"io"
	"strings"
)

// lcov reads LCOV's tracefile: SF names a file, DA tells how often a line
// ran, end_of_record ends the file. Everything else is about functions,
// branches and sums, and is passed over.
func (b *builder) lcov(r io.Reader) error {
	open, records := false, 0
	var f *File
	err := b.lines(r, func(line string) (err error) {
		key, value, _ := strings.Cut(line, ":")
		switch key {
		case "SF":
			if open {
				return b.wrong("a file begins inside another one")
			}
			open = true
			f, err = b.file(b.cfg.place(value), value)
		case "DA":
			if !open {
				return b.wrong("a line of code outside of a file")
			}
			err = b.lcovLine(f, value)
		case "end_of_record":
			if !open {
				return b.wrong("a file ends that did not begin")
			}
			open, f = false, nil
			records++
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case open:
		b.incomplete("the last file has no end")
	case records == 0:
		b.incomplete("no file was found")
	}
	return nil
}

// lcovLine reads "number,count[,checksum]". Counts of some tools are negative
// or so large that they do not fit; only zero matters.
func (b *builder) lcovLine(f *File, value string) error {
	number, rest, ok := strings.Cut(value, ",")
	hits, _, _ := strings.Cut(rest, ",")
	if !ok || hits == "" || strings.Trim(hits, "-0123456789.e+") != "" {
		return b.wrong("%.80q is no number and count", value)
	}
	n, err := b.number(number)
	if err != nil {
		return err
	}
	if f == nil || n == 0 {
		return nil
	}
	return b.add(f, n, n, !strings.HasPrefix(hits, "-") && strings.Trim(hits, "0.") != "")
}
