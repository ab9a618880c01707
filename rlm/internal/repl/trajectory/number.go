package trajectory

import "bytes"

// Python writes numbers that JSON does not have. Within this package they are numbers of JSON that
// no program writes: the first is read as zero, the others as infinite by Python.
const (
	plainNaN       = "-0e0"
	plainInfinity  = "1e999"
	plainNegative  = "-1e999"
	pythonNaN      = "NaN"
	pythonInfinity = "Infinity"
)

// plainJSON returns a line with the numbers NaN and Infinity as numbers of JSON.
func plainJSON(line []byte) []byte {
	if !bytes.Contains(line, []byte(pythonNaN)) && !bytes.Contains(line, []byte(pythonInfinity)) {
		return line
	}
	return replaceNumbers(line, func(rest []byte) (word, by string) {
		switch {
		case bytes.HasPrefix(rest, []byte(pythonNaN)):
			return pythonNaN, plainNaN
		case bytes.HasPrefix(rest, []byte(pythonInfinity)):
			return pythonInfinity, plainInfinity
		case bytes.HasPrefix(rest, []byte("-"+pythonInfinity)):
			return "-" + pythonInfinity, plainNegative
		}
		return "", ""
	})
}

// withoutNumber returns the end of a log without the beginning of the number NaN or Infinity.
func withoutNumber(line []byte) []byte {
	for _, word := range []string{pythonNaN, pythonInfinity} {
		for n := len(word) - 1; n > 0; n-- {
			if rest, ok := bytes.CutSuffix(line, []byte(word[:n])); ok {
				return rest
			}
		}
	}
	return line
}

// pythonJSON is the reverse of plainJSON.
func pythonJSON(line []byte) []byte {
	if !bytes.Contains(line, []byte(plainInfinity)) && !bytes.Contains(line, []byte(plainNaN)) {
		return line
	}
	return replaceNumbers(line, func(rest []byte) (word, by string) {
		number := rest[:len(rest)-len(bytes.TrimLeft(rest, "-+.0123456789eE"))]
		switch string(number) {
		case plainNaN:
			return plainNaN, pythonNaN
		case plainInfinity:
			return plainInfinity, pythonInfinity
		case plainNegative:
			return plainNegative, "-" + pythonInfinity
		}
		return string(number), string(number)
	})
}

// replaceNumbers replaces words outside of the strings of a line: find returns the word that a rest of
// the line begins with, "" if there is none to replace, and what it is replaced by.
func replaceNumbers(line []byte, find func(rest []byte) (word, by string)) []byte {
	out := make([]byte, 0, len(line)+16)
	for i := 0; i < len(line); {
		if line[i] == '"' {
			end := i + textLength(line[i:])
			out = append(out, line[i:end]...)
			i = end
			continue
		}
		word, by := find(line[i:])
		if word == "" {
			out = append(out, line[i])
			i++
			continue
		}
		out = append(out, by...)
		i += len(word)
	}
	return out
}

// textLength returns the length of the JSON text at the beginning of a line, with its quotes.
func textLength(line []byte) int {
	for i := 1; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(line)
}

// Python returns a value of a log as Python writes it, with the numbers that JSON does not have.
func Python(value []byte) []byte { return pythonJSON(value) }
