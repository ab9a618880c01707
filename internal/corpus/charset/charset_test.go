package charset_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"

	"github.com/perdure/perdure/internal/corpus/charset"
)

// sample is a text with the encodings that it is written in.
type sample struct{ name, encodings, text string }

func samples() []sample {
	return []sample{
		{"Japanese", "shift_jis euc-jp iso-2022-jp", "会議の議事録\n来週の月曜日までに報告書を提出してください。予算は三百万円です。\n"},
		{"Japanese code", "shift_jis euc-jp", "int n = 0; /* 初期化する */\nreturn n; // 結果を返す\n"},
		{"Japanese CSV", "shift_jis euc-jp", "氏名,部署,金額\n田中,営業,1200\n佐藤,開発,800\n"},
		{"simplified Chinese", "gb18030 gbk", "会议记录\n请在下周一之前提交报告。预算为三百万元。\n"},
		{"simplified Chinese log", "gb18030", "2024-01-02 错误：无法打开文件 config.ini\n2024-01-02 警告：连接已经断开\n"},
		{"traditional Chinese", "big5", "會議記錄\n請在下週一之前提交報告。我們的預算是三百萬元。\n"},
		{"Korean", "euc-kr", "회의록\n다음 주 월요일까지 보고서를 제출해 주세요. 예산은 삼백만 원입니다.\n"},
		{"Russian", "windows-1251 koi8-r ibm866 iso-8859-5", "Протокол собрания\nПожалуйста, сдайте отчёт до " +
			"понедельника. Бюджет " +
			"составляет три миллиона рублей.\n"},
		{"Russian log", "windows-1251 koi8-r ibm866", "12:00 ERROR Не удалось открыть файл data.txt\n12:01 INFO Соединение " +
			"восстановлено\n"},
		{"Ukrainian", "windows-1251 koi8-u", "Протокол зборів\nБудь ласка, здайте звіт до понеділка. Її бюджет є великий.\n"},
		{"Bulgarian", "windows-1251", "Протокол от събранието\nМоля, предайте отчета до понеделник.\n"},
		{"Greek", "windows-1253 iso-8859-7", "Πρακτικά της συνεδρίασης\nΠαρακαλώ υποβάλετε την έκθεση μέχρι τη Δευτέρα.\n"},
		{"Hebrew", "windows-1255", "פרוטוקול הישיבה\nנא להגיש את הדוח עד יום שני. התקציב הוא שלושה מיליון.\n"},
		{"Arabic", "windows-1256", "محضر الاجتماع\nيرجى تقديم التقرير قبل يوم الاثنين. الميزانية ثلاثة ملايين.\n"},
		{"Thai", "windows-874", "รายงานการประชุม\nกรุณาส่งรายงานภายในวันจันทร์ งบประมาณสามล้านบาท\n"},
		{"French", "windows-1252 iso-8859-15", "Procès-verbal de la réunion\nVeuillez remettre le rapport avant " +
			"lundi, même " +
			"s'il est incomplet. L'été a été très chaud à Nîmes.\n"},
		{"German", "windows-1252 ibm850", "Protokoll der Sitzung\nBitte den Bericht bis Montag abgeben. Größe und Übung: " +
			"über fünf Stück.\n"},
		{"Spanish", "windows-1252", "Acta de la reunión\n¿Quién entregará el informe del año? El señor Muñoz.\n"},
		{"Portuguese", "windows-1252", "Ata da reunião\nA apresentação do relatório não será até amanhã.\n"},
		{"Italian", "windows-1252", "Verbale della riunione\nIl bilancio è di tre milioni, perché la città è più grande.\n"},
		{"Swedish", "windows-1252", "Protokoll från mötet\nVänligen lämna rapporten före måndag. Åsa är här.\n"},
		{"Icelandic", "windows-1252", "Fundargerð\nÞað er ekki hægt að skila skýrslunni fyrir mánudag.\n"},
		{"Polish", "windows-1250 iso-8859-2", "Protokół z zebrania\nProszę złożyć sprawozdanie do poniedziałku. Żółw " +
			"i gęś.\n"},
		{"Czech", "windows-1250 iso-8859-2", "Zápis ze schůze\nOdevzdejte prosím zprávu do pondělí. Příliš žluťoučký kůň.\n"},
		{"Hungarian", "windows-1250 iso-8859-2", "Az ülés jegyzőkönyve\nKérjük, hétfőig adja le a jelentést. " +
			"Árvíztűrő tükör.\n"},
		{"Turkish", "windows-1254", "Toplantı tutanağı\nLütfen raporu pazartesi gününe kadar teslim edin. Bütçe için " +
			"değil.\n"},
		{"Lithuanian", "windows-1257", "Susirinkimo protokolas\nPrašome pateikti ataskaitą iki pirmadienio. Ačiū, žinoma.\n"},
		{"one accent", "windows-1252", "// Author: José Pérez\npackage main\n"},
		{"one umlaut in code", "windows-1252", "#define GRUESSE \"Grüße\"\n"},
		{"word processor", "windows-1252", "He said “it’s fine” — really…\n"},
		{"degrees and units", "windows-1252", "Temperature: 21 °C ± 2, area 3 m², price 5 €\n"},
	}
}

