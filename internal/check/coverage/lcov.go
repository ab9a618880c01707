package coverage

import (
	"io"
	"strings"
)

// lcov reads an LCOV tracefile: SF names a file, DA is the count of a line, end_of_record
// ends the file. Records of functions, branches and sums are ignored.
func (b *builder) lcov(r io.Reader) error {
	open, records := false, 0
	var f *File
	err := b.lines(r, func(line string) (err error) {
		key, value, _ := strings.Cut(line, ":")
		switch key {
		case "SF":
			if open {
				return b.wrong("beginning of a file inside another one")
			}
			open = true
			f, err = b.file(b.cfg.place(value), value)
		case "DA":
			if !open {
				return b.wrong("line of code outside of a file")
			}
			err = b.lcovLine(f, value)
		case "end_of_record":
			if !open {
				return b.wrong("end of a file without a beginning")
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
		b.incomplete("the input has no file")
	}
	return nil
}

// lcovLine reads "number,count[,checksum]". Some tools write counts that are negative or
// too large; only zero matters.
func (b *builder) lcovLine(f *File, value string) error {
	number, rest, ok := strings.Cut(value, ",")
	hits, _, _ := strings.Cut(rest, ",")
	if !ok || hits == "" || strings.Trim(hits, "-0123456789.e+") != "" {
		return b.wrong("%.80q is not a line number and a count", value)
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
