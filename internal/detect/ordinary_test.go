package detect_test

import (
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/detect"
)

// A removed test warns if an added one, perhaps in another file, replaces it. An abstract
// class with tests may get any name, and recorded output may change with the tools.
func TestOrdinaryReplacements(t *testing.T) {
	t.Parallel()
	const routes = "test('keeps order', () => {\n  const router = new Router()\n  router.add('GET', '/posts', 'a')\n" +
		"  expect(router.match('GET', '/posts')).toEqual(['a'])\n})\n"
	const matched = "test('refuses entries', () => {\n  const router = new Router()\n" +
		"  router.add('GET', '/:user/entries', 'entries')\n  router.add('GET', '/entry/:name', 'entry')\n" +
		"  expect(() => router.match('GET', '/entry/entries')).toThrowError(PathError)\n})\n"
	added := "test('refuses a name at once', () => {\n  const router = new Router()\n" +
		"  router.add('GET', '/:user/files', 'files')\n" +
		"  expect(() => router.add('GET', '/file/:title', 'file')).toThrowError(PathError)\n})\n"
	const code, later = "export class Router {\n  add(m, p, h) {\n    return p\n  }\n}\n",
		"export class Router {\n  add(m, p, h) {\n    check(p)\n    return p\n  }\n}\n"
	hollow := strings.Replace(added, "toThrowError(PathError)", "toBeDefined()", 1)
	change := func(now map[string]string) map[string]string {
		now["src/router.ts"] = later
		return now
	}
	old := map[string]string{"src/router.ts": code, "src/router.test.ts": routes + matched}
	wantPatterns(t, "with other values", changes(old, change(map[string]string{"src/router.test.ts": routes + added})),
		"warn test-removal-explained")
	wantPatterns(t, "in another file", changes(old, change(map[string]string{"src/router.test.ts": routes,
		"src/paths.test.ts": added})), "warn test-removal-explained")
	wantPatterns(t, "on other systems", changes(old, change(map[string]string{"src/router.test.ts": routes +
		strings.Replace(added, "test(", "test.skipIf(process.platform === 'win32')(", 1)})), "warn test-removal-explained")
	wantPatterns(t, "on another system", changes(old, change(map[string]string{"src/router.test.ts": routes +
		strings.Replace(added, "test(", "test.skipIf(process.platform !== 'win32')(", 1)})), "act test-removed")
	wantPatterns(t, "by less", changes(old, change(map[string]string{"src/router.test.ts": routes,
		"src/paths.test.ts": hollow})), "act test-removed")
	wantPatterns(t, "without another reason",
		changes(old, map[string]string{"src/router.ts": code, "src/router.test.ts": routes,
			"src/paths.test.ts": added}), "act test-removed")

	const php = "<?php\nabstract class ZipTest extends TestCase\n{\n    public function testReads(): void\n    {\n" +
		"        $this->assertSame('x', $this->adapter()->read('a'));\n    }\n}\n"
	renamed := func(name, class, want string) {
		now := strings.Replace(class, "ZipTest ", "ZipTestCase ", 1)
		wantPatterns(t, name, func(yield func(detect.Change, error) bool) {
			yield(detect.Change{Old: detect.Version{Path: "tests/ZipTest.php", Content: []byte(class)},
				New: detect.Version{Path: "tests/ZipTestCase.php", Content: []byte(now)}}, nil)
		}, want)
	}
	renamed("abstract", php, "")
	renamed("not abstract", strings.Replace(php, "abstract", "final", 1), "act skip-added")

	fixture := map[string]string{"tests/fixtures/guests.csv": "name,nights\nAnn,2\n"}
	wantPatterns(t, "a fixture in another folder", changes(fixture, map[string]string{
		"tests/fixtures/old/guests.csv": "# of 2020\nname;nights\nAnn;2\n"}), "warn fixture-changed")
	wantPatterns(t, "a fixture replaced", changes(fixture, map[string]string{
		"tests/fixtures/rooms.csv": "room;beds\n1;2\n"}), "act fixture-changed")
	for _, test := range []struct {
		name string
		with project.Class
		want string
	}{
		{"with the compiler", project.CIConfig, "tell protected-edited, warn fixture-changed"},
		{"with a program", "", "act fixture-changed"},
	} {
		wantPatterns(t, test.name, func(yield func(detect.Change, error) bool) {
			_ = yield(detect.Change{Old: detect.Version{Path: "ci.yml", Content: []byte("rust: 1.95\n")},
				New: detect.Version{Path: "ci.yml", Content: []byte("rust: 1.96\n")}, Configures: test.with}, nil) &&
				yield(detect.Change{Old: detect.Version{Path: "tests/a.stderr", Content: []byte("unsatisfied trait bound\n")},
					New: detect.Version{Path: "tests/a.stderr", Content: []byte("trait not implemented\n")}}, nil)
		}, test.want)
	}
}
