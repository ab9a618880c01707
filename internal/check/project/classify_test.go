package project_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/check/project"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		".perdure/config.yaml": "perdure", "sub/.perdure/perdure.db": "perdure", ".claude/settings.json": "perdure",
		".claude/settings.local.json": "perdure", ".claude/commands/x.md": "other",
		".mcp.json": "perdure", "opencode.json": "perdure", ".codex/config.toml": "perdure",
		".gemini/settings.json": "perdure",

		".github/workflows/ci.yml": "ci", ".GitHub/Workflows/ci.yml": "ci", ".github/dependabot.yml": "other",
		".gitlab-ci.yml": "ci", "Jenkinsfile": "ci", "ci/jenkinsfile": "ci",
		".circleci/config.yml": "ci", ".husky/pre-commit": "ci", "CODEOWNERS": "ci",

		".coveragerc": "coverage", "codecov.yml": "coverage", ".nycrc": "coverage", ".nycrc.json": "coverage",
		"nyc.config.js": "coverage",

		"jest.config.ts": "runner", "web/vitest.config.mts": "runner", "pytest.ini": "runner",
		"tests/conftest.py": "runner", "spec/spec_helper.rb": "runner", ".rspec": "runner",
		"phpunit.xml.dist": "runner", ".config/nextest.toml": "runner", "test.runsettings": "runner csharp",
		".mocharc.cjs": "runner", "src/test/resources/junit-platform.properties": "runner",

		".eslintrc": "lint", ".eslintrc.json": "lint", "eslint.config.mjs": "lint", ".golangci.yml": "lint",
		"tsconfig.json": "lint", "tsconfig.base.json": "lint", "ruff.toml": "lint",
		"mypy.ini": "lint", "phpstan.neon": "lint", "phpstan-baseline.neon": "lint", ".rubocop_todo.yml": "lint",
		".editorconfig": "lint", "src/GlobalSuppressions.cs": "lint csharp", "clippy.toml": "lint",
		"checkstyle.md": "other", "config/checkstyle/checkstyle.xml": "lint", ".pre-commit-config.yaml": "lint",

		"a/testdata/x.json": "snapshot", "a/testdata/phpunit.xml": "snapshot", "tests/fixtures/package.json": "snapshot",
		"src/__snapshots__/a.test.ts.snap": "snapshot", "tests/fixtures/a.py": "snapshot", "a.golden": "snapshot",
		"A.verified.txt": "snapshot", "src/test/resources/x.sql": "snapshot",

		"a_test.go": "test go", "a/b.test.tsx": "test typescript", "a/b.spec.js": "test javascript",
		"__tests__/a.js": "test javascript", "test/helper.ts": "test typescript", "cypress/e2e/a.cy.ts": "test typescript",
		"tests/test_a.py": "test python", "test_a.py": "test python", "a_test.py": "test python",
		"app/tests.py": "test python", "tests/helper.py": "test python",
		"src/test/java/com/acme/Cart.java": "test java", "src/main/java/com/acme/CartTest.java": "test java",
		"src/main/java/com/acme/Latest.java": "source java",
		"src/commonTest/kotlin/A.kt":         "test kotlin", "ATest.kt": "test kotlin", "tests/integ.rs": "test rust",
		"src/tests.rs": "test rust", "src/cart/cart_test.rs": "test rust",
		"spec/cart_spec.rb": "test ruby", "test/cart_test.rb": "test ruby", "spec/support/x.rb": "test ruby",
		"Shop.Tests/Cart.cs": "test csharp", "CartTests.cs": "test csharp", "src/UnitTests/Cart.cs": "test csharp",
		"tests/CartTest.php": "test php", "tests/TestCase.php": "test php", "tests/Helper.php": "test php",
		"tests/a.phpt": "test php",

		"package.json": "manifest", "web/package.json": "manifest", "pyproject.toml": "manifest", "Makefile": "manifest",
		"pom.xml": "manifest", "a.csproj": "manifest csharp", "build.gradle.kts": "manifest",
		"package-lock.json": "other", "my-package.json": "other",

		"main.go": "source go", "src/a.ts": "source typescript", "src/App.vue": "source javascript",
		"a.py": "source python", "A.java": "source java", "A.kt": "source kotlin", "lib.rs": "source rust",
		"a.rb": "source ruby", "A.cs": "source csharp", "a.php": "source php", "src/contest.go": "source go",
		"src/attest.py": "source python", "latest/main.go": "source go", "src/protest.ts": "source typescript",

		"README.md": "other", "": "other", "docs/testing.md": "other", "a.sql": "other", "tests/README.md": "other",
	}
	for name, want := range tests {
		for _, path := range []string{name, strings.ReplaceAll(name, "/", `\`)} {
			f := project.Classify(path)
			got := strings.TrimSpace(fmt.Sprintf("%s %s", f.Class, f.Language))
			if got != want {
				t.Errorf("%q is %q, want %q", path, got, want)
			}
			if f.Class.Protected() && f.Why == "" {
				t.Errorf("%q: nobody says why it is protected", path)
			}
		}
	}
}

func TestProtected(t *testing.T) {
	t.Parallel()
	var protected []project.Class
	for _, c := range []project.Class{project.OwnFile, project.CIConfig, project.CoverageConfig, project.RunnerConfig,
		project.LintConfig,
		project.Snapshot, project.TestFile, project.Manifest, project.Source, project.Other} {
		if c.Protected() {
			protected = append(protected, c)
		}
	}
	want := []project.Class{project.OwnFile, project.CIConfig, project.CoverageConfig, project.RunnerConfig,
		project.LintConfig}
	if diff := cmp.Diff(want, protected); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestChangedParts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, file, before, now string
		want                    []string
	}{
		{"dependency", "package.json", `{"dependencies":{"a":"1"},"version":"1","scripts":{"test":"jest"}}`,
			`{"dependencies":{"a":"2","jest":"1"},"version":"2","scripts":{ "test" : "jest" }}`, nil},
		{"script", "web/package.json", `{"scripts":{"test":"jest","build":"tsc"}}`,
			`{"scripts":{"test":"true","build":"x","test:unit":"jest","start":"y"}}`,
			[]string{`scripts.test: "jest" -> "true"`, `scripts.test:unit:  -> "jest"`}},
		{"runner in the manifest", "package.json", `{"jest":{"bail":true}}`, `{}`, []string{`jest: {"bail":true} -> `}},
		{"strictness", "deno.json", `{"compilerOptions":{"strict":true},"tasks":{"check":"a"}}`,
			`{"compilerOptions":{"strict":false}}`,
			[]string{`compilerOptions: {"strict":true} -> {"strict":false}`, `tasks.check: "a" -> `}},
		{"not parsed", "package.json", `{"scripts":{"test":"jest"}}`, "{\n\"scripts\":{\"test\":\"true\"\n",
			[]string{`line:  -> "scripts":{"test":"true"`, `line: {"scripts":{"test":"jest"}} -> `}},
		{"toml", "pyproject.toml", "[project]\nversion = '1'\n[tool.pytest.ini_options]\naddopts = '-q'\n",
			"[project]\nversion = '2'\n# x\n[tool.pytest.ini_options] # y\naddopts = '-q --ignore=tests/a'\n",
			[]string{"[tool.pytest.ini_options]: addopts = '-q'\n -> addopts = '-q --ignore=tests/a'\n"}},
		{"toml, other section", "pyproject.toml", "[tool.pytestify]\na=1\n", "[tool.pytestify]\na=2\n", nil},
		{"ini", "setup.cfg", "[metadata]\na=1\n[coverage:report]\nfail_under = 90\n",
			"[metadata]\na=2\n[coverage:report]\nfail_under = 10\n",
			[]string{"[coverage:report]: fail_under = 90\n -> fail_under = 10\n"}},
		{"cargo", "Cargo.toml", "[lints.clippy]\nall = 'deny'\n[[test]]\nname = 'a'\n[dependencies]\na='1'\n",
			"[lints.clippy]\nall = 'allow'\n[dependencies]\na='2'\n",
			[]string{"[lints.clippy]: all = 'deny'\n -> all = 'allow'\n", "[test]: name = 'a'\n -> "}},
		{"makefile", "Makefile", "build:\n\tgo build\ntest:\n\tgo test ./...\n", "build:\n\tgo build -v\ntest:\n\ttrue\n",
			[]string{"line: go test ./... -> ", "line:  -> true"}},
		{"pom", "pom.xml", "<version>1</version>\n<skipTests>false</skipTests>\n",
			"<version>2</version>\n<skipTests>true</skipTests>\n",
			[]string{"line: <skipTests>false</skipTests> -> ", "line:  -> <skipTests>true</skipTests>"}},
		{"lines in another order", "Makefile", "test: a\nlint: b\n", "lint: b\n  test: a\n", nil},
		{"new manifest", "package.json", "", `{"scripts":{"test":"jest"}}`, []string{`scripts.test:  -> "jest"`}},
		{"tests left out", "a.csproj", "", "<Compile Remove=\"ATests.cs\" />\n",
			[]string{`line:  -> <Compile Remove="ATests.cs" />`}},
		{"failures ignored", "build.gradle.kts", "", "ignoreFailures = true\n", []string{"line:  -> ignoreFailures = true"}},
		{"a lower bound", "build.gradle.kts", "minBound(80)\n", "minBound(20)\n",
			[]string{"line:  -> minBound(20)", "line: minBound(80) -> "}},
		{"a newer plugin", "build.gradle.kts", "id(\"kover\") version \"1\"\n", "id(\"kover\") version \"2\"\n", nil},
		{"csproj", "a.csproj", "<TreatWarningsAsErrors>true</TreatWarningsAsErrors>\n", "",
			[]string{"line: <TreatWarningsAsErrors>true</TreatWarningsAsErrors> -> "}},
	}
	for _, tt := range tests {
		var got []string
		for _, p := range project.ChangedParts(tt.file, []byte(tt.before), []byte(tt.now)) {
			got = append(got, fmt.Sprintf("%s: %s -> %s", p.Name, p.Before, p.Now))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

// TestManifestsOfRunners compares changes of a manifest that exclude tests from a run, or
// ignore their failure, with ordinary edits.
func TestManifestsOfRunners(t *testing.T) {
	t.Parallel()
	const (
		pom = `<project>
  <properties><java.version>17</java.version></properties>
  <dependencies>
    <dependency>
      <artifactId>junit-jupiter</artifactId>
      <version>5.10.1</version>
    </dependency>
  </dependencies>
  <build><plugins>
    <plugin>
      <artifactId>maven-surefire-plugin</artifactId>
      <version>3.2.5</version>
      <configuration>
        <failIfNoTests>true</failIfNoTests>
      </configuration>
    </plugin>
    <plugin>
      <artifactId>maven-jar-plugin</artifactId>
      <configuration>
        <finalName>a</finalName>
      </configuration>
    </plugin>
  </plugins></build>
</project>
`
		gradle = "plugins {\n    id(\"com.gradle.test-retry\") version \"1.5\"\n}\ndependencies {\n" +
			"    testImplementation(\"org.junit:junit-bom:5.1\")\n}\ntasks.test {\n    useJUnitPlatform()\n" +
			"    maxHeapSize = \"1g\"\n}\n"
		rake = "RSpec::Core::RakeTask.new(:spec) do |t|\n  t.pattern = \"spec/**/*_spec.rb\"\nend\n\ntask :docs do\n" +
			"  sh \"yard\"\nend\n\ntask default: [:spec, :docs]\n"
		cargo  = "[package]\nname = \"a\"\nversion = \"0.1.0\"\n\n[lib]\npath = \"src/lib.rs\"\n"
		csproj = "<Project>\n  <PropertyGroup>\n    <IsTestProject>true</IsTestProject>\n  </PropertyGroup>\n" +
			"  <ItemGroup>\n    <PackageReference Include=\"Microsoft.NET.Test.Sdk\" Version=\"17.8.0\" />\n  </ItemGroup>\n" +
			"</Project>\n"
		make = "all: build\n\nbuild:\n\tcc a.c\n\ntest:\n\tpython run.py --all\n\tctest --output-on-failure\n"
		vite = "export default {\n  plugins: [vue()],\n  test: {\n    environment: 'node',\n  },\n}\n"
		npm  = "{\"version\":\"1\",\"scripts\":{\"ci\":\"npm run lint && npm test\",\"start\":\"node .\"}}"
	)
	for _, tt := range []struct {
		name, file, before, old, now string
		counts                       bool
	}{
		{"a class excluded", "pom.xml", pom, "<failIfNoTests>true</failIfNoTests>",
			"<excludes>\n<exclude>**/ATest.java</exclude>\n</excludes>", true},
		{"a group excluded", "pom.xml", pom, "<failIfNoTests>true</failIfNoTests>",
			"<failIfNoTests>true</failIfNoTests>\n<excludedGroups>flaky</excludedGroups>", true},
		{"only a group", "pom.xml", pom, "<failIfNoTests>true</failIfNoTests>",
			"<failIfNoTests>true</failIfNoTests>\n<groups>fast</groups>", true},
		{"no tests are fine", "pom.xml", pom, "<failIfNoTests>true</failIfNoTests>", "", true},
		{"skipped by a property", "pom.xml", pom, "<java.version>17</java.version>",
			"<java.version>17</java.version><skipTests>true</skipTests>", true},
		{"a newer plugin", "pom.xml", pom, "<version>3.2.5</version>", "<version>3.5.0</version>", false},
		{"a newer library of tests", "pom.xml", pom, "<version>5.10.1</version>", "<version>5.11.0</version>", false},
		{"one library more", "pom.xml", pom, "<dependencies>", "<dependencies>\n<dependency>\n" +
			"<groupId>org.junit</groupId>\n<artifactId>junit-params</artifactId>\n</dependency>", false},
		{"another plugin", "pom.xml", pom, "<finalName>a</finalName>", "<classifier>all</classifier>", false},
		{"a filter", "build.gradle.kts", gradle, "useJUnitPlatform()",
			"useJUnitPlatform()\n    filter { excludeTestsMatching(\"*Slow\") }", true},
		{"a task that is off", "build.gradle.kts", gradle, "useJUnitPlatform()", "useJUnitPlatform()\n    enabled = false",
			true},
		{"tags", "build.gradle", gradle, "useJUnitPlatform()", "useJUnitPlatform {\n        excludeTags 'slow'\n    }", true},
		{"classes left out", "build.gradle", gradle, "useJUnitPlatform()", "useJUnitPlatform()\n    exclude '**/Slow*'",
			true},
		{"more memory", "build.gradle.kts", gradle, "1g", "2g", false},
		{"what is shown", "build.gradle.kts", gradle, "useJUnitPlatform()",
			"useJUnitPlatform()\n    testLogging { events(\"failed\") }", false},
		{"newer versions", "build.gradle.kts", gradle, "junit-bom:5.1", "junit-bom:5.2", false},
		{"a newer plugin of tests", "build.gradle.kts", gradle, "\"1.5\"", "\"1.6\"", false},
		{"failures are fine", "Rakefile", rake, "  t.pattern", "  t.fail_on_error = false\n  t.pattern", true},
		{"fewer files", "Rakefile", rake, "spec/**", "spec/fast/**", true},
		{"not by default", "Rakefile", rake, "[:spec, :docs]", "[:docs]", true},
		{"another task", "Rakefile", rake, "yard", "yard --quiet", false},
		{"no tests of the library", "Cargo.toml", cargo, "[lib]\n", "[lib]\ntest = false\n", true},
		{"no tests of the package", "Cargo.toml", cargo, "[package]\n", "[package]\nautotests = false\n", true},
		{"no harness", "Cargo.toml", cargo, "[lib]\n", "[lib]\nharness = false\n", true},
		{"a newer package", "Cargo.toml", cargo, "0.1.0", "0.2.0", false},
		{"another runner", ".cargo/config.toml", "[target.x]\nlinker = \"cc\"\n", "linker", "runner = \"true\"\nlinker",
			true},
		{"no project of tests", "a.csproj", csproj, "<IsTestProject>true", "<IsTestProject>false", true},
		{"a file left out", "a.csproj", csproj, "  <ItemGroup>\n", "  <ItemGroup>\n    <Compile Remove=\"A.cs\" />\n", true},
		{"nothing finds tests", "a.csproj", csproj, "    <PackageReference Include=\"Microsoft.NET.Test.Sdk\" " +
			"Version=\"17.8.0\" />\n", "", true},
		{"a newer package of tests", "a.csproj", csproj, "17.8.0", "17.9.0", false},
		{"a package of tests more", "a.csproj", csproj, "  <ItemGroup>\n",
			"  <ItemGroup>\n    <PackageReference Include=\"coverlet.test\" Version=\"6\" />\n", false},
		{"a project out of the solution", "a.sln", "Project(\"{1}\") = \"A.Tests\", \"A.Tests.csproj\"\n",
			"Project(\"{1}\") = \"A.Tests\", \"A.Tests.csproj\"\n", "", true},
		{"a project more", "a.sln", "Global\n", "Global\n", "Project(\"{1}\") = \"A.Tests\", \"A.Tests.csproj\"\nGlobal\n",
			false},
		{"exit codes ignored", "Makefile", make, "ctest --output-on-failure", "ctest --output-on-failure; exit 0", true},
		{"a dash before the command", "Makefile", make, "\tpython", "\t-python", true},
		{"fewer by a flag", "Makefile", make, "--all", "--fast", true},
		{"another target", "Makefile", make, "cc a.c", "cc -O2 a.c", false},
		{"one target more", "Makefile", make, "build:", "test-slow:\n\tpython run.py --slow\n\nbuild:", false},
		{"a script that is just run", "justfile", "test *args:\n    python run.py\n", "python run.py", "-python run.py",
			true},
		{"left out by the configuration of the bundler", "vite.config.ts", vite, "environment: 'node',",
			"environment: 'node',\n    exclude: ['a/**'],", true},
		{"a plugin of the bundler", "vite.config.ts", vite, "vue()", "vue(), svg()", false},
		{"tests out of a script", "package.json", npm, " && npm test", "", true},
		{"another script", "package.json", npm, "node .", "node ./main.js", false},
	} {
		now := strings.Replace(tt.before, tt.old, tt.now, 1)
		if parts := project.ChangedParts(tt.file, []byte(tt.before), []byte(now)); (len(parts) > 0) != tt.counts ||
			now == tt.before {
			t.Errorf("%s, %s: %+v", tt.file, tt.name, parts)
		}
	}
}

func TestCountFindings(t *testing.T) {
	t.Parallel()
	tests := []struct {
		format, text     string
		errors, warnings int
		fails            bool
	}{
		{format: project.FormatLines, text: ""},
		{format: project.FormatLines, text: "# example.com/m\n./a.go:3:5: undefined: x\na.go:9: y\nvet: exit 1\n", errors: 2},
		{format: project.FormatLines, text: "src/a.ts(3,5): error TS2304: Cannot find name 'x'.\nFound 1 error.\n",
			errors: 1},
		{format: project.FormatLines, text: "a.py:1: error: x  [name-defined]\na.py:1: note: see\nb.py:2: warning: y\n",
			errors: 1, warnings: 1},
		{format: project.FormatLines, text: "src/lib.rs:3:5: warning: unused\nsrc/lib.rs:4:5: error[E0425]: x\n", errors: 1,
			warnings: 1},
		{format: project.FormatLines, text: "::error title=lint,file=a.ts,line=1::x\n::warning file=a.ts::y\n", errors: 1,
			warnings: 1},
		{format: project.FormatESLint,
			text:   `[{"filePath":"a","messages":[],"errorCount":2,"warningCount":1},{"errorCount":1,"warningCount":0}]`,
			errors: 3, warnings: 1},
		{format: project.FormatESLint, text: `[]`},
		{format: project.FormatESLint, text: "Oops\n", fails: true},
		{format: project.FormatESLint, text: `[{"errorCount":1}`, fails: true},
		{format: "x", text: "", fails: true},
	}
	for _, tt := range tests {
		errors, warnings, err := project.CountFindings(tt.format, strings.NewReader(tt.text))
		if errors != tt.errors || warnings != tt.warnings || (err != nil) != tt.fails {
			t.Errorf("%s %q: %d errors, %d warnings, %v", tt.format, tt.text, errors, warnings, err)
		}
	}
}
