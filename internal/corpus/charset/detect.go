package charset

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
)

// profile describes natural text of an encoding: one of some languages.
type profile struct {
	// languages are the letters beyond ASCII of languages in Latin letters.
	languages []language
	// alphabet are the letters of languages in other letters, common the frequent ones.
	alphabet, common string
	// wide is set for Chinese, Japanese and Korean.
	wide bool
	// rare is set for encodings of old systems.
	rare bool
}

type candidate struct {
	name string
	enc  encoding.Encoding
	profile
}

// candidates returns the encodings that are tried. Of two with equally natural results, the
// first is taken if it is the first of all.
func candidates() []candidate {
	west, central := westEuropean(), centralEuropean()
	cyrillic := profile{alphabet: russianLetters + slavicLetters, common: russianCommon + "ії"}
	greek := profile{alphabet: greekLetters, common: greekCommon}
	japaneseText := profile{alphabet: kana + kanji, common: kana + kanji, wide: true}
	return []candidate{
		{"Windows-1252", charmap.Windows1252, profile{languages: west}},
		{"ISO-8859-15", charmap.ISO8859_15, profile{languages: west}},
		{"Windows-1250", charmap.Windows1250, profile{languages: central}},
		{"ISO-8859-2", charmap.ISO8859_2, profile{languages: central}},
		{"Windows-1254", charmap.Windows1254, profile{languages: turkish()}},
		{"Windows-1257", charmap.Windows1257, profile{languages: baltic()}},
		{"Mac Roman", charmap.Macintosh, profile{languages: west, rare: true}},
		{"CP850", charmap.CodePage850, profile{languages: west, rare: true}},
		{"CP437", charmap.CodePage437, profile{languages: west, rare: true}},
		{"CP852", charmap.CodePage852, profile{languages: central, rare: true}},
		{"Windows-1251", charmap.Windows1251, cyrillic},
		{"KOI8-R", charmap.KOI8R, cyrillic},
		{"KOI8-U", charmap.KOI8U, cyrillic},
		{"CP866", charmap.CodePage866, profile{alphabet: cyrillic.alphabet, common: cyrillic.common, rare: true}},
		{"ISO-8859-5", charmap.ISO8859_5, cyrillic},
		{"Windows-1253", charmap.Windows1253, greek},
		{"ISO-8859-7", charmap.ISO8859_7, greek},
		{"Windows-1255", charmap.Windows1255, profile{alphabet: hebrewLetters, common: hebrewCommon}},
		{"Windows-1256", charmap.Windows1256, profile{alphabet: arabicLetters, common: arabicCommon}},
		{"Windows-874", charmap.Windows874, profile{alphabet: thaiLetters, common: thaiCommon}},
		{"Shift-JIS", japanese.ShiftJIS, japaneseText},
		{"EUC-JP", japanese.EUCJP, japaneseText},
		{"GB18030", simplifiedchinese.GB18030, profile{alphabet: simplified, common: simplified, wide: true}},
		{"Big5", traditionalchinese.Big5, profile{alphabet: traditional, common: traditional, wide: true}},
		{"EUC-KR", korean.EUCKR, profile{alphabet: hangul, common: hangul, wide: true}},
	}
}

const (
	// maxSample is the part of a text by which its encoding is chosen.
	maxSample = 8 << 10
	// minNatural is the naturalness of the text of an encoding, minLead how much it has to be
	// above that of the next encoding with another text.
	minNatural = 0.6
	minLead    = 0.08
	// doubt is added to the lead, divided by the number of characters that differ, rareDoubt for the
	// encodings of old systems.
	doubt     = 0.05
	rareDoubt = 1.5
)

// detectLegacy returns the encoding of a text that is not UTF-8 and has no NUL.
func detectLegacy(head []byte, whole bool) (Charset, error) {
	if isMixed(head) {
		return Charset{}, ErrMixed
	}
	if isFiller(head) {
		return Charset{}, ErrUnknown
	}
	sample, complete := sampleOf(head, whole)
	if controlShare(sample) > 0 {
		if c, ok := detectWide(head, whole); ok {
			return c, nil
		}
		return Charset{}, ErrBinary
	}
	var all []guess
	for i, c := range candidates() {
		one := Charset{name: c.name, enc: c.enc}
		if text, ok := decodeSample(one, sample, complete); ok {
			all = append(all, guess{one, text, naturalness(text, &c.profile), i == 0, c.rare})
		}
	}
	if c, ok := choose(all, shortness(len(sample))); ok {
		return c, nil
	}
	if c, ok := detectWide(head, whole); ok {
		return c, nil
	}
	return Charset{}, ErrUnknown
}

