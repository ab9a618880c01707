package command

import (
	"fmt"
	"strings"
)

// operators are what a shell would act upon. They are refused outside quotes,
// because a user who writes them expects a shell.
const operators = "|&;<>()`"

// Split splits a command line into words as a shell does, without expanding
// anything: blanks separate, single quotes keep everything, double quotes keep
// everything but a backslash before ", \, $ or `, a backslash outside quotes
// keeps the next character. "$" and "*" stand for themselves.
//
// A quote without its end, a backslash at the end, and an operator of the
// shell outside quotes are errors that name the column, counted in bytes from
// 1.
func Split(line string) ([]string, error) {
	s := splitter{line: line}
	for s.at < len(line) {
		if err := s.next(); err != nil {
			return nil, err
		}
	}
	s.end()
	return s.words, nil
}

type splitter struct {
	line   string
	at     int
	words  []string
	word   strings.Builder
	inWord bool // also when the word is empty so far, as in ""
}

func (s *splitter) end() {
	if s.inWord {
		s.words = append(s.words, s.word.String())
	}
	s.word.Reset()
	s.inWord = false
}

// next takes the next character, or everything up to a closing quote.
func (s *splitter) next() error {
	c := s.line[s.at]
	switch {
	case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		s.end()
		s.at++
		return nil
	case c == '\'':
		return s.single()
	case c == '"':
		return s.double()
	case c == '\\':
		if s.at+1 == len(s.line) {
			return fmt.Errorf("column %d: backslash at the end of the command", s.at+1)
		}
		s.at++
		c = s.line[s.at]
	case strings.IndexByte(operators, c) >= 0:
		return fmt.Errorf("column %d: %q needs a shell; quote it if it is meant as text", s.at+1, c)
	}
	s.add(c)
	return nil
}

func (s *splitter) add(c byte) {
	s.word.WriteByte(c)
	s.inWord = true
	s.at++
}

func (s *splitter) single() error {
	end := strings.IndexByte(s.line[s.at+1:], '\'')
	if end < 0 {
		return fmt.Errorf("column %d: single quote without its end", s.at+1)
	}
	s.word.WriteString(s.line[s.at+1 : s.at+1+end])
	s.inWord = true
	s.at += end + 2
	return nil
}

func (s *splitter) double() error {
	start := s.at
	s.inWord = true
	s.at++
	for s.at < len(s.line) {
		c := s.line[s.at]
		switch {
		case c == '"':
			s.at++
			return nil
		case c == '\\' && s.at+1 < len(s.line) && strings.IndexByte("\"\\$`", s.line[s.at+1]) >= 0:
			s.at++
			c = s.line[s.at]
		}
		s.add(c)
	}
	return fmt.Errorf("column %d: double quote without its end", start+1)
}
