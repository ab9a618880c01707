package syntax

import (
	"strings"
	"sync"

	"github.com/perdure/perdure/internal/detect/syntax/lex"
	"github.com/perdure/perdure/internal/detect/syntax/multiset"
	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// Check is a declared check: a rule for a field, or an access control.
type Check struct {
	Name    string
	Subject string // the field; empty for the enclosing declaration
	Line    int
	S       string
	// Apart is set when the subject may be in another file.
	Apart bool
	// Around are the distinctive words near it, when it has no subject.
	Around multiset.Hashes
}

// readChecks notes the declared checks: annotations, rules in tags, schemas, names of middleware.
func (u *unit) readChecks(m *Model) {
	if u.inTests {
		return
	}
	for i := range u.tok {
		switch t := &u.tok[i]; {
		case t.Kind == lex.Op && (t.S == "@" || t.S == "["):
			u.attributes(m, i)
		case t.Kind == lex.Text && u.lang.Name == "go" && t.S[0] == '`':
			u.tagged(m, i)
		case t.Kind == lex.Text && u.lang.Name == "php" && u.at(i-1) == "=>":
			u.ruled(m, i)
		case t.Kind != lex.Word:
		case schemaRoots()[t.S] && u.at(i+1) == "." && u.lang.handlers["catch"]:
			u.chained(m, i)
		case t.S == "RuleFor" && u.at(i+1) == "(":
			u.fluent(m, i)
		case u.lang.shape == ends && t.First && strings.HasPrefix(t.S, "validates"):
			u.validated(m, i)
		case u.at(i+1) == "=" && u.lang.shape == indents && argumentChecks()[t.S] && u.at(i+2) != "False" &&
			u.at(i+2) != "None":
			u.argued(m, i)
		case u.at(i+1) == ":" && u.lang.Name != "python" && propertyChecks()[t.S]:
			u.property(m, i)
		case t.S == "Depends" || t.S == "Security":
			u.injected(m, i)
		case keeps(t.S) && u.at(i-1) != "def" && u.at(i-1) != "function" && u.at(i-1) != "func" && u.at(i-1) != "fn":
			u.keeper(m, i)
		}
	}
}

// declare appends a check.
func (m *Model) declare(u *unit, i int, name, subject string) {
	if subject == "" {
		return
	}
	m.Checks = append(m.Checks, Check{Name: strings.Clone(name), Subject: strings.Clone(subject), Line: u.line(i),
		S: u.text(i, min(u.lineEnd(i), i+20, len(u.tok)))})
}

// attributes reads annotations, decorators and attributes that constrain a value.
func (u *unit) attributes(m *Model, i int) {
	if u.at(i) == "@" {
		at := i + 1
		for u.isWord(at) && (u.at(at+1) == ":" || u.at(at+1) == ".") && u.isWord(at+2) {
			at += 2
		}
		u.annotation(m, at)
		return
	}
	if u.lang.Name != "csharp" && u.at(i-1) != "#" || u.lang.Name == "csharp" && !u.tok[i].First && u.at(i-1) != "(" &&
		u.at(i-1) != "," && u.at(i-1) != "]" {
		return
	}
	end := u.closer(i) - 1
	for j := i + 1; j < end; j++ {
		if u.lang.Name == "rust" && (u.at(j) == "deny_unknown_fields" || u.at(j) == "validate") {
			m.declare(u, j, u.at(j), u.annotatedName(end+1))
		}
		if s := u.at(j); u.lang.Name != "rust" && (s == "(" || s == "[" || s == "{") {
			j = u.closer(j) - 1
			continue
		}
		if u.isWord(j) && annotationChecks()[u.at(j)] && u.lang.Name != "rust" {
			m.declare(u, j, u.at(j), u.annotatedName(end+1))
		}
	}
}

func (u *unit) annotation(m *Model, at int) {
	name := u.at(at)
	if !annotationChecks()[name] && !keeps(name) || u.lang.Name == "java" && name == "NotNull" && !u.validates() {
		return
	}
	after := at + 1
	if u.at(after) == "(" {
		after = u.closer(after)
	}
	m.declare(u, at, name, u.annotatedName(after))
}

// validates reports whether a file imports a validation library.
func (u *unit) validates() bool {
	return anyOf(0, min(len(u.tok), 400), func(i int) bool {
		s := u.at(i)
		return s == "validation" || s == "constraints" || s == "Size" || s == "Min" || s == "Max"
	})
}

// annotatedName returns the name declared at i, after annotations, keywords and types.
func (u *unit) annotatedName(i int) string {
	last := ""
	for j := i; j < min(len(u.tok), i+80); j++ {
		switch s := u.at(j); {
		case s == "@" || s == "#" || u.kindAt(j) == lex.Op && s == "[":
			if s == "[" {
				j = u.closer(j) - 1
			} else if s == "@" && u.isWord(j+1) {
				for j++; u.at(j+1) == "." || u.at(j+1) == ":"; {
					j += 2
				}
				if u.at(j+1) == "(" {
					j = u.closer(j+1) - 1
				}
			}
			last = ""
		case u.isWord(j):
			last = s
		case u.kindAt(j) == lex.Op && s == "<":
		case u.kindAt(j) == lex.Op && strings.Contains(";={(,):", s):
			return last
		}
	}
	return ""
}

// tagged reads the rules in a struct tag of Go.
func (u *unit) tagged(m *Model, i int) {
	first, _ := u.lineSpan(i)
	for _, key := range [...]string{`validate:"`, `binding:"`} {
		_, rest, ok := strings.Cut(u.at(i), key)
		if !ok {
			continue
		}
		rules, _, _ := strings.Cut(rest, `"`)
		for rule := range strings.SplitSeq(rules, ",") {
			name, _, _ := strings.Cut(rule, "=")
			if name != "" && name != "-" && name != "omitempty" && name != "dive" {
				m.declare(u, first, name, u.at(first))
			}
		}
	}
}

// ruled reads a rule of Laravel: 'name' => 'required|max:40'.
func (u *unit) ruled(m *Model, i int) {
	if u.kindAt(i-2) != lex.Text {
		return
	}
	for rule := range strings.SplitSeq(lex.Unquote(u.at(i)), "|") {
		name, _, _ := strings.Cut(rule, ":")
		if textRules()[name] {
			m.declare(u, i-2, name, lex.Unquote(u.at(i-2)))
		}
	}
}

// chained reads a schema as a chain of calls: name: z.string().min(1).
func (u *unit) chained(m *Model, i int) {
	subject := ""
	if s := u.at(i - 1); (s == ":" || s == "=") && i > 1 {
		subject = lex.Unquote(u.at(i - 2))
	}
	for j := i; u.at(j+1) == "." && u.isWord(j+2); {
		j += 2
		if chainChecks()[u.at(j)] {
			m.declare(u, i, u.at(j), subject)
		}
		if u.at(j+1) == "(" {
			j = u.closer(j+1) - 1
		}
	}
}

// fluent reads RuleFor(o => o.Name).NotEmpty() of C#.
func (u *unit) fluent(m *Model, i int) {
	end := u.closer(i + 1)
	subject := u.at(end - 2)
	for j := end - 1; u.at(j+1) == "." && u.isWord(j+2); {
		j += 2
		if s := u.at(j); !oneOf(s, "WithMessage", "When", "Unless", "WithName", "Cascade", "WithErrorCode") {
			m.declare(u, i, s, subject)
			m.Checks[len(m.Checks)-1].Apart = true
		}
		if u.at(j+1) == "(" {
			j = u.closer(j+1) - 1
		}
	}
}

// validated reads validates :name, presence: true of Rails.
func (u *unit) validated(m *Model, i int) {
	end := u.lineEnd(i)
	var subjects []string
	j := i + 1
	for ; j < end && u.at(j) == ":" && u.isWord(j+1); j += 3 {
		subjects = append(subjects, u.at(j+1))
	}
	for ; j < end; j++ {
		if u.opens(j) {
			j = u.closer(j) - 1
		} else if u.isWord(j) && u.at(j+1) == ":" && !validationOptions()[u.at(j)] {
			for _, s := range subjects {
				m.declare(u, i, u.at(j), s)
				m.Checks[len(m.Checks)-1].Apart = true
			}
		}
	}
}

// argued reads the constraints in a keyword argument of Python: Field(min_length=1).
func (u *unit) argued(m *Model, i int) {
	open := u.enclosing(i, "(")
	if u.at(open) != "(" || !u.isWord(open-1) || u.at(i) == "extra" && !strings.Contains(u.at(i+2), "forbid") {
		return
	}
	subject := ""
	if u.kindAt(open+1) == lex.Text {
		subject = lex.Unquote(u.at(open + 1))
	} else if n := u.headIndex(open); n >= 0 && u.isWord(int(u.heads[n])) && u.at(int(u.heads[n])+1) != "(" &&
		u.at(int(u.heads[n])+1) != "." {
		subject = u.at(int(u.heads[n]))
	}
	m.declare(u, i, u.at(i), subject)
}

// enclosing returns the bracket around i of a kind, or where the search for it ended.
func (u *unit) enclosing(i int, bracket string) int {
	open := i - 1
	for open > 0 && i-open < maxBlock && u.at(open) != bracket {
		if s := u.at(open); (s == ")" || s == "]" || s == "}") && u.opener(open) > 0 {
			open = u.opener(open)
		}
		open--
	}
	return open
}

// property reads the constraints in a schema entry: name: { required: true }.
func (u *unit) property(m *Model, i int) {
	if v := u.at(i + 2); v == "false" && u.at(i) != "additionalProperties" || v == "true" &&
		u.at(i) == "additionalProperties" || v == "undefined" {
		return
	}
	open := u.enclosing(i, "{")
	typed := anyOf(open, u.closer(max(open, 0)), func(j int) bool { return u.at(j) == "type" })
	if typed && u.at(open) == "{" && (u.at(open-1) == ":" || u.at(open-1) == "=") && open > 1 {
		m.declare(u, i, u.at(i), lex.Unquote(u.at(open-2)))
	}
}

// injected reads the access control in a FastAPI dependency.
func (u *unit) injected(m *Model, i int) {
	if u.at(i+1) != "(" || !givesCaller().MatchString(u.at(i+2)) {
		return
	}
	for j := i; j > 0 && i-j < maxBlock; j-- {
		if u.at(j) == "def" {
			m.declare(u, i, u.at(i+2), u.at(j+1))
			return
		}
	}
}

var givesCaller = lazyregexp.New(`(?i)user|auth|token|admin|permission|role|login|api_?key|scope`)

// keeper notes the name of an access control or a sanitizer with the words near it.
func (u *unit) keeper(m *Model, i int) {
	from, to := i, i+1
	for from > 0 && u.tok[from-1].Line == u.tok[i].Line && i-from < maxTypes {
		from--
	}
	for to < len(u.tok) && u.tok[to].Line == u.tok[i].Line && to-i < maxTypes {
		to++
	}
	if anyOf(from, to, func(j int) bool {
		return oneOf(u.at(j), "import", "from", "use", "using", "export", "exports", "require", "include")
	}) {
		return // named, not used
	}
	around := multiset.Difference(u.once(appendTelling, u.tok[from:to]), multiset.Hashes{u.tok[i].Hash})
	m.Checks = append(m.Checks, Check{Name: strings.Clone(u.at(i)), Line: u.line(i), S: u.text(from, to), Around: around})
}

// keeps reports whether a name is that of an access control or a sanitizer. Its length and first
// letter exclude most words.
func keeps(name string) bool {
	if len(name) < leastKeeper || len(name) > mostKeeper || !strings.ContainsRune("acehijlprstv", rune(name[0]|0x20)) {
		return false
	}
	low := strings.ToLower(name)
	if keepers()[strings.ReplaceAll(low, "_", "")] {
		return true
	}
	for _, verb := range keeping {
		if rest, ok := strings.CutPrefix(low, verb); ok {
			rest = strings.TrimSuffix(rest, "!")
			for _, what := range keptApart {
				if strings.HasSuffix(rest, what) {
					return true
				}
			}
		}
	}
	return false
}

const (
	leastKeeper = 8 // length of the shortest such name
	mostKeeper  = 60
)

// Names of access controls and sanitizers combine one of these verbs with one of these nouns.
var (
	keeping = [...]string{"require", "ensure", "verify", "check", "authenticate", "authorize", "authorise", "protect",
		"restrict"}
	keptApart = [...]string{"auth", "authenticated", "login", "user", "admin", "role", "roles", "permission",
		"permissions", "access", "owner", "token", "signature", "csrf", "session", "scope", "captcha"}
)

var keepers = sync.OnceValue(wordSet("loginrequired authrequired authenticationrequired permissionrequired " +
	"permissionsrequired rolerequired rolesrequired adminrequired tokenrequired jwtrequired authenticated " +
	"isauthenticated csrfprotect csrfprotection protectfromforgery htmlescape escapehtml htmlspecialchars " +
	"htmlentities striptags escapeshellarg shellescape sanitizehtml sanitize safeload comparedigest " +
	"timingsafeequal hashequals securecompare constanttimecompare ratelimit ratelimiter"))

var annotationChecks = sync.OnceValue(wordSet("NotNull NotBlank NotEmpty Size Min Max Positive PositiveOrZero " +
	"Pattern Email Valid Validated Digits DecimalMin DecimalMax Past PastOrPresent Future FutureOrPresent " +
	"AssertTrue PreAuthorize PostAuthorize Secured RolesAllowed IsGranted IsString IsInt IsNumber IsBoolean " +
	"IsEmail IsNotEmpty IsDefined IsUUID IsUrl IsDate IsDateString IsEnum IsPositive IsIn IsArray Length " +
	"MinLength MaxLength Matches ValidateNested ArrayNotEmpty ArrayMaxSize UseGuards Roles Authorized Required " +
	"StringLength Range EmailAddress RegularExpression Compare Authorize ValidateAntiForgeryToken Regex Choice " +
	"Count Valid field_validator model_validator validates permission_classes require_POST require_http_methods " +
	"staff_member_required user_passes_test jwt_required"))

var schemaRoots = sync.OnceValue(wordSet("z Joi joi yup Yup vine"))

var chainChecks = sync.OnceValue(wordSet("string number boolean date enum literal bigint instanceof min max " +
	"length email url uuid int integer positive nonnegative negative regex pattern nonempty required strict " +
	"refine superRefine alphanum valid oneOf matches gte lte gt lt finite noUnknown datetime ip cuid multipleOf " +
	"safe startsWith endsWith includes"))

var textRules = sync.OnceValue(wordSet("required string integer numeric min max between email array date unique " +
	"exists in regex size digits boolean url uuid confirmed alpha alpha_num alpha_dash after before image mimes " +
	"file json ip same accepted gt gte lt lte"))

var validationOptions = sync.OnceValue(wordSet("if unless on message allow_nil allow_blank strict case_sensitive " +
	"scope"))

var argumentChecks = sync.OnceValue(wordSet("required choices validators validate ge gt le lt min_length " +
	"max_length pattern regex max_digits decimal_places min_value max_value multiple_of allow_blank_forbidden " +
	"extra"))

var propertyChecks = sync.OnceValue(wordSet("required additionalProperties maxLength minLength maxlength " +
	"minlength minimum maximum exclusiveMinimum exclusiveMaximum minItems maxItems pattern validate"))

// LostChecks returns the checks of a version that another one has fewer of.
func LostChecks(was, now *Model) []Check {
	return multiset.Excess(was.Checks, now.Checks, func(c Check) string { return c.Subject + "\x00" + c.Name })
}
