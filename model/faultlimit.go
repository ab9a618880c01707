package model

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/perdure/perdure/internal/text/lazyregexp"
)

// TokenLimit is a limit in tokens that a request passes, as a server describes it.
type TokenLimit struct {
	// Output is set if the request asks for a longer answer than the model writes. Otherwise the
	// text of the request is longer than the model reads.
	Output bool
	// Most is the limit; 0 if the server does not name it.
	Most int
	// Counted is how many tokens the server counted in the request; 0 if it does not say.
	Counted int
}

// leastRoom is the least room for an answer, in tokens, that is worth a request: with less, the
// text has to be shorter.
const leastRoom = 256

// What servers say, in the words of their codes and messages.
var (
	// reOutput names the limit of answers.
	reOutput = lazyregexp.New(`(?i)max_(completion_|new_|output_)?tokens(_to_sample)?\b|max(output|new|` +
		`completion)?tokens?(count)?\b|` +
		`\bmax(imum)? tokens\b|(output|completion|generated) tokens|maximum output|in the (completion|output)`)
	// reTooMuch says that a number is too large.
	reTooMuch = lazyregexp.New(`(?i)too (large|big|high|long)|exceed|at most|maximum|less than|lower than|<=|\brange\b|` +
		`between|` +
		`above|greater than|larger than|more than|must be|should be|\d+ ?> ?\d+|超过|超出|最大|范围|大于`)
	// reInRequest says of tokens that they are those of the text.
	reInRequest = lazyregexp.New(`(?i)tokens in (the |your )?(request|prompt|input|messages)|max message tokens`)
	// reTextParam is the name of a field with the text of a request.
	reTextParam = lazyregexp.New(`(?i)^(messages|inputs?|prompts?|contents?|body|text|input_tokens|` +
		`max_\w*tokens)([.\[]|$)`)
	// reStrong is said only of text that is too long.
	reStrong = lazyregexp.New(`(?i)context[_ -]?(length|window|size|limit)|context (is )?(full|overflow)|` +
		`maximum context|` +
		`exceed_context|(request|prompt|input|text|messages?)_(is_)?too_(large|long)|string_above_max_length|` +
		`tokens_limit_reached|` +
		`max_prompt_tokens|(prompt|inputs?|message|text|conversation|query|sequence)\b.{0,40}\b(is|are|was|were) too long|` +
		`(input|prompt) (tokens?|token count|length)\b.{0,60}(exceed|longer|larger|greater)|` +
		`longer than the (max\w*|model)|maximum (model|prompt|input|sequence) length|range of input length|` +
		`reduce the length of the (messages|prompt|input)|total (number of )?tokens|token limit (exceeded|reached)|` +
		`exceeded model token limit`)
	// reWeak is said of text that is too long, and of other things.
	reWeak = lazyregexp.New(`(?i)(request|payload|content|body|context|document|entity|prompt|inputs?)\b.{0,40}\b(is|` +
		`are|was|were)? ?` +
		`too (long|large|big)|string too long|too long for|too large for model|too (many|long|large)\b.{0,30}\b(tokens|` +
		`characters)|` +
		`(tokens?|lengths?|inputs?|prompt|messages?|text|characters?|sequence|(request|body|payload) size)\b.{0,70}` +
		`(exceed|longer than|larger than|greater than|more than|over the|above the|must be <=|must be less|must have less|` +
		`must be at most|` +
		`should be less|should not be longer|should have at most|surpass|beyond).{0,70}(max|limit|allow|length|context|` +
		`window|token|model|\d{3,})|` +
		`(exceed\w*|over the) .{0,40}(max\w*|model|tokens?|input|prompt|context)\b.{0,30}(length|limit|tokens?|size|` +
		`window|allowed)|` +
		`(max\w*|limit)\b.{0,20}\b(prompt|input|request|context|sequence|message)\b.{0,20}(length|tokens|size|characters)|` +
		`(shorten|truncate|reduce)\b.{0,20}\b(prompt|input|messages?|text|request|context)\b|(does|do|can) ?not fit\b|` +
		`(输入|请求|上下文|提示词?|prompt|tokens?|内容|文本|消息|长度|字符).{0,40}(超过|超出|超长|过长|超限|太长|最大)|(超过|超出).{0,30}(长度|上下文|最大|token|限制)|` +
		`(入力|プロンプト|トークン|文字数).{0,40}(超|長すぎ)|(입력|프롬프트|토큰).{0,40}(초과|너무 깁)`)
	// reNoText is said of limits of other things.
	reNoText = lazyregexp.New(`(?i)time[d -]*out|time limit|\bseconds\b|concurren|\bimages?\b|attachments?|\bfiles?\b|` +
		`\btools?\b|` +
		`\bfunctions\b|stop (sequence|word)|metadata|\bschema\b|logprobs|choices|\barray\b|temperature|top_p|penalty|` +
		`dimension|number of messages`)
	// reNoLimit is said of keys, rates, and parameters that the server does not know.
	reNoLimit = lazyregexp.New(`(?i)per[ _-]?(second|minute|min|hour|day|month)\b|rate.?limit|throttl|quota|billing|` +
		`credit|balance|` +
		`please wait|wait before|api.?key|(auth\w*|access|bearer|refresh|session|security|csrf) token|jwt|token (is |` +
		`has )?(been )?(invalid|expired|revoked)|` +
		`(invalid|expired) token|authorization|unrecognized|unknown (parameter|field|name|argument)|extra_forbidden|` +
		`extra inputs|` +
		`余额|额度|欠费|频率|速率|并发|每分钟|每天|次数|令牌.{0,6}(无效|过期)`)
	// reRate is said of a single request that has more tokens than a minute allows: waiting does
	// not help.
	reRate = lazyregexp.New(`(?i)request too large for|tokens must be reduced|limit:? (\d[\d,]*), requested:? (\d[\d,]*)`)
	// reOtherUnit names units of length other than tokens.
	reOtherUnit = lazyregexp.New(`(?i)characters?\b|\bbytes\b|\b[mk]b\b|string|maxLength|字`)
	// reNumber is a number that is not a part of a name.
	reNumber = lazyregexp.New(`(?i)(^|[^\w.-])(\d[\d,_]*\d|\d)(\.0+)?(k)?($|[^\w-]|-?token)`)
	// reLimit is a number that is named as a limit.
	reLimit = lazyregexp.New(`(?i)(maximum|max|limits?|at most|no more than|only|<=|less than or equal to|less than|` +
		`lower than|longer than|` +
		`up to|available context size|context (?:length|size|window)|allowed|\[\d+ ?,|exceeds?|n_ctx|最大|不能超过|超过|` +
		`>)[^\d;]{0,40}?` +
		`\b(\d[\d,_]*)(k)?\b`)
	// reSum is an input and an answer that are more than the window.
	reSum = lazyregexp.New(`(?i)(\d[\d,]*) ?\+ ?(?:max[ _]tokens )?(\d[\d,]*) ?(?:>|exceeds?) ?(\d[\d,]*)`)
	// reRange is a range of allowed numbers.
	reRange = lazyregexp.New(`\[ ?\d+ ?, ?(\d[\d,]*) ?\]`)
	// reLimitOfAnswer says that the limit of answers itself is too large.
	reLimitOfAnswer = lazyregexp.New("(?i)(max_(completion_|new_|output_)?tokens|max tokens)[`'\"]* (value )?" +
		"(is too|must be|should be|exceed)")
	// reInput is the number of tokens of the text, where a server names those of the answer, too.
	reInput = lazyregexp.New("(?i)(\\d[\\d,]*)(?: tokens)? (?:in the (?:messages|prompt|input)|of text input|" +
		"in your prompt|from the input|`?(?:inputs?|prompt)`? tokens|input tokens)|input length (\\d[\\d,]*)|" +
		"prompt (?:contains|has) (\\d[\\d,]*)")
)