// guess is a text as one encoding has it.
type guess struct {
	charset Charset
	text    string
	score   float64
	usual   bool // the most usual encoding
	rare    bool // an encoding of old systems
}

// choose returns the encoding of the most natural text, unless another one is almost as natural.
func choose(all []guess, short float64) (Charset, bool) {
	best := -1
	for i, g := range all {
		if best < 0 || g.score > all[best].score+1e-9 {
			best = i
		}
	}
	if best < 0 || all[best].score < minNatural {
		return Charset{}, false
	}
	b := &all[best]
	for i := range all {
		g := &all[i]
		if g.text != b.text && b.score-g.score < neededLead(b, g, short) {
			return Charset{}, false
		}
	}
	return b.charset, true
}

// neededLead returns how much more natural the text of one encoding has to be than that of another: the more
// the fewer characters they differ in, as few characters look natural by accident.
func neededLead(b, g *guess, short float64) float64 {
	share, n := difference(b.text, g.text)
	lead := short * doubt * share / n
	if !b.usual {
		lead += minLead * share
	}
	if b.rare {
		lead += short * rareDoubt / n
	}
	return lead
}

// shortness returns 1 for a text of about a line, falling to 0 for one of several lines.
func shortness(bytes int) float64 {
	const line, lines = 120, 280
	return min(1, max(0, float64(lines-bytes)/(lines-line)))
}

// difference returns the share of characters beyond ASCII in which two results for the same bytes differ,
// and their number.
func difference(one, other string) (share, number float64) {
	a, b := []rune(one), []rune(other)
	if len(a) != len(b) {
		return 1, float64(max(utf8.RuneCountInString(one)-asciiCount(one), 1))
	}
	n := 0.0
	for i := range a {
		if a[i] >= utf8.RuneSelf || b[i] >= utf8.RuneSelf {
			n++
			if a[i] != b[i] {
				number++
			}
		}
	}
	return number / max(n, 1), max(number, 1)
}

// asciiCount returns the number of ASCII characters of a text.
func asciiCount(text string) (n int) {
	for _, r := range text {
		if r < utf8.RuneSelf {
			n++
		}
	}
	return n
}

// isMixed reports whether a text that is not UTF-8 has characters of it that no other
// encoding would have by accident.
func isMixed(head []byte) bool {
	valid, invalid := 0, 0
	for rest := head; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			invalid++
		case size > 1:
			valid++
		}
		rest = rest[size:]
	}
	return valid > invalid
}

// isFiller reports whether all bytes beyond ASCII are many of the same, as in memory never
// written to.
func isFiller(head []byte) bool {
	const least = 16
	n, first := 0, byte(0)
	for _, c := range head {
		if c < utf8.RuneSelf {
			continue
		}
		if n++; n == 1 {
			first = c
		} else if c != first {
			return false
		}
	}
	return n >= least && n == len(head)
}

// sampleOf returns the part of a text that has bytes beyond ASCII, from the beginning of a
// line on, and whether it ends with the text.
func sampleOf(head []byte, whole bool) ([]byte, bool) {
	at := bytes.IndexFunc(head, func(r rune) bool { return r >= utf8.RuneSelf })
	from := max(bytes.LastIndexByte(head[:max(at, 0)], '\n')+1, at-maxSample/2, 0)
	head = head[from:]
	if len(head) <= maxSample {
		return head, whole
	}
	return head[:maxSample], false
}

// controlShare returns the share of control characters that text do not have.
func controlShare(text []byte) float64 {
	n := 0
	for _, c := range text {
		if c < ' ' && !strings.ContainsRune("\t\n\r\f\v\b\a\x1a\x1b", rune(c)) || c == 0x7f {
			n++
		}
	}
	return float64(n) / float64(max(len(text), 1))
}

