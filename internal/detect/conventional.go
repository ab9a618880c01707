package detect

import (
	"github.com/perdure/perdure/internal/detect/syntax"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// conventional reports whether a mark is customary without an explanation: the line it
// applies to, or the rule that it names, explains it.
func conventional(id string, m *syntax.Mark) bool {
	if id == syntax.CoverageExcluded {
		return neverTested().MatchString(m.About)
	}
	if m.Silence.Rules != 1 && !outdated().MatchString(m.S) {
		return false
	}
	return usualRule().MatchString(m.S) || imports().MatchString(m.About) || standsInFor().MatchString(m.About)
}

var (
	// neverTested matches lines that tests do not or cannot run.
	neverTested = lazyregexp.New(`__name__|TYPE_CHECKING|NotImplemented|UnsupportedOperation|abstractmethod|ImportError|` +
		`ModuleNotFoundError|@overload|__repr__|__str__|` +
		`(?i)unreachable|\bnever\b|assert_?never|exhaustive|impossible|cannot happen|\bdefault\s*:|^\s*default\b|` +
		`\bprocess\.exit|sys\.exit|\bmain\s*\(|version_info|sys\.platform|process\.platform|Protocol\)|^\s*\.\.\.$|` +
		`DebuggerDisplay|private \w+\(\) ?\{|panic\(`)
	// usualRule matches rules that common idioms break: unchecked casts, re-exporting
	// imports, line lengths, names of generated code.
	usualRule = lazyregexp.New(`(?i)"(?:unchecked|UNCHECKED_CAST|rawtypes|serial|NewApi|deprecation)"|noqa:\s*(?:F401|` +
		`F403|E402|E501|N80\d|PLC0415|I001)\b|CS(?:1591|0?61[28])\b|nolint:\s*(?:lll|revive|stylecheck|golint)\b|` +
		`(?:max-len|import/\S+|no-require-imports|no-var-requires|global-require|camelcase|naming-convention|no-new-func|` +
		`no-underscore-dangle)\s*(?:\*/)?$|Layout/LineLength|Naming/\w+|wildcard_imports|non_(?:snake_case|` +
		`camel_case_types|upper_case_globals)|wrong-import-position|import-outside-toplevel|line-too-long|invalid-name`)
	imports = lazyregexp.New(`^\s*(?:(?:from|import|use|pub use|using|require|require_relative|export \*|export ` +
		`\{)\b|(?:const|let|var)\b.*\brequire\()`)
	// standsInFor matches assignments of an empty fallback for a name that could not be
	// imported.
	standsInFor = lazyregexp.New(`^\s*\w+(?::\s*\w+)? = (?:None|null|object|Any)\s*(?:#.*)?$`)
)