// TokenLimit returns the limit that a request passes, and whether the fault, with an HTTP status,
// describes one.
func (f Fault) TokenLimit(status int) (TokenLimit, bool) {
	text := f.Code + "\n" + f.Type + "\n" + f.Message
	switch {
	case status == http.StatusTooManyRequests:
		return f.rateLimit()
	case status == http.StatusRequestEntityTooLarge:
		return textLimit(f.Message), true
	case status >= http.StatusInternalServerError:
		if !reStrong().MatchString(text) || reNoLimit().MatchString(text) {
			return TokenLimit{}, false
		}
		return textLimit(f.Message), true
	case KindOfStatus(status) != KindInvalid || reNoLimit().MatchString(text):
		return TokenLimit{}, false
	case f.isOutput():
		return outputLimit(f.Message)
	case f.Param != "" && !reTextParam().MatchString(f.Param):
		return TokenLimit{}, false
	case reStrong().MatchString(text), reWeak().MatchString(text) && !reNoText().MatchString(text):
		return textLimit(f.Message), true
	}
	return TokenLimit{}, false
}

// rateLimit recognises a request that is larger than a limit of tokens in a time.
func (f Fault) rateLimit() (TokenLimit, bool) {
	at := reRate().FindStringSubmatch(f.Message)
	if at == nil {
		return TokenLimit{}, false
	}
	all := numbersIn(f.Message)
	if m := reLimit().FindStringSubmatch(f.Message); m != nil && len(all) > 1 {
		most, counted := number(m[2], m[3]), slices.Max(all)
		return TokenLimit{Most: most, Counted: counted}, counted > most
	}
	return TokenLimit{}, at[1] == ""
}