// decodeSample decodes a text and reports whether each character is one that text have. The
// end may cut a character unless whole is set.
func decodeSample(c Charset, sample []byte, whole bool) (string, bool) {
	out, err := c.enc.NewDecoder().Bytes(sample)
	if err != nil {
		return "", false
	}
	text := string(out)
	if !c.isSingleByte() {
		text = strings.TrimSuffix(text, "\uFFFD") // a character that the end cuts
	}
	if !whole { // what was cut can take the character before it along
		for range 2 {
			_, size := utf8.DecodeLastRuneInString(text)
			text = text[:len(text)-size]
		}
	}
	for _, r := range text {
		if !isText(r) {
			return "", false
		}
	}
	return text, true
}

// isText reports whether text have a character: it is assigned, and no control character
// beyond ASCII.
func isText(r rune) bool {
	return r < utf8.RuneSelf || r != utf8.RuneError && (unicode.IsGraphic(r) || unicode.Is(unicode.Cf, r))
}

// naturalness returns how natural a text is as one of the profile, from 0 to 1.
func naturalness(text string, p *profile) float64 {
	if p.wide {
		return wideNaturalness(text, p)
	}
	score := 0.0
	if p.alphabet != "" {
		score = alphabetNaturalness(text, p)
	} else {
		score = latinNaturalness(text, p.languages, p.rare)
	}
	if p.rare {
		score *= rareness
	}
	return score
}

// rareness lowers the naturalness of encodings that few files have.
const rareness = 0.93

// neighbours calls each for each character beyond ASCII with those before and after it.
func neighbours(text string, each func(before, r, after rune)) {
	before := rune(0)
	for i, r := range text {
		if r >= utf8.RuneSelf {
			after, _ := utf8.DecodeRuneInString(text[i+utf8.RuneLen(r):])
			each(before, r, after)
		}
		before = r
	}
}

func isASCIILetter(r rune) bool { return r < utf8.RuneSelf && unicode.IsLetter(r) }

// latinNaturalness is the share of the characters that stand where a language has them.
func latinNaturalness(text string, languages []language, rare bool) float64 {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) })
	n, good, some, letters := 0.0, 0.0, 0.0, 0
	fits := make([]float64, len(languages))
	neighbours(text, func(before, r, after rune) {
		if !unicode.IsLetter(r) || strings.ContainsRune("ªº", r) {
			weight := symbolWeight(before, r, after)
			n += 1 - 0.8*weight // a natural one says little
			good += 0.2 * weight
			return
		}
		n, letters = n+1, letters+1
		weight := letterWeight(before, r, after)
		for i, set := range languages {
			if strings.ContainsRune(set.letters, r) {
				fits[i] += weight
			}
		}
		if strings.ContainsRune(westLetters, r) {
			some += weight * 0.9
		}
	})
	if n == 0 || rare && letters == 0 {
		return 0
	}
	best := 0.0
	for i, f := range fits {
		best = max(best, f*(1-wordBonus)+f*wordBonus*min(1, 5*wordShare(words, languages[i].words)))
	}
	return (good + max(best, some*(1-wordBonus))) / n
}

// symbolWeight returns how natural a character that is no letter is between its neighbours.
func symbolWeight(before, r, after rune) float64 {
	afterLetter, beforeLetter := unicode.IsLetter(before), unicode.IsLetter(after)
	switch {
	case isFrame(before, r, after):
		return 1
	case r == '·' && (afterLetter || beforeLetter):
		return weightIf(before == 'l' && after == 'l')
	case afterLetter && beforeLetter:
		return weightIf(strings.ContainsRune("’\u00ad–—\u00a0", r))
	case afterLetter && strings.ContainsRune("„‚¿¡½¼¾§", r):
		return 0
	case strings.ContainsRune("ªº²³¹", r):
		return weightIf(!beforeLetter && (!afterLetter || before == 'm'))
	case r == '°':
		return weightIf(!beforeLetter || strings.ContainsRune("CFKNSEW", after))
	case beforeLetter:
		return weightIf(strings.ContainsRune("“”‘’„‚«»‹¿¡–—…•€£§©\u00a0", r) && (r != '©' || before != 0 &&
			!unicode.IsSpace(before)))
	}
	return weightIf(strings.ContainsRune(latinPunctuation, r))
}

