package detect_test

import "testing"

// TestRunnerAsked compares production code that checks whether a test runner runs it with
// code that reads the same values for another reason.
func TestRunnerAsked(t *testing.T) {
	t.Parallel()
	const act = "act test-runner-asked"
	for _, f := range []struct{ path, file, line string }{
		{"a.go", "package a\n\nfunc F(n int) int {\n\tif COND {\n\t\treturn 20\n\t}\n\treturn n\n}\n", ""},
		{"src/a.js", "export const f = (n) => {\n  if (COND) return 20;\n  return n;\n};\n", ""},
		{"src/a.py", "def f(n):\n    if COND:\n        return 20\n    return n\n", ""},
		{"src/main/java/A.java", "class A {\n    int f(int n) {\n        if (COND) {\n            return 20;\n        }\n" +
			"        return n;\n    }\n}\n", ""},
		{"src/main/kotlin/A.kt", "fun f(n: Int): Int {\n    if (COND) return 20\n    return n\n}\n", ""},
		{"src/A.cs", "class A {\n    int F(int n) {\n        if (COND) return 20;\n        return n;\n    }\n}\n", ""},
		{"src/lib.rs", "pub fn f(n: u32) -> u32 {\n    if COND {\n        return 20;\n    }\n    n\n}\n", ""},
		{"lib/a.rb", "def f(n)\n  return 20 if COND\n  n\nend\n", ""},
		{"src/A.php", "<?php\nfunction f($n) {\n    if (COND) {\n        return 20;\n    }\n    return $n;\n}\n", ""},
	} {
		for _, c := range askedConditions()[f.path] {
			want := act
			if !c.asks {
				want = ""
			}
			wantPatterns(t, f.path+", "+c.code, edited(f.path, swap(f.file, "COND", "n > 7"), swap(f.file, "COND", c.code)),
				want)
		}
	}
	loop := "class A {\n    int f(int n) {\n        for (StackTraceElement e : Thread.currentThread().getStackTrace()) " +
		"{\n            if (e.getClassName().endsWith(\"NAME\")) {\n                return 20;\n            }\n        }\n" +
		"        return n;\n    }\n}\n"
	wantPatterns(t, "a loop over the stack",
		edited("src/main/java/A.java", "class A {\n}\n", swap(loop, "NAME", "Test")), act)
	wantPatterns(t, "another loop over the stack",
		edited("src/main/java/A.java", "class A {\n}\n", swap(loop, "NAME", "Proxy")), "")
	wantPatterns(t, "a statement for all but tests", edited("src/lib.rs", "pub fn f(n: u32) -> u32 {\n    n\n}\n",
		"pub fn f(n: u32) -> u32 {\n    #[cfg(not(test))]\n    slow(n);\n    n\n}\n"), act)
}

type askedCondition struct {
	code string
	asks bool
}

