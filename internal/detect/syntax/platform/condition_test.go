package platform_test

import (
	"testing"

	"github.com/perdure/perdure/internal/detect/syntax/platform"
)

// Conditions that explain a skip, and conditions that always skip.
func TestConditions(t *testing.T) {
	t.Parallel()
	const runs = true
	for _, test := range []struct {
		language, text       string
		runs                 bool
		used, explains, ever bool
	}{
		{language: "python", text: "sys.version_info>=(3,8)", ever: true},
		{language: "python", text: "sys.version_info[:2]>(3,6)", ever: true},
		{language: "python", text: "sys.version_info.major>=3", ever: true},
		{language: "python", text: "sys.version_info[0]==3", ever: true},
		{language: "python", text: "sys.version_info<(3,10)", explains: true},
		{language: "python", text: "sys.version_info>=(3,14)", explains: true},
		{language: "python", text: "sys.version_info<(4,)", ever: true},
		{language: "python", text: "sys.version_info<(3,7)", runs: runs, ever: true},
		{language: "python", text: "sys.version_info>=(3,11)", runs: runs, explains: true},
		{language: "python", text: "platform.python_version()>=\"3.6\"", ever: true},
		{language: "ruby", text: "RUBY_VERSION>=\"3\"", ever: true},
		{language: "ruby", text: "Gem::Version.new(RUBY_VERSION)>=Gem::Version.new(\"2.7\")", ever: true},
		{language: "ruby", text: "RUBY_VERSION<\"3.2\"", explains: true},
		{language: "ruby", text: "RUBY_VERSION.start_with?(\"2.\")", explains: true},
		{language: "php", text: "RequiresPhp('< 8.0')", runs: runs, ever: true},
		{language: "php", text: "RequiresPhp('>=8.2')", runs: runs, explains: true},
		{language: "php", text: "PHP_VERSION_ID>=80000", ever: true},
		{language: "php", text: "PHP_VERSION_ID<80300", explains: true},
		{language: "php", text: "version_compare(PHP_VERSION,'7.4','>=')", ever: true},
		{language: "typescript", text: "process.version.startsWith(\"v\")", ever: true},
		{language: "javascript", text: "process.version.startsWith('v16.')", explains: true},
		{language: "javascript", text: "Number(process.versions.node.split('.')[0])>=14", ever: true},
		{language: "javascript", text: "semver.gte(process.version,'12.0.0')", ever: true},
		{language: "java", text: "EnabledOnJre(JRE.JAVA_7)", runs: runs, ever: true},
		{language: "java", text: "EnabledForJreRange(max=JRE.JAVA_11)", runs: runs, explains: true},
		{language: "java", text: "DisabledForJreRange(min=JRE.JAVA_8)", ever: true},
		{language: "java", text: "EnabledForJreRange(min=JRE.JAVA_99)", runs: runs, ever: true},
		{language: "csharp", text: "Environment.Version.Major>=5", ever: true},
		{language: "go", text: "runtime.Version()>=\"go1.18\"", ever: true},
		{language: "go", text: "strings.HasPrefix(runtime.Version(),\"go\")", ever: true},
		{language: "go", text: "runtime.GOOS==\"windows\"", explains: true},
		{language: "go", text: "testing.Short()", explains: true},
		{language: "go", text: "!testing.Short()", ever: true},
		{language: "go", text: "runtime.GOOS!=\"plan9\"", ever: true},
		{language: "go", text: "runtime.GOOS==\"plan9\"", explains: true},
		{language: "go", text: "os.Getenv(\"LINUX_TESTS\")==\"\""},
		{language: "go", text: "os.Getenv(\"DATABASE\")==\"\"", used: true, explains: true},
		{language: "go", text: "os.Getenv(\"CI\")!=\"\"", used: true},
		{language: "go", text: "slow", used: true},
		{language: "go", text: "!go1.27", runs: runs, explains: true},
		{language: "go", text: "!go1.18", runs: runs, ever: true},
		{language: "go", text: "go1.22", runs: runs, explains: true},
		{language: "java", text: "EnabledOnOs(OS.SOLARIS)", runs: runs, ever: true},
		{language: "java", text: "EnabledOnOs(OS.LINUX)", runs: runs, explains: true},
		{language: "python", text: "importorskip(\"leave_fastdays\")"},
		{language: "python", text: "importorskip(\"numpy\")", used: true, explains: true},
		{language: "python", text: "os.name==\"nt\"or True", ever: true},
	} {
		c := platform.Condition{Language: test.language, Text: test.text, RunsWhen: test.runs, Used: test.used}
		want := test.explains
		if c.Explains() != want || c.Always() != test.ever {
			t.Errorf("%s %s: explains %t, always %t", test.language, test.text, c.Explains(), c.Always())
		}
	}
}