func weightIf(natural bool) float64 {
	if natural {
		return 1
	}
	return 0
}

// wordBonus is the part of a naturalness that needs frequent words of the language.
const wordBonus = 0.2

// wordShare returns the share of words that are among the frequent ones.
func wordShare(words []string, frequent string) float64 {
	const least = 2 // one letter can be a placeholder, as in %s
	n := 0
	for _, w := range words {
		if len(w) >= least && strings.Contains(frequent, " "+w+" ") {
			n++
		}
	}
	return float64(n) / float64(max(len(words), 1))
}

// letterWeight returns how natural a letter is between its neighbours, in languages of western
// Europe more than in others.
func letterWeight(before, r, after rune) float64 {
	vowel := strings.ContainsRune("aeiouAEIOU", after)
	switch {
	case unicode.IsUpper(r) && unicode.IsLower(before), unicode.IsLower(r) && unicode.IsUpper(after):
		return 0
	case strings.ContainsRune("ðþý", r):
		return 0.7
	case r == 'è' && vowel, r == 'õ' && unicode.IsLetter(after) && after != 'e',
		strings.ContainsRune("ùì", r) && unicode.IsLetter(after):
		return 0.5
	case isASCIILetter(before) || isASCIILetter(after), strings.ContainsRune("àâéèíóúöåæøüÀÈÉÍÓÖÅÄä", r) &&
		!unicode.IsLetter(before) && !unicode.IsLetter(after):
		return 1
	}
	return 0.4
}

// isFrame reports whether a character draws a line, as part of one.
func isFrame(before, r, after rune) bool {
	alone := unicode.IsSpace(before) && unicode.IsSpace(after)
	return r >= 0x2500 && r <= 0x259f && (before == r || after == r || alone)
}

// alphabetNaturalness is the share of the letters that are of the alphabet, in words of it,
// the frequent ones more often.
func alphabetNaturalness(text string, p *profile) float64 {
	const usual = 0.82 // of long text
	n, good, letters := 0.0, 0.0, 0
	neighbours(text, func(before, r, after rune) {
		n++
		switch {
		case !strings.ContainsRune(p.alphabet, r):
			if !unicode.IsLetter(r) {
				weight := symbolWeight(before, r, after)
				n -= 0.8 * weight
				good += 0.2 * usual * weight
			}
		case isASCIILetter(before) || isASCIILetter(after), unicode.IsUpper(r) && unicode.IsLower(before):
		default:
			letters++
			good += alphabetWeight(before, r, after, p.common)
		}
	})
	if letters == 0 {
		return 0
	}
	return good / n / usual
}

func alphabetWeight(before, r, after rune, common string) float64 {
	weight := 0.3
	if strings.ContainsRune(common, unicode.ToLower(r)) {
		weight = 1
	}
	if unicode.IsUpper(r) && unicode.IsLetter(before) {
		weight *= 0.6
	}
	if !unicode.IsLetter(before) && !unicode.IsLetter(after) {
		weight *= 0.4
	}
	return weight
}

// wideNaturalness is the share of characters that are frequent in the language.
func wideNaturalness(text string, p *profile) float64 {
	n, common, alien := 0.0, 0.0, 0.0
	neighbours(text, func(before, r, after rune) {
		if unicode.IsPunct(r) || unicode.IsSymbol(r) || unicode.IsSpace(r) {
			n++
			if r >= 0x3000 && r <= 0x3020 || r >= 0xff00 && r <= 0xff65 || r == '…' || r == '—' || r == '“' || r == '”' {
				n -= 0.7
				common += 0.2
			}
			return
		}
		n++
		nextToLatin := (isASCIILetter(before) || isASCIILetter(after)) && !isWide(before) && !isWide(after)
		switch {
		case !isWide(r) || nextToLatin:
			alien++
		case strings.ContainsRune(p.common, r):
			common++
		}
	})
	if n == 0 {
		return 0
	}
	return max(0, min(1, common/n/0.35)-alien/n)
}

func isWide(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana) || r == 'ー' || r >= 0xff00 &&
		r <= 0xffef
}