// isOutput reports whether the fault is about the limit of answers.
func (f Fault) isOutput() bool {
	return (reOutput().MatchString(f.Message) || reOutput().MatchString(f.Param)) && reTooMuch().MatchString(f.Message) &&
		!reInRequest().MatchString(f.Message)
}

// outputLimit reads a fault that mentions the limit of answers. Where the server counts the text,
// too, the answer has the rest of the window; the text is too long if that is too little.
func outputLimit(message string) (TokenLimit, bool) {
	all := numbersIn(message)
	if m := reSum().FindStringSubmatch(message); m != nil {
		return shareWindow(number(m[3], ""), number(m[1], ""), number(m[2], "")), true
	}
	if input := inputTokens(message); input > 0 {
		l := textLimit(message)
		return shareWindow(l.Most, input, requestedOutput(all, l.Most, input)), true
	}
	if reStrong().MatchString(message) && !reLimitOfAnswer().MatchString(message) {
		return textLimit(message), true
	}
	if m := reRange().FindStringSubmatch(message); m != nil {
		return TokenLimit{Output: true, Most: number(m[1], "")}, true
	}
	if len(all) == 0 {
		return TokenLimit{Output: true}, true
	}
	most := 0
	if m := reLimit().FindStringSubmatch(message); m != nil {
		most = number(m[2], m[3])
	}
	if largest := slices.Max(all); len(all) > 1 && (most <= 1 || most == largest) { // it is the number that was sent
		most = 0
		for _, n := range all {
			if n < largest {
				most = max(most, n)
			}
		}
	}
	return TokenLimit{Output: true, Most: most}, true
}

// shareWindow returns the limit of an answer for which so many tokens were asked: the rest of the
// window, or, if that is too little, a limit of the text.
func shareWindow(window, input, asked int) TokenLimit {
	room := window - input
	if room < leastRoom || room < asked/4 {
		return TokenLimit{Most: window, Counted: max(input, 0)}
	}
	return TokenLimit{Output: true, Most: room, Counted: input}
}

// requestedOutput returns the length of the answer that was asked for, if it is among the numbers.
func requestedOutput(all []int, window, input int) int {
	for _, n := range all {
		if n != input && n != window && n != input+window && n < window {
			return n
		}
	}
	if slices.Index(all, window) != len(all)-1 && slices.Contains(all[slices.Index(all, window)+1:], window) {
		return window // the window was asked for
	}
	return 0
}

// textLimit reads the numbers of a fault about a text that is too long.
func textLimit(message string) TokenLimit {
	all := numbersIn(message)
	if len(all) == 0 || reOtherUnit().MatchString(message) {
		return TokenLimit{}
	}
	l := TokenLimit{Counted: slices.Max(all)}
	for _, m := range reLimit().FindAllStringSubmatch(message, -1) {
		if n := number(m[2], m[3]); n >= leastRoom && (l.Most == 0 || n < l.Most) {
			l.Most = n
		}
	}
	if l.Most == 0 && len(all) > 1 {
		l.Most = slices.Min(all)
	}
	if l.Most >= l.Counted {
		l.Counted = 0
	}
	return l
}

// inputTokens returns how many tokens a server counted in the text apart from the answer, 0 if it
// does not say.
func inputTokens(message string) int {
	m := reInput().FindStringSubmatch(message)
	if m == nil {
		return 0
	}
	return number(m[1]+m[2]+m[3], "")
}

// numbersIn returns the numbers in a message that can be of tokens.
func numbersIn(message string) []int {
	var all []int
	for rest := message; ; {
		at := reNumber().FindStringSubmatchIndex(rest)
		if at == nil {
			return all
		}
		thousands := ""
		if at[8] >= 0 {
			thousands = rest[at[8]:at[9]]
		}
		if n := number(rest[at[4]:at[5]], thousands); n > 1 {
			all = append(all, n)
		}
		rest = rest[at[5]:]
	}
}

// number returns the value of digits with separators; thousands is "k" for thousands.
func number(digits, thousands string) int {
	n, err := strconv.Atoi(strings.NewReplacer(",", "", "_", "").Replace(digits))
	if err != nil {
		return 0
	}
	if thousands != "" {
		n *= 1000
	}
	return n
}
