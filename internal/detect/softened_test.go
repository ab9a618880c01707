package detect_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/detect"
)

// Functions that failed and now continue, return a value, or only log.
func TestFormsOfSoftenedChecks(t *testing.T) {
	t.Parallel()
	const (
		kotlin = "class A(val name: String) {\n    fun add(other: A): A {\n" +
			"        check(unit == other.unit) { \"units differ\" }\n        return copy(value = value + other.value)\n    }\n" +
			"}\n"
		ts = "export function parse(text: string) {\n  const match = FORM.exec(text);\n  if (!match) {\n" +
			"    throw new FormError(`bad form ${text}`);\n  }\n  return { seconds: Number(match[1]), title: match[2].trim() " +
			"};\n}\n"
		sharp = "class A {\n    public decimal RateOf(string country) {\n" +
			"        if (!_rates.TryGetValue(country, out var rate)) {\n            throw new TaxException(country);\n" +
			"        }\n        return rate;\n    }\n}\n"
		golang = "package a\n\nfunc Load(name string) ([]Row, error) {\n\tf, err := os.Open(name)\n\tif err != nil {\n" +
			"\t\treturn nil, err\n\t}\n\tdefer f.Close()\n\treturn decode(f)\n}\n"
		size = "package a\n\nfunc New(size int) (*Ring, error) {\n\tif size <= 0 {\n" +
			"\t\treturn nil, fmt.Errorf(\"size %d\", size)\n\t}\n\treturn &Ring{rows: make([]Row, size)}, nil\n}\n"
		rust = "pub fn digits(text: &str) -> Result<Sum, Error> {\n" +
			"    if let Some(bad) = text.chars().find(|c| !c.is_ascii_hexdigit()) {\n        return Err(Error::Digit(bad));\n" +
			"    }\n    Ok(Sum(text.to_lowercase()))\n}\n"
		php = "<?php\nclass A {\n    public function __construct(private int $calls) {\n        if ($calls < 1) {\n" +
			"            throw new InvalidArgumentException('calls');\n        }\n        $this->start = time();\n    }\n}\n"
	)
	acts := []string{"act guard-removed"}
	checkForms(t, []form{
		{"gives itself back", "A.kt", kotlin, "class A(val name: String) {\n    fun add(other: A): A {\n" +
			"        if (unit != other.unit) return this\n        return copy(value = value + other.value)\n    }\n}\n", acts},
		{"gives a made-up value", "a.ts", ts, "export function parse(text: string) {\n  const match = FORM.exec(text);\n" +
			"  if (!match) {\n    return { seconds: 1, title: text || 'unknown' };\n  }\n" +
			"  return { seconds: Number(match[1]), title: match[2].trim() };\n}\n", acts},
		{"asks another function, which may throw", "a.ts", ts, "export function parse(text: string) {\n" +
			"  const match = FORM.exec(text);\n  if (!match) {\n    return refuse(text);\n  }\n" +
			"  return { seconds: Number(match[1]), title: match[2].trim() };\n}\n", nil},
		{"tells, and gives nothing", "A.cs", sharp, "class A {\n    public decimal RateOf(string country) {\n" +
			"        if (!_rates.TryGetValue(country, out var rate)) {\n" +
			"            _logger.LogWarning(\"no rate for {Country}\", country);\n            return 0m;\n        }\n" +
			"        return rate;\n    }\n}\n", acts},
		{"no error, and nothing", "a.go", golang, "package a\n\nfunc Load(name string) ([]Row, error) {\n" +
			"\tf, err := os.Open(name)\n\tif err != nil {\n\t\tlog.Print(err)\n\t\treturn []Row{}, nil\n\t}\n" +
			"\tdefer f.Close()\n\treturn decode(f)\n}\n", []string{"act error-swallowed"}},
		{"some errors are none", "a.go", golang, "package a\n\nfunc Load(name string) ([]Row, error) {\n" +
			"\tf, err := os.Open(name)\n\tif err != nil && errors.Is(err, fs.ErrNotExist) {\n\t\treturn []Row{}, nil\n\t}\n" +
			"\tif err != nil {\n\t\treturn nil, err\n\t}\n\tdefer f.Close()\n\treturn decode(f)\n}\n", nil},
		{"in several steps", "a.py", "def read(self, amt):\n    data = self.fp.read(amt)\n    if len(data) < amt:\n" +
			"        raise Incomplete(data, amt - len(data))\n    return data\n", "def read(self, amt):\n    size = min(amt, " +
			"LEAST)\n    data = self.fp.read(size)\n    if len(data) >= amt:\n        return data\n    if len(data) < size:\n" +
			"        raise Incomplete(data, amt - len(data))\n    return data + self.fp.read(amt - size)\n", nil},
		{"another class of error", "src/A.php", php, "<?php\nclass A {\n    public function __construct(private int " +
			"$calls) {\n        if ($calls < 1) {\n            throw new LimitException('calls');\n        }\n" +
			"        $this->start = time();\n    }\n}\n", nil},
	})
}

