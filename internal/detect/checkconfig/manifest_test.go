package checkconfig_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/perdure/perdure/internal/check/project"
	"github.com/perdure/perdure/internal/detect/checkconfig"
)

// compared compares two versions of a file; an empty one does not exist.
func compared(name, old, now string) []checkconfig.Finding {
	f := checkconfig.File{Class: project.Classify(name).Class}
	if old != "" {
		f.OldPath, f.Old = name, []byte(old)
	}
	if now != "" {
		f.NewPath, f.New = name, []byte(now)
	}
	return checkconfig.Compare([]checkconfig.File{f})
}

func weaker(found []checkconfig.Finding) bool {
	return slices.ContainsFunc(found, func(f checkconfig.Finding) bool { return f.Level == checkconfig.Weaker })
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
		needs = "check: lint test docs\n\nci: test\n\nlint:\n\tgolangci-lint run\n\ntest: lint install-gotestsum\n" +
			"\tgo test ./...\n\ndocs: links\n\tmkdocs build\n\nlinks:\n\tpytest tests/links.py\n\ninstall-gotestsum:\n" +
			"\tgo install gotest.tools/gotestsum\n"
		make = "all: build\n\nbuild:\n\tcc a.c\n\ntest:\n\tpython run.py --all\n\tctest --output-on-failure\n"
		vite = "export default {\n  plugins: [vue()],\n  test: {\n    environment: 'node',\n  },\n}\n"
		flow = "on: push\njobs:\n  once:\n    uses: ./.github/workflows/skip_duplicate_runs.yml\n  lint:\n" +
			"    runs-on: linux\n    steps:\n      - run: pytest\n"
		steps = "on: push\njobs:\n  links:\n    runs-on: linux\n    steps:\n      - uses: org/test-links@v1\n"
		tox   = "[tox]\nenvlist = py\n\n[testenv:docs]\ncommands = pytest docs\n"
		npm   = "{\"version\":\"1\",\"scripts\":{\"ci\":\"npm run lint && npm test\",\"start\":\"node .\"}}"
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
		{"a task of tests more", "build.gradle.kts", gradle, "tasks.test {", "val exclusionTest by " +
			"tasks.registering(Test::class) {\n    group = \"verification\"\n    include(\"**/Exclusion*\")\n}\n" +
			"tasks.test {", false},
		{"a declared task with classes left out", "build.gradle.kts", "val slowTest by tasks.registering(Test::class) {\n" +
			"    useJUnitPlatform()\n}\n", "()", "()\n    exclude(\"**/Slow*\")", true},
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
		{"a check that another prerequisite makes", "Makefile", needs, "check: lint test", "check: test", false},
		{"a check in the recipe", "Makefile", needs, "check: lint test docs\n", "check: test docs\n\t$(MAKE) lint\n", false},
		{"a check that only another target makes", "Makefile", needs, "check: lint test docs", "check: lint docs", true},
		{"a tool that is no longer installed first", "Makefile", needs, "test: lint install-gotestsum", "test: lint", false},
		{"a check of an unknown name", "Makefile", needs, "docs: links", "docs:", true},
		{"another target", "Makefile", make, "cc a.c", "cc -O2 a.c", false},
		{"one target more", "Makefile", make, "build:", "test-slow:\n\tpython run.py --slow\n\nbuild:", false},
		{"a script that is just run", "justfile", "test *args:\n    python run.py\n", "python run.py", "-python run.py",
			true},
		{"left out by the configuration of the bundler", "vite.config.ts", vite, "environment: 'node',",
			"environment: 'node',\n    exclude: ['a/**'],", true},
		{"tests out of the coverage", "vite.config.ts", vite, "environment: 'node',",
			"environment: 'node',\n    coverage: { exclude: ['src/**/*.test.ts'] },", false},
		{"code out of the coverage", "vite.config.ts", vite, "environment: 'node',",
			"environment: 'node',\n    coverage: { exclude: ['src/parser/*.ts'] },", true},
		{"a condition over several lines", "vite.config.ts", vite, "environment: 'node',",
			"alias: dist\n      ? { a: 'dist' }\n      : undefined,\n    environment: 'node',\n    watch: false,", false},
		{"a plugin of the bundler", "vite.config.ts", vite, "vue()", "vue(), svg()", false},
		{"a workflow of others, whatever it does", ".github/workflows/ci.yml", flow,
			"  once:\n    uses: ./.github/workflows/skip_duplicate_runs.yml\n", "", false},
		{"an action of others", ".github/workflows/ci.yml", steps, "      - uses: org/test-links@v1\n", "", false},
		{"the tests themselves", ".github/workflows/ci.yml",
			strings.Replace(steps, "uses: org/test-links@v1", "run: pytest", 1), "      - run: pytest\n", "", true},
		{"a program that may be called", "tox.ini", tox, "commands", "allowlist_externals = make\ncommands", false},
		{"a test left out", "tox.ini", tox, "pytest docs", "pytest docs --ignore docs/a.py", true},
		{"tests out of a script", "package.json", npm, " && npm test", "", true},
		{"another script", "package.json", npm, "node .", "node ./main.js", false},
	} {
		now := strings.Replace(tt.before, tt.old, tt.now, 1)
		found := compared(tt.file, tt.before, now)
		if weaker(found) != tt.counts || now == tt.before {
			t.Errorf("%s, %s: %+v", tt.file, tt.name, found)
		}
	}
}
