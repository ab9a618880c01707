package detect

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/perdure/perdure/internal/detect/syntax"
)

// pair is a changed file with the models of its versions.
type pair struct {
	path           string
	change         Change // without contents
	lang           *syntax.Language
	class          class
	old, new       *syntax.Model // nil if missing or not analysed
	oldWhy, newWhy string        // why a version is not analysed
	edit           edit
	custom         []Finding // findings of the user's patterns
	contents       contents
	moreDrops      *bool // see dropsMore; nil until it is asked
}

// before returns the model of the old version; an empty one if it is missing or was not
// analysed.
func (p *pair) before() *syntax.Model { return cmp.Or(p.old, &syntax.Model{}) }

// after returns the model of the new version, as before does.
func (p *pair) after() *syntax.Model { return cmp.Or(p.new, &syntax.Model{}) }

// inNew returns a finding at a line of the new version. An empty message is the title of
// the pattern.
func (p *pair) inNew(line int, subject, evidence string, confidence float64, message string) Finding {
	return Finding{File: p.new.Path, Line: line, Subject: subject, Evidence: evidence, Confidence: confidence,
		Message: message}
}

// inOld returns a finding at a line of the old version, as inNew does.
func (p *pair) inOld(line int, subject, evidence string, confidence float64, message string) Finding {
	return Finding{File: p.old.Path, Line: line, Gone: true, Subject: subject, Evidence: evidence,
		Confidence: confidence, Message: message}
}

// class is the role of a file.
type class uint8

const (
	production class = iota
	testCode
	fixture
)

func classOf(c *Change) class {
	name := c.path()
	if c.Fixture {
		return fixture
	}
	for folder := range strings.SplitSeq(path.Dir(name), "/") {
		if slices.Contains([]string{"testdata", "fixtures", "__snapshots__", "golden", "__fixtures__"}, folder) {
			return fixture
		}
	}
	ext, lang := path.Ext(name), syntax.LanguageOf(name)
	switch {
	case ext == ".snap" || ext == ".golden":
		return fixture
	case lang != nil && lang.TestFile(name):
		return testCode
	case readByTests(name) && c.Protected == "" && c.Configures == "":
		return fixture
	}
	return production
}

// version builds the model of a version. It returns nil, and the reason, if the version
// is not analysed.
func (r *run) version(reader *syntax.Reader, v *Version, old *syntax.Model) (*syntax.Model, string) {
	if v.Path == "" {
		return nil, ""
	}
	why := r.limits.refuse(v)
	if why == "" && generated(v.Content) && old == nil {
		why = whyGenerated // unless the baseline was analysed
	}
	if why != "" {
		return nil, why
	}
	name, code := readAs(v)
	lang := syntax.LanguageOf(name)
	if lang == nil {
		m := plainModel(name, string(code))
		m.Path = v.Path
		return m, ""
	}
	m := reader.Read(lang, v.Path, string(code))
	if name != v.Path {
		inward(m)
	}
	return m, ""
}
