package syntax_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/detect/syntax"
)

// Go calls whose error is discarded.
func TestDropped(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, body string
		want       []string
	}{
		{"a statement", "f()", []string{"f"}},
		{"the blank name", "x, _ := f()\nuse(x)", []string{"f", "use"}},
		{"deferred", "defer f()", []string{"f"}},
		{"written over", "err := f()\nerr = g()\nreturn err", []string{"f"}},
		{"never asked for", "x, err := f()\nreturn x", []string{"f"}},
		{"only given to nothing", "err := f()\n_ = err", []string{"f"}},
		{"an empty block", "err := f()\nif err != nil {\n}", []string{"f"}},
		{"another of its name", "x, err := f()\nif err := g(x); err != nil {\nreturn err\n}", []string{"f"}},
		{"in a block", "for range n {\nvar err error\nx, err = f()\n}", []string{"f"}},
		{"of a chain", "a.f(1).g(2)", []string{"f"}},
		{"of a named result", "y, err = f()\nreturn y, nil", []string{"f"}},
		{"asked for", "err := f()\nif err != nil {\nreturn err\n}", nil},
		{"returned", "return f()", nil},
		{"in a condition", "if err := f(); err != nil {\nreturn err\n}", nil},
		{"kept", "s.err = f()", nil},
		{"asked for after a block", "var err error\nif a {\nerr = f()\n}\nreturn err", nil},
		{"asked for in a case", "err := f()\nswitch {\ncase err != nil:\nreturn err\n}", nil},
		{"a bare return", "y, err = f()\nreturn", nil},
		{"given on", "err := f()\nall = append(all, err)", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			result := "error"
			if tt.name == "of a named result" || tt.name == "a bare return" {
				result = "(y int, err error)"
			}
			m := read(t, "a.go", "package a\n\nfunc do() "+result+" {\n"+tt.body+"\n}\n")
			var got []string
			for _, name := range []string{"f", "g", "use"} {
				for range m.Funcs[0].Dropped.Count(syntax.Hash(name)) {
					got = append(got, name)
				}
			}
			slices.Sort(tt.want)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("dropped differ (-want +got):\n%s", diff)
			}
		})
	}
}

// Ruby blocks that are not understood end with their method, and later names are read.
func TestRubyGoesOn(t *testing.T) {
	t.Parallel()
	const text = `class TestA < Test::Unit::TestCase
  def test_heredoc
    assert_separately("#{<<-"begin;"}\n#{<<-"end;"}")
    begin;
      begin
        x = f
      end while x < 100
    end;
  end
  def test_percent
    assert_equal %{it's (a "b")}, f(5 % 3)
  end
  def test_last
    assert f
  end
end
`
	want := []string{"2 TestA > test_heredoc asserts=1", "10 TestA > test_percent asserts=1",
		"13 TestA > test_last asserts=1"}
	if diff := cmp.Diff(want, summary(read(t, "test/test_a.rb", text))); diff != "" {
		t.Errorf("tests differ (-want +got):\n%s", diff)
	}
}