// Exceptions of a call that are discarded, in the forms of single languages.
func TestFormsOfStandIns(t *testing.T) {
	t.Parallel()
	const (
		kotlin = "class A {\n    fun at(text: String): Time {\n        return Time(parts[1], LocalTime.parse(parts[0]))\n" +
			"    }\n}\n"
		sharp = "class A {\n    public void Read(string[] parts) {\n        rates[parts[0]] = decimal.Parse(parts[1], " +
			"CultureInfo.InvariantCulture);\n        Count();\n    }\n}\n"
		ts = "export class Router {\n  async dispatch(path: string) {\n    const found = this.match(path);\n" +
			"    return await found.handler(found.params);\n  }\n}\n"
		java = "public class Control {\n    public static Clock load(Path file) throws IOException {\n" +
			"        return parse(Files.readString(file));\n    }\n}\n"
		ruby = "class Table\n  def self.load(path)\n    parse(File.read(path))\n  rescue Errno::ENOENT\n" +
			"    raise TableError, \"no table at #{path}\"\n  end\nend\n"
	)
	acts := []string{"act error-swallowed"}
	checkForms(t, []form{
		{"or a default", "A.kt", kotlin, "class A {\n    fun at(text: String): Time {\n" +
			"        return Time(parts[1], runCatching { LocalTime.parse(parts[0]) }.getOrDefault(LocalTime.MIN))\n    }\n}\n",
			acts},
		{"or another error", "A.kt", kotlin, "class A {\n    fun at(text: String): Time {\n" +
			"        return Time(parts[1], runCatching { LocalTime.parse(parts[0]) }.getOrElse { throw TimeError(it) })\n" +
			"    }\n}\n", nil},
		{"an answer nobody looks at", "A.cs", sharp, "class A {\n    public void Read(string[] parts) {\n" +
			"        decimal.TryParse(parts[1], NumberStyles.Any, CultureInfo.InvariantCulture, out var rate);\n" +
			"        rates[parts[0]] = rate;\n        Count();\n    }\n}\n", acts},
		{"an answer that counts", "A.cs", sharp, "class A {\n    public void Read(string[] parts) {\n" +
			"        if (!decimal.TryParse(parts[1], NumberStyles.Any, CultureInfo.InvariantCulture, out var rate)) throw " +
			"new FormatException();\n        rates[parts[0]] = rate;\n        Count();\n    }\n}\n", nil},
		{"two kinds of errors are null", "Control.java", java, "public class Control {\n    public static Clock load(Path " +
			"file) {\n        try {\n            return parse(Files.readString(file));\n" +
			"        } catch (IOException | IllegalArgumentException e) {\n            return null;\n        }\n    }\n}\n",
			acts},
		{"what is missing is null", "Control.java", java, "public class Control {\n    public static Clock load(Path " +
			"file) throws IOException {\n        try {\n            return parse(Files.readString(file));\n" +
			"        } catch (NoSuchFileException e) {\n            return null;\n        }\n    }\n}\n",
			[]string{"warn error-swallowed"}},
		{"an empty one", "lib/table.rb", ruby, "class Table\n  def self.load(path)\n    parse(File.read(path))\n" +
			"  rescue SystemCallError\n    new([])\n  end\nend\n", acts},
	})
}