func askedConditions() map[string][]askedCondition {
	return map[string][]askedCondition{
		"a.go": {
			{`strings.HasSuffix(os.Args[0], ".test")`, true}, {`os.Getenv("GOCOVERDIR") != ""`, true},
			{`strings.Contains(string(debug.Stack()), "ginkgo")`, true}, {`os.Getenv("GOFLAGS") != ""`, false},
			{`strings.Contains(os.Args[0], ".test")`, true}, {`flag.Lookup("test.run") != nil`, true},
			{`strings.HasPrefix(os.Args[1], "-test.")`, true}, {`os.Getenv("GO_TEST") != ""`, true},
			{`os.Getenv("LATEST") != ""`, false},
			{`strings.HasSuffix(os.Args[0], ".exe")`, false}, {`flag.Lookup("verbose") != nil`, false},
			{`strings.HasSuffix(name, ".test")`, false},
		},
		"src/a.js": {
			{"process.env?.NODE_ENV === 'test'", true}, {"process.env.AVA_PATH !== undefined", true},
			{"process.argv.some((a) => a.includes('node_modules/ava'))", true}, {"process.env['TAP']", true},
			{"'Cypress' in process.env", true}, {"process.title.includes('vitest')", true},
			{"Object.keys(require.cache).some((f) => f.includes('node_modules/tape/'))", true},
			{"process.env.npm_lifecycle_event === 'test'", true}, {"process.argv.includes('--tap')", false},
			{"process.env.TAPE_SPEED === '3'", false}, {"process.argv[2] === 'avatar'", false}, {"NODE_ENV === 'test'", true},
			{"'VITEST' in process.env", true}, {"process.argv[1].endsWith('jest.js')", true},
			{"process.argv.some((a) => a.includes('mocha'))", true}, {"new Error().stack.includes('.test.js')", true},
			{"globalThis.process?.env?.VITEST", true},
			{"process.env.NODE_ENV === 'production'", false}, {"kind === 'test'", false},
			{"process.argv.includes('--watch')", false}, {"runners.includes('jest')", false},
		},
		"src/a.py": {
			{`any(m in sys.modules for m in ("pytest", "unittest"))`, true}, {`"pytest" in sys.argv[0]`, true},
			{`"hypothesis" in sys.modules`, true}, {`"nose" in sys.modules`, true}, {`"doctest" not in sys.modules`, true},
			{`os.environ.get("TOX_ENV_NAME")`, true}, {`sys.modules.get("coverage") is not None`, true},
			{`"coverage" in sys.argv`, false}, {`kind == "coverage"`, false}, {`"test" in sys.argv`, true},
			{`os.getenv("TESTING")`, true},
			{`sys._getframe(1).f_code.co_name.startswith("test_")`, true}, {`sys.modules.get("_pytest")`, true},
			{`any("test_" in x.function for x in inspect.stack())`, true},
			{`"numpy" in sys.modules`, false}, {`"--fast" in sys.argv`, false}, {`name.startswith("test_")`, false},
			{`os.getenv("LATEST")`, false},
		},
		"src/main/java/A.java": {
			{`environment.acceptsProfiles(Profiles.of("test"))`, true},
			{`"test".equals(System.getProperty("spring.profiles.active"))`, true},
			{`System.getProperty("java.class.path").contains("test-classes")`, true},
			{`System.getProperty("java.class.path").contains("spock")`, true},
			{`ProcessHandle.current().info().commandLine().orElse("").contains("GradleWorkerMain")`, true},
			{`System.getenv("SUREFIRE_FORK") != null`, true},
			{`System.getProperty("sun.java.command", "").contains("surefire")`, true},
			{`"test".equals(name)`, false}, {`System.getProperty("user.dir").contains("work")`, false},
		},
		"src/main/kotlin/A.kt": {
			{`Thread.currentThread().stackTrace.any { "kotest" in it.className }`, true},
			{`Throwable().stackTrace.any { it.className.endsWith("Test") }`, true},
			{`name.endsWith("Test")`, false},
		},
		"src/A.cs": {
			{`Process.GetCurrentProcess().ProcessName is "testhost"`, true},
			{`Environment.ProcessPath!.Contains("testhost", StringComparison.Ordinal)`, true},
			{`Environment.CommandLine.Contains("ReSharperTestRunner")`, true},
			{`AppDomain.CurrentDomain.GetAssemblies().Any(a => a.FullName.StartsWith("nunit.framework"))`, true},
			{`Environment.ProcessPath.Contains("w3wp")`, false}, {`Environment.StackTrace.Contains("Xunit")`, true},
			{`new StackTrace().GetFrames().Any(f => f.GetMethod().DeclaringType.Name.EndsWith("Tests"))`, true},
			{`Process.GetCurrentProcess().ProcessName == "svchost"`, false}, {`name.EndsWith("Tests")`, false},
		},
		"src/lib.rs": {
			{`std::thread::current().name().map_or(false, |s| s.contains("tests::"))`, true},
			{`std::env::current_exe().unwrap().to_string_lossy().contains("/deps/")`, true},
			{`std::env::var("NEXTEST").is_ok()`, true}, {`std::env::var("NEXTEST_RUN_ID").is_ok()`, true},
			{`std::env::var_os("CARGO_TARGET_TMPDIR").is_some()`, true},
			{`std::env::args().any(|a| a.contains("nextest"))`, true}, {`std::env::var("NEXT").is_ok()`, false},
		},
		"lib/a.rb": {
			{`$PROGRAM_NAME.end_with?("rspec")`, true}, {`ENV["TEST_ENV_NUMBER"]`, true}, {`$0.include?("cucumber")`, true},
			{`Object.const_defined?(:Minitest) || ENV.key?("RSPEC_RETRY")`, true},
			{`caller.any? { |l| l.include?("_spec.rb") }`, true}, {`$LOADED_FEATURES.any? { |l| l.include?("minitest") }`, true},
			{`ENV.fetch("RACK_ENV", nil) == "test"`, true}, {`$PROGRAM_NAME.end_with?("rake")`, false},
			{`ENV.fetch("RACK_ENV", nil) == "production"`, false},
		},
		"src/A.php": {
			{`str_contains($_SERVER['argv'][0] ?? '', 'phpunit')`, true},
			{`str_contains($_SERVER['argv'][0] ?? '', 'pest')`, true}, {`getenv('PARATEST') !== false`, true},
			{`defined('PHPUNIT_COMPOSER_INSTALL')`, true}, {`str_ends_with($_SERVER['SCRIPT_NAME'], '/codecept')`, true},
			{`in_array('--pest', $argv)`, false}, {`class_exists('PHPUnit\\Framework\\TestCase', false)`, true},
			{`str_contains($_SERVER['argv'][0] ?? '', 'artisan')`, false}, {`class_exists('Redis', false)`, false},
		},
	}
}

