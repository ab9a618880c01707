package detect_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/detect"
)

// A fixture changes and its source does not.
func TestFixtures(t *testing.T) {
	t.Parallel()
	base := map[string]string{
		"src/price.ts": "export function formatPrice(cents: number): string {\n" +
			"  return (cents / 100).toFixed(2) + ' EUR';\n}\n",
		"src/rooms.ts": "export function book(name: string): number {\n" +
			"  return rooms.push(name);\n}\n",
		".github/workflows/ci.yml":              "compiler: 1.95\n",
		"package.json":                          "{\n  \"version\": \"1.0.0\"\n}\n",
		"pnpm-lock.yaml":                        "prettier: 3.0.0\n",
		"test/__snapshots__/price.test.ts.snap": "exports[`formatPrice > two places 1`] = `\"75.05 EUR\"`;\n",
		"tests/data/guests.csv":                 "name,nights\nAnn,2\nBo,3\n",
		"e2e/testdata/tour.yaml":                "total: 3\n",
		"tests/data/rooms.json":                 "{\"rooms\": [1, 2], \"beds\": 3}\n",
		"tests/config.json":                     "{\"slow\": true}\n",
		"tests/price.test.ts":                   "test('a', () => {\n  expect(formatPrice(1)).toBe('0.01 EUR');\n});\n",
	}
	snap, csv := "test/__snapshots__/price.test.ts.snap", "tests/data/guests.csv"
	for _, test := range []struct {
		name string
		now  map[string]string
		want string
	}{
		{"alone", map[string]string{csv: "name,nights\nAnn,2\nBo,4\n"}, "act fixture-changed"},
		{"beside a version", map[string]string{csv: "name,nights\nAnn,2\nBo,4\n",
			"package.json": "{\n  \"version\": \"1.0.1\"\n}\n"}, "act fixture-changed"},
		{"beside what dependencies are", map[string]string{snap: strings.Replace(base[snap], "75.05", "75.5", 1),
			"pnpm-lock.yaml": "prettier: 3.1.0\n"}, "warn fixture-changed"},
		{"beside the compiler of the checks", map[string]string{snap: strings.Replace(base[snap], "75.05", "75.5", 1),
			".github/workflows/ci.yml": "compiler: 1.96\n"}, "act protected-file, warn fixture-changed"},
		{"with other source", map[string]string{snap: strings.Replace(base[snap], "75.05", "75.5", 1),
			"src/rooms.ts": base["src/rooms.ts"] + "export const free = () => rooms.pop();\n"}, "act fixture-changed"},
		{"gone with other source", map[string]string{csv: "", "src/rooms.ts": base["src/rooms.ts"] +
			"export const free = () => rooms.pop();\n"}, ""},
		{"with its source", map[string]string{snap: strings.Replace(base[snap], "75.05", "75.5", 1),
			"src/price.ts": strings.Replace(base["src/price.ts"], "toFixed(2)", "toFixed(1)", 1)}, ""},
		{"with source that names its values", map[string]string{csv: "name,nights,room\nAnn,2,5\nBo,3,6\n",
			"src/rooms.ts": "export function book(guest: { name: string; room: number }): number {\n" +
				"  return rooms.push(guest);\n}\n"}, ""},
		{"with new lines only", map[string]string{csv: base[csv] + "Cy,1\n"}, ""},
		{"of a test of the whole program",
			map[string]string{"e2e/testdata/tour.yaml": "total: 4\n",
				"src/rooms.ts": strings.Replace(base["src/rooms.ts"], "push", "unshift", 1)}, ""},
		{"in another layout", map[string]string{"tests/data/rooms.json": "{\n  \"rooms\": [1, 2],\n  \"beds\": 3\n}\n"}, ""},
		{"what configures tests", map[string]string{"tests/config.json": "{\"slow\": false}\n"}, ""},
		{"with new assertions about it",
			map[string]string{csv: "name,nights\nAnn,2\nBo,4\n", "tests/price.test.ts": base["tests/price.test.ts"] +
				"test('guests', () => {\n  expect(read('data/guests.csv')[1].nights).toBe(4);\n});\n"}, "warn fixture-changed"},
		{"with new assertions about something else",
			map[string]string{csv: "name,nights\nAnn,2\nBo,4\n", "tests/price.test.ts": base["tests/price.test.ts"] +
				"test('b', () => {\n  expect(formatPrice(250)).toBe('2.50 EUR');\n});\n"}, "act fixture-changed"},
	} {
		now := maps.Clone(base)
		maps.Copy(now, test.now)
		maps.DeleteFunc(now, func(_, text string) bool { return text == "" })
		report := find(t, &detect.Input{Changes: func(yield func(detect.Change, error) bool) {
			for c, err := range changes(base, now) {
				if strings.HasPrefix(c.New.Path, ".github/") {
					c.Protected = "it decides what is checked"
				}
				if !yield(c, err) {
					return
				}
			}
		}})
		if got := strings.Join(patternsOf(report), ", "); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

// A changed fixture next to code that has words in common with it, or only another layout.
func TestFixturesNextToCode(t *testing.T) {
	t.Parallel()
	const (
		rent = "<?php\n\nfinal class Rent\n{\n    public function yearly(Plot $plot): int\n    {\n" +
			"        return $plot->size * 42;\n    }\n}\n"
		meter  = "    public function metered(Plot $plot): int\n    {\n        return $plot->size * 3;\n    }\n}\n"
		reader = "<?php\n\nfinal class PlotImport\n{\n    public function read(string $line): array\n    {\n" +
			"        return str_getcsv($line);\n    }\n}\n"
		data = "# number,size,light\na1, 180, sun\nB12,240,half\n\nF7,95,\"shade\"\n"
	)
	for _, test := range []struct{ name, path, now, code, want string }{
		{"with the code that reads it", "plots.csv", strings.Replace(data, ", 180, ", ",180,", 1), "PlotImport.php", ""},
		{"with another value", "plots.csv", strings.Replace(data, "240", "250", 1), "Rent.php", ""},
		{"laid out by a program", "plots.json", "{ \"plot\": 1,\n\n  \"size\": 180 }\n", "Rent.php", ""},
		{"what the program writes", "plots.golden", strings.Replace(data, ", 180, ", ",180,", 1), "Rent.php", ""},
	} {
		old := map[string]string{"tests/data/" + test.path: data, "src/Rent.php": rent, "src/PlotImport.php": reader}
		if test.path == "plots.json" {
			old["tests/data/plots.json"] = "{ \"plot\":   1,\n  \"size\": 180 }\n"
		}
		now := maps.Clone(old)
		now["tests/data/"+test.path] = test.now
		now["src/"+test.code] = strings.TrimSuffix(old["src/"+test.code], "}\n") + "\n" + meter
		report := find(t, &detect.Input{Changes: changes(old, now)})
		if got := strings.Join(patternsOf(report), ", "); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