// read converts a text.
func read(t *testing.T, raw []byte, c charset.Charset) (string, *charset.Reader, error) {
	t.Helper()
	r := charset.NewReader(iotest.OneByteReader(bytes.NewReader(raw)), c)
	text, err := io.ReadAll(r)
	return string(text), r, err
}

// TestEncodingsAreRecognized proves that text of many languages is read unchanged from each
// encoding that is usual for them.
func TestEncodingsAreRecognized(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		for name := range strings.FieldsSeq(s.encodings) {
			t.Run(s.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				raw := encode(t, name, s.text)
				c, err := charset.Detect(raw, true)
				if err != nil {
					t.Fatal(err)
				}
				if got, _, err := read(t, raw, c); got != s.text || err != nil {
					t.Errorf("read as %s: %q, %v", c.Name(), got, err)
				}
				long := encode(t, name, strings.Repeat(s.text, 5000))
				if c, err := charset.Detect(long[:min(len(long), 1<<17+1)], false); err != nil || c.IsUTF8() {
					t.Errorf("of the beginning: %s, %v", c.Name(), err)
				}
			})
		}
	}
}

func encode(t *testing.T, name, text string) []byte {
	t.Helper()
	if name == "ibm850" {
		raw, err := charmap.CodePage850.NewEncoder().String(text)
		if err != nil {
			t.Fatal(err)
		}
		return []byte(raw)
	}
	enc, err := htmlindex.Get(name)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := enc.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(raw)
}

// wide encodes a text as UTF-16 or UTF-32.
func wide(text string, width int, order binary.AppendByteOrder) []byte {
	var out []byte
	if width == 4 {
		for _, r := range text {
			out = order.AppendUint32(out, uint32(r)) //nolint:gosec // a valid rune
		}
		return out
	}
	for _, u := range utf16.Encode([]rune(text)) {
		out = order.AppendUint16(out, u)
	}
	return out
}

// TestUnicodeEncodingsAreRecognized proves that UTF-16 and UTF-32 are read in both orders of
// bytes, with and without a mark, with characters beyond the first plane, too.
func TestUnicodeEncodingsAreRecognized(t *testing.T) {
	t.Parallel()
	all := append(samples(), sample{"English", "", "Intro line\r\nThe secret token is ZEBRA.\r\n"},
		sample{"emoji", "", "status: 😀 done\n"}, sample{"a real replacement character", "", "it was \uFFFD before\n"},
		sample{"short", "", "hi\n"})
	for _, s := range all {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			for _, mark := range []string{"\ufeff", ""} {
				checkWide(t, s, wide(mark+s.text, 2, order))
				checkWide(t, s, wide(mark+s.text, 4, order))
			}
		}
	}
}

func checkWide(t *testing.T, s sample, raw []byte) {
	t.Helper()
	c, err := charset.Detect(raw, true)
	if err != nil {
		t.Errorf("%s, %.20q…: %v", s.name, raw, err)
		return
	}
	if got, _, err := read(t, raw, c); got != s.text || err != nil {
		t.Errorf("%s, %.20q… as %s: %q, %v", s.name, raw, c.Name(), got, err)
	}
}