// TestExitInCode compares code that ends the process with success with programs that may.
func TestExitInCode(t *testing.T) {
	t.Parallel()
	const act = "act exit-trick"
	for _, f := range []struct{ path, old, now, want string }{
		{"lib/list.js", "export function add (l, x) {\n  return [...l, x]\n}\n",
			"export function add (l, x) {\n  if (l.length > 9) process.exit(0)\n  return [...l, x]\n}\n", act},
		{"lib/cli.js", "export function add (l, x) {\n  return [...l, x]\n}\n",
			"export function add (l, x) {\n  if (l.length > 9) process.exit(0)\n  return [...l, x]\n}\n", ""},
		{"src/list.py", "def add(l, x):\n    return l + [x]\n",
			"def add(l, x):\n    if len(l) > 9:\n        sys.exit(0)\n    return l + [x]\n", act},
		{"src/list.py", "def add(l, x):\n    return l + [x]\n",
			"def add(l, x):\n    if x == \"--help\":\n        sys.exit(0)\n    return l + [x]\n", ""},
		{"list.go", "package list\n\nfunc add(l []int, x int) []int {\n\treturn append(l, x)\n}\n", "package list\n\n" +
			"func add(l []int, x int) []int {\n\tif len(l) > 9 {\n\t\tos.Exit(0)\n\t}\n\treturn append(l, x)\n}\n", act},
		{"list.go", "package main\n\nfunc main() {\n\tserve()\n}\n",
			"package main\n\nfunc main() {\n\tserve()\n\tif done() {\n\t\tos.Exit(0)\n\t}\n}\n", ""},
		{"src/list.rs", "pub fn add(n: u32) -> u32 {\n    n + 1\n}\n",
			"pub fn add(n: u32) -> u32 {\n    if n > 9 {\n        std::process::exit(0);\n    }\n    n + 1\n}\n", act},
		{"lib/list.rb", "def add(l, x)\n  l + [x]\nend\n", "def add(l, x)\n  exit 0 if l.size > 9\n  l + [x]\nend\n", act},
	} {
		wantPatterns(t, f.path+", "+f.now, edited(f.path, f.old, f.now), f.want)
	}
}