// Symbols that still exist and are no longer public.
func TestFormsOfHiding(t *testing.T) {
	t.Parallel()
	const (
		js = "class Playlist {\n  add(track) {\n    this.tracks.push(track);\n  }\n}\n\nfunction duration(seconds) {\n" +
			"  return `${Math.floor(seconds / 60)}:${seconds % 60}`;\n}\n\nmodule.exports = { Playlist, duration };\n"
		python = "from .calendar import load, people\nfrom .request import check\n\n" +
			"__all__ = [\"check\", \"load\", \"people\"]\n"
		ruby   = "class Table\n  def due(time)\n    select { |job| job.due?(time) }\n  end\nend\n"
		kotlin = "class Recipe(val parts: Map<String, Int>) {\n    fun contains(ingredient: String): Boolean =\n" +
			"        parts.keys.any { it.equals(ingredient, ignoreCase = true) }\n}\n"
		java = "public class Clock {\n    public int seconds() {\n        return total / 1000 + lost;\n    }\n\n" +
			"    @Override\n    public String toString() {\n        return super.toString() + total;\n    }\n}\n"
	)
	acts := []string{"act symbol-removed"}
	checkForms(t, []form{
		{"out of what a module exports", "lib/playlist.js", js, "class Playlist {\n  add(track) {\n" +
			"    this.tracks.push(track);\n  }\n}\n\nfunction duration(seconds) {\n" +
			"  return `${Math.floor(seconds / 60)}:${seconds % 60}`;\n}\n\nmodule.exports = { Playlist };\n", nil},
		{"not handed on", "src/index.ts", "export { link, Router } from './router';\n",
			"export { Router } from './router';\n", acts},
		{"handed on by another name", "src/index.ts", "export { link, Router } from './router';\n",
			"export { linkTo, Router } from './router';\n", []string{"warn symbol-removed"}},
		{"out of a package", "leave/__init__.py", python,
			"from .calendar import load\nfrom .request import check\n\n__all__ = [\"check\", \"load\"]\n", acts},
		{"out of a crate", "src/lib.rs", "mod entry;\npub use entry::{Checksum, Entry};\n",
			"mod entry;\npub use entry::Entry;\n", acts},
		{"private by its name", "lib/table.rb", ruby,
			"class Table\n  def due(time)\n    select { |job| job.due?(time) }\n  end\n  private :due\nend\n", nil},
		{"private at its head", "lib/table.rb", ruby,
			"class Table\n  private def due(time)\n    select { |job| job.due?(time) }\n  end\nend\n", nil},
		{"private under another name", "Recipe.kt", kotlin, "class Recipe(val parts: Map<String, Int>) {\n" +
			"    private fun has(ingredient: String): Boolean =\n        parts.keys.any { it.equals(ingredient, ignoreCase = " +
			"true) }\n}\n", acts},
		{"for the package only", "Clock.java", java, "public class Clock {\n    int seconds() {\n" +
			"        return total / 1000 + lost;\n    }\n\n    @Override\n    public String toString() {\n" +
			"        return super.toString() + total;\n    }\n}\n", nil},
		{"what nobody calls by its name", "src/Mail.php", "<?php\nclass Mail {\n    public function __destruct()\n    {\n" +
			"        foreach ($this->files as $file) {\n            unlink($file);\n        }\n    }\n}\n",
			"<?php\nclass Mail {\n}\n", nil},
		{"inherited still", "Clock.java", java, "public class Clock {\n    public int seconds() {\n" +
			"        return total / 1000 + lost;\n    }\n}\n", []string{"warn symbol-removed"}},
		{"a constant in its place", "src/errors.ts", "export const enum Code {\n  A = 'a',\n  B = 'b',\n}\n",
			"export const Code = {\n  A: 'a',\n  B: 'b',\n};\n", []string{"warn symbol-removed"}},
	})
}