// TestUTF8StaysAsItIs proves that no text in UTF-8 is converted, whatever it has.
func TestUTF8StaysAsItIs(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"plain\n", "naïve café\n", "\x1b[31mred\x1b[0m\n", "a\uFFFDb\n", "日本語\n",
		"\u0085\u009f\n",
		"%PDF-1.4 is a format\n", "a\tb\x0cc\r\n", "😀", "Ã©tÃ© is what a wrong conversion leaves\n", "\x1b$ is no escape\n"} {
		c, err := charset.Detect([]byte(text), true)
		if err != nil || !c.IsUTF8() {
			t.Errorf("%q: %s, %v", text, c.Name(), err)
			continue
		}
		if got, _, err := read(t, []byte(text), c); got != text || err != nil {
			t.Errorf("%q was read as %q, %v", text, got, err)
		}
	}
	c, err := charset.Detect([]byte("\xef\xbb\xbfwith a mark\n"), true)
	if got, _, readErr := read(t, []byte("\xef\xbb\xbfwith a mark\n"), c); err != nil || readErr != nil ||
		got != "with a mark\n" {
		t.Errorf("with a mark: %q, %v, %v", got, err, readErr)
	}
}

// TestNoTextIsGuessed proves that bytes that are no text, or not certainly of one encoding, are
// errors.
func TestNoTextIsGuessed(t *testing.T) {
	t.Parallel()
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte(strings.Repeat("some text to compress, again and again 1234567890\n", 9)))
	_ = z.Close()
	var numbers []byte
	for i := range uint32(500) {
		numbers = binary.LittleEndian.AppendUint32(numbers, i*7)
	}
	for name, tt := range map[string]struct {
		raw  string
		want error
	}{
		"gzip":                {packed.String(), charset.ErrBinary},
		"PNG":                 {"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x10\x00\x00\x00\x10", charset.ErrBinary},
		"ELF":                 {"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\x3e\x00", charset.ErrBinary},
		"JPEG":                {"\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01\x01\x00\x00\x01", charset.ErrBinary},
		"numbers":             {string(numbers), charset.ErrBinary},
		"text with NUL":       {"name\x00value\x00other text\n", charset.ErrBinary},
		"UTF-8 and Latin-1":   {"déjà vu, naïve, Ünder, straße\ncaf\xe9\n", charset.ErrMixed},
		"all 0xff":            {strings.Repeat("\xff", 64), charset.ErrUnknown},
		"random":              {"\x81\xfe\x90\xc3\x28\xa0\xf1\x9d\xe4\xb3\xfc\xae\x8f\xd5\x9a\xed", charset.ErrUnknown},
		"one stray byte":      {"the value is \x9d here\n", charset.ErrUnknown},
		"Latin letters alone": {"\xb5\xd8\xde\xa5\xbf\xfe", charset.ErrUnknown},
	} {
		if c, err := charset.Detect([]byte(tt.raw), true); !errors.Is(err, tt.want) {
			t.Errorf("%s: %s, %v; want %v", name, c.Name(), err, tt.want)
		}
	}
}

// TestCutCharacterIsLeftOut proves that a text whose end cuts a character is read up to it, and
// that this is reported.
func TestCutCharacterIsLeftOut(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ raw, want string }{
		"UTF-8":            {"日本語の文\n終わ\xe3\x82", "日本語の文\n終わ"},
		"ASCII and a lead": {"plain text\n\xf0\x9f\x98", "plain text\n"},
		"Shift-JIS":        {string(encode(t, "shift_jis", "会議の議事録です\n")) + "\x8f", "会議の議事録です\n"},
		"UTF-16":           {"\xff\xfea\x00b\x00\n", "ab"},
		"half a pair":      {"\xff\xfea\x00\x3d\xd8", "a"},
	} {
		c, err := charset.Detect([]byte(tt.raw), true)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, r, err := read(t, []byte(tt.raw), c)
		if got != tt.want || err != nil || !r.Cut() {
			t.Errorf("%s as %s: %q, %v, cut %t", name, c.Name(), got, err, r.Cut())
		}
	}
	if c, err := charset.Detect([]byte("un caf\xe9"), true); err != nil || c.Name() != "Windows-1252" {
		t.Errorf("a last letter in Latin-1: %s, %v", c.Name(), err)
	}
}

