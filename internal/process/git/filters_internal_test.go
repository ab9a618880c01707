package git

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestFiltersOff(t *testing.T) {
	t.Parallel()
	off, err := filtersOff("user.name\x00filter.a.clean\x00filter.a.process\x00filter.B.c.smudge\x00filter.clean\x00")
	var want []string
	for _, name := range []string{"a", "B.c"} {
		want = append(want, "-c", "filter."+name+".clean=", "-c", "filter."+name+".smudge=", "-c",
			"filter."+name+".process=", "-c", "filter."+name+".required=false")
	}
	if err != nil || !slices.Equal(off, want) {
		t.Errorf("%q, %v, want %q", off, err, want)
	}
	var many strings.Builder
	for i := range maxFilters + 1 {
		fmt.Fprintf(&many, "filter.f%d.clean\x00", i)
	}
	if _, err := filtersOff(many.String()); err == nil {
		t.Error("too many filters are accepted")
	}
}

// Every filter of a list is turned off by settings that git reads with the same name, or
// the list is refused.
func FuzzFiltersOff(f *testing.F) {
	f.Add("filter.a.clean\x00")
	f.Add("filter..clean\x00filter.a=b.process\x00FILTER.a b.required\x00")
	f.Add("filter.a\nb.clean\x00filter\x00.\x00")
	f.Fuzz(func(t *testing.T, names string) {
		off, err := filtersOff(names)
		if err != nil {
			return
		}
		for name := range strings.SplitSeq(names, "\x00") {
			filter, setting := strings.TrimPrefix(name, "filter."), strings.HasSuffix(name, ".clean")
			if filter == name || !setting || name == "filter.clean" {
				continue
			}
			want := name + "="
			at := slices.Index(off, want)
			if at < 1 || off[at-1] != "-c" {
				t.Errorf("%q is not turned off by %q", name, off)
			}
			if key, _, _ := strings.Cut(want, "="); key != name {
				t.Errorf("git reads %q as %q", want, key)
			}
		}
	})
}