// The checks of an initialiser are removed with it.
func TestFormsOfInitialisers(t *testing.T) {
	t.Parallel()
	const old = "class Habit(val name: String, val days: Set<Int>) {\n    private val kept = sortedSetOf<Int>()\n\n" +
		"    init {\n        require(name.isNotBlank()) { \"a habit needs a name\" }\n    }\n\n    fun size() = kept.size\n" +
		"}\n"
	checkForms(t, []form{
		{"gone", "Habit.kt", old, "class Habit(val name: String, val days: Set<Int>) {\n" +
			"    private val kept = sortedSetOf<Int>()\n\n    fun size() = kept.size\n\n    fun pause(until: Int) {\n" +
			"        require(until > 0) { \"a pause ends\" }\n    }\n}\n", []string{"act guard-removed"}},
		{"moved to its factory", "Habit.kt", old, "class Habit private constructor(val name: String, val days: Set<Int>) " +
			"{\n    private val kept = sortedSetOf<Int>()\n\n    fun size() = kept.size\n\n    companion object {\n" +
			"        fun of(name: String, days: Set<Int>): Habit {\n            require(name.isNotBlank()) { \"a habit needs " +
			"a name\" }\n            return Habit(name, days)\n        }\n    }\n}\n", nil},
	})
}

// Errors that are ignored, and checks without replacement.
func TestFormsOfErrorsPassedOver(t *testing.T) {
	t.Parallel()
	const (
		golang = "package a\n\nfunc list(w Writer, r *Request) {\n\tto, err := time.Parse(form, r.To)\n\tif err != nil {\n" +
			"\t\thttp.Error(w, err.Error(), http.StatusBadRequest)\n\t\treturn\n\t}\n\tsend(w, between(r.From, to))\n}\n"
		rust = "pub fn parse(text: &str) -> Result<Table, Error> {\n    let mut lines = Vec::new();\n" +
			"    for (at, line) in text.lines().enumerate() {\n        lines.push(Line::parse(line).map_err(|e| " +
			"Error::Line(at, e))?);\n    }\n    Ok(Table { lines })\n}\n"
		record = "public record Entry(String project, Time from, Time to) {\n    public Entry {\n" +
			"        Objects.requireNonNull(from, \"from\");\n        if (project == null || project.isBlank()) {\n" +
			"            throw new IllegalArgumentException(\"project is missing\");\n        }\n    }\n}\n"
		sharp = "class A {\n    public static Reading Parse(string line) {\n        try {\n" +
			"            return new Reading(Id(line), double.Parse(line));\n        } catch (FormatException e) {\n" +
			"            throw new ReadingException(line, e);\n        }\n    }\n}\n"
		script = "export function pack (data, done) {\n  return new Promise((resolve, reject) => {\n" +
			"    gzip(data, (err, packed) => {\n      if (err) {\n        reject(err)\n      } else {\n" +
			"        resolve(packed)\n      }\n    })\n  })\n}\n"
		php = "<?php\nclass Letter {\n    public function __construct(public string $from, public string $to) {\n" +
			"        if (filter_var($from, FILTER_VALIDATE_EMAIL) === false) {\n            throw new BadLetter($from);\n" +
			"        }\n    }\n}\n"
	)
	swallowed, acts := []string{"act error-swallowed"}, []string{"act guard-removed"}
	checkForms(t, []form{
		{"another value", "a.go", golang, "package a\n\nfunc list(w Writer, r *Request) {\n" +
			"\tto, err := time.Parse(form, r.To)\n\tif err != nil {\n\t\tto = time.Now()\n\t}\n" +
			"\tsend(w, between(r.From, to))\n}\n", swallowed},
		{"only what could be read", "src/a.rs", rust, "pub fn parse(text: &str) -> Result<Table, Error> {\n" +
			"    let mut lines = Vec::new();\n    for line in text.lines() {\n        if let Ok(line) = Line::parse(line) {\n" +
			"            lines.push(line);\n        }\n    }\n    Ok(Table { lines })\n}\n", swallowed},
		{"up to what could be read", "src/a.rs", rust, "pub fn parse(text: &str) -> Result<Table, Error> {\n" +
			"    let mut lines = Vec::new();\n    for (at, line) in text.lines().enumerate() {\n" +
			"        let Ok(line) = Line::parse(line) else {\n            break;\n        };\n        lines.push(line);\n" +
			"    }\n    Ok(Table { lines })\n}\n", swallowed},
		{"or an error in other words", "src/a.rs", rust, "pub fn parse(text: &str) -> Result<Table, Error> {\n" +
			"    let mut lines = Vec::new();\n    for (at, line) in text.lines().enumerate() {\n" +
			"        let Ok(line) = Line::parse(line) else {\n            return Err(Error::Line(at));\n        };\n" +
			"        lines.push(line);\n    }\n    Ok(Table { lines })\n}\n", nil},
		{"a reading that was not taken", "A.cs", sharp, "class A {\n    public static Reading Parse(string line) {\n" +
			"        try {\n            return new Reading(Id(line), double.Parse(line));\n" +
			"        } catch (FormatException) {\n            return new Reading(line.Trim(), 0);\n        }\n    }\n}\n",
			swallowed},
		{"the constructor of a record", "Entry.java", record, "public record Entry(String project, Time from, Time to) {\n" +
			"    public Entry {\n        Objects.requireNonNull(from, \"from\");\n    }\n}\n", acts},
		{"beside a parameter", "src/Letter.php", php, "<?php\nclass Letter {\n    public function __construct(public " +
			"string $from, public string $to, public ?string $replyTo = null) {\n    }\n}\n", acts},
		{"what was called back is awaited", "a.ts", script,
			"export async function pack (data) {\n  return await packed(data)\n}\n", nil},
	})
}