// TestInvalidBytesEndAConversion proves that bytes which the encoding does not have are never
// replaced, with the line where they are.
func TestInvalidBytesEndAConversion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ encoding, raw string }{
		{"utf-8", "one\ntwo\n\xff\n"}, {"shift_jis", "one\ntwo\n\xfd\xfd\n"}, {"utf-16le",
			"1\x00\n\x002\x00\n\x00\x00\xdcx\x00"},
		{"windows-1252", "one\ntwo\n\x81\n"}, {"euc-jp", "one\ntwo\n\xa4 \n"}, {"big5", "one\ntwo\n\xa1\xff\n"},
		{"utf-32le", "1\x00\x00\x00\n\x00\x00\x002\x00\x00\x00\n\x00\x00\x00\x00\x00\x11\x00"},
	} {
		c, ok := charset.Find(tt.encoding)
		if !ok {
			t.Fatalf("no %s", tt.encoding)
		}
		got, _, err := read(t, []byte(tt.raw), c)
		invalid, isInvalid := errors.AsType[*charset.InvalidError](err)
		if !isInvalid || invalid.Line != 3 || strings.Contains(got, "\uFFFD") {
			t.Errorf("%s: %q, %v", tt.encoding, got, err)
		}
	}
}

// TestNamesOfEncodings proves that the names of iconv, Python, HTML and Windows are known.
func TestNamesOfEncodings(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"utf-8", "UTF8", "utf-16", "utf-16be", "utf_32_le", "latin1", "iso-8859-1", "cp1252",
		"cp1251",
		"shift_jis", "sjis", "cp932", "euc-jp", "gbk", "gb2312", "cp936", "big5", "euc-kr", "cp949", "koi8-r", "cp866",
		"cp850",
		"cp437", "macintosh", "macroman", "windows-1250", "iso-2022-jp", "windows-31j"} {
		if _, ok := charset.Find(name); !ok {
			t.Errorf("%s is not known", name)
		}
	}
	for _, name := range []string{"", "klingon", "utf-9", "replacement", "auto"} {
		if c, ok := charset.Find(name); ok {
			t.Errorf("%q is %s", name, c.Name())
		}
	}
}

// FuzzDetect: no bytes make a character that the source does not have.
func FuzzDetect(f *testing.F) {
	f.Add([]byte("text"), true)
	f.Add([]byte("\xff\xfea\x00"), false)
	f.Add([]byte("\x93\xfa\x96\x7b\x8c\xea\x82\xcc\x95\xb6"), true)
	f.Fuzz(func(t *testing.T, raw []byte, whole bool) {
		c, err := charset.Detect(raw, whole)
		if err != nil {
			return
		}
		text, err := io.ReadAll(charset.NewReader(bytes.NewReader(raw), c))
		if err == nil && bytes.Contains(text, []byte("\uFFFD")) && c.ExtendsASCII() && !bytes.Contains(raw,
			[]byte("\uFFFD")) {
			t.Errorf("%q as %s has a replacement character: %q", raw, c.Name(), text)
		}
	})
}

// shortLines returns lines of a measuring set with their encodings.
func shortLines(t *testing.T) (list []sample) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "short.txt"))
	if err != nil {
		t.Fatal(err)
	}
	encodings := ""
	for line := range strings.Lines(string(raw)) {
		line = strings.TrimSuffix(line, "\n")
		if names, ok := strings.CutPrefix(line, "["); ok {
			encodings = strings.TrimSuffix(names, "]")
		} else if encodings != "" {
			list = append(list, sample{line, encodings, line + "\n"})
		}
	}
	return list
}

// TestShortLinesAreRarelyMisread proves that a line of about 40 bytes is refused as unclear rather than
// read as another encoding, and that most lines are read.
func TestShortLinesAreRarelyMisread(t *testing.T) {
	t.Parallel()
	all, read, wrong := 0, 0, 0
	for _, s := range shortLines(t) {
		for name := range strings.FieldsSeq(s.encodings) {
			all++
			var raw []byte
			switch width := map[string]int{"utf-16": 2, "utf-32": 4}[name[:min(6, len(name))]]; {
			case width > 0 && strings.HasSuffix(name, "be"):
				raw = wide(s.text, width, binary.BigEndian)
			case width > 0:
				raw = wide(s.text, width, binary.LittleEndian)
			default:
				raw = encode(t, name, s.text)
			}
			c, err := charset.Detect(raw, true)
			if err != nil {
				continue
			}
			got, err := io.ReadAll(charset.NewReader(bytes.NewReader(raw), c))
			switch {
			case err == nil && string(got) == s.text:
				read++
			case err == nil:
				wrong++
				t.Logf("%q in %s was read as %s: %q", s.text, name, c.Name(), got)
			}
		}
	}
	t.Logf("%d of %d lines are read, %d wrongly", read, all, wrong)
	if wrong*100 >= all || read*100 < all*80 {
		t.Errorf("%d of %d lines are read, %d wrongly", read, all, wrong)
	}
}