// What a module exports besides functions.
func TestFormsOfExports(t *testing.T) {
	t.Parallel()
	acts := []string{"act symbol-removed"}
	checkForms(t, []form{
		{"a constant", "lib/lockers.js", "const SIZES = ['s', 'm', 'l'];\n\nmodule.exports = { SIZES, LIMIT: 3 };\n",
			"const SIZES = ['s', 'm', 'l'];\n\nmodule.exports = { LIMIT: 3 };\n", acts},
		{"what is in what is exported", "lib/store.js",
			"module.exports = { name: 'method', store () { return { of, all }; } };\n",
			"module.exports = { name: 'method', store () { return { of }; } };\n", nil},
		{"declared where it is exported", "src/a.ts", "export { default as select } from 'memo';\n",
			"export const select: Select = memo;\n", nil},
		{"all of a file", "src/index.ts", "export { A, B } from './types';\n", "export type * from './types';\n", nil},
	})
}

// A change whose documents announce a removal is not blocked for it.
func TestAnnouncedRemoval(t *testing.T) {
	t.Parallel()
	old := map[string]string{"src/desk.ts": "export function accept(order: Order) {\n  open.add(order);\n}\n\n" +
		"export function cancel(order: Order) {\n  open.delete(order);\n  release(order);\n}\n"}
	for said, want := range map[string]string{
		"Orders can no longer be cancelled at the desk.": "warn symbol-removed",
		"Faster starts.": "act symbol-removed",
	} {
		now := map[string]string{"src/desk.ts": "export function accept(order: Order) {\n  open.add(order);\n}\n",
			"CHANGES.md": "# Changes\n\n- " + said + "\n"}
		report := find(t, &detect.Input{Changes: changes(old, now)})
		if got := strings.Join(patternsOf(report), ", "); got != want {
			t.Errorf("%s: %q, want %q", said, got, want)
		}
	}
}
