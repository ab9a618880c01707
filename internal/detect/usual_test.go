package detect_test

import "testing"

// TestSkippedWhereTestsRun compares skips that exclude the platforms of CI with skips of
// other platforms: the first block, the second warn.
func TestSkippedWhereTestsRun(t *testing.T) {
	t.Parallel()
	const act, warn = "act skip-conditional", "warn skip-conditional"
	checkNotRun(t, "a_test.go", notRunGo, []notRun{
		{"not on Windows", "if got := f(1)", "if runtime.GOOS == \"windows\" {\n\t\tt.Skip(\"clock\")\n\t}\n" +
			"\tif got := f(1)", warn},
		{"on Windows only", "if got := f(1)", "if runtime.GOOS != \"windows\" {\n\t\tt.Skip(\"clock\")\n\t}\n" +
			"\tif got := f(1)", act},
		{"on Windows only, by a name", "if got := f(1)",
			"there := runtime.GOOS == \"windows\"\n\tif !there {\n\t\tt.Skip(\"clock\")\n\t}\n\tif got := f(1)", act},
		{"not on Linux", "if got := f(1)", "switch runtime.GOOS {\n\tcase \"linux\", \"darwin\":\n\t\tt.Skip(\"clock\")\n" +
			"\t}\n\tif got := f(1)", act},
		{"on Linux only", "if got := f(1)", "if runtime.GOOS != \"linux\" {\n\t\tt.Skip(\"clock\")\n\t}\n\tif got := f(1)",
			warn},
		{"as root", "if got := f(1)", "if runtime.GOOS == \"linux\" && os.Getuid() == 0 {\n\t\tt.Skip(\"clock\")\n\t}\n" +
			"\tif got := f(1)", warn},
		{"not on amd64", "if got := f(1)", "if runtime.GOARCH == \"amd64\" {\n\t\tt.Skip(\"rounding\")\n\t}\n" +
			"\tif got := f(1)", act},
		{"in CI", "func TestA(t *testing.T) {\n", "func TestA(t *testing.T) {\n\tif os.Getenv(\"GITLAB_CI\") != \"\" {\n" +
			"\t\tt.Skip(\"clock\")\n\t}\n", act},
		{"a process that tests start", "func TestA", "func TestMain(m *testing.M) {\n\tif os.Getenv(\"ROLE\") != \"\" {\n" +
			"\t\tserve()\n\t\treturn\n\t}\n\tos.Exit(m.Run())\n}\n\nfunc TestA", ""},
		{"built on Windows only", "package a", "//go:build windows\n\npackage a", act},
		{"not built on Windows", "package a", "//go:build !windows\n\npackage a", warn},
	})
	const drive = "package a\n\nfunc TestWindowsDrive(t *testing.T) {\n\tif got := f(1); got != 20 {\n\t\tt.Fatal(got)\n" +
		"\t}\n}\n"
	checkNotRun(t, "a_test.go", drive, []notRun{{"of Windows", "if got", "if runtime.GOOS != \"windows\" {\n" +
		"\t\tt.Skip(\"clock\")\n\t}\n\tif got", warn}})
	wantPatterns(t, "a file of Linux",
		changes(map[string]string{"a_test.go": drive}, map[string]string{"a_linux_test.go": drive}), "")
	checkNotRun(t, "a.test.js", notRunScript, []notRun{
		{"on Windows only", "it(\"adds\", () => {", "it(\"adds\", function () {\n    if (process.platform !== 'win32') " +
			"this.skip();", act},
		{"not on Windows", "it(\"adds\", () => {", "it(\"adds\", function () {\n    if (process.platform === 'win32') " +
			"this.skip();", warn},
		{"skipIf", "it(\"adds\"", "it.skipIf(process.platform === 'linux')(\"adds\"", act},
		{"runIf", "it(\"adds\"", "it.runIf(process.platform === 'linux')(\"adds\"", warn},
		{"one of two", "it(\"adds\"", "(process.platform === 'win32' ? it : it.skip)(\"adds\"", act},
		{"the other of two", "it(\"adds\"", "(process.platform === 'win32' ? it.skip : it)(\"adds\"", warn},
		{"an option", "it(\"adds\", ()", "it(\"adds\", { skip: os.platform() !== 'darwin' }, ()", act},
	})
	checkNotRun(t, "tests/test_a.py", notRunPython, []notRun{
		{"on Windows only", "def test_b", "@pytest.mark.skipif(sys.platform != \"win32\", reason=\"paths\")\ndef test_b",
			act},
		{"not on Windows", "def test_b", "@pytest.mark.skipif(sys.platform == \"win32\", reason=\"paths\")\ndef test_b",
			warn},
		{"one of a list", "def test_b", "@pytest.mark.skipif(sys.platform not in (\"win32\", \"cygwin\"), " +
			"reason=\"paths\")\ndef test_b", act},
		{"skipUnless", "def test_b", "@unittest.skipUnless(sys.platform.startswith(\"linux\"), \"paths\")\ndef test_b", warn},
		{"skipUnless, Windows", "def test_b", "@unittest.skipUnless(os.name == \"nt\", \"paths\")\ndef test_b", act},
		{"by the module", "def test_b", "if sys.platform != \"win32\":\n" +
			"    pytest.skip(\"paths\", allow_module_level=True)\n\n\ndef test_b", act + ", " + act},
		{"in CI, by the module", "def test_b", "if os.environ.get(\"CI\"):\n    pytest.skip(\"slow\", " +
			"allow_module_level=True)\n\n\ndef test_b", act + ", " + act},
		{"declared on Windows", "def test_b():\n    assert numpy.sum(g(2)) == 50\n",
			"if sys.platform == \"win32\":\n\n    def test_b():\n        assert numpy.sum(g(2)) == 50\n", act},
		{"declared elsewhere", "def test_b():\n    assert numpy.sum(g(2)) == 50\n",
			"if sys.platform != \"win32\":\n\n    def test_b():\n        assert numpy.sum(g(2)) == 50\n", warn},
		{"a fixture", "def test_b", "@pytest.fixture\ndef test_b", "act test-removed"},
	})
	checkNotRun(t, "src/test/ATest.java", notRunJava, []notRun{
		{"enabled on Windows", "    @Test\n    void adds",
			"    @Test\n    @EnabledOnOs({OS.WINDOWS, OS.MAC})\n    void adds", act},
		{"enabled on Linux", "    @Test\n    void adds", "    @Test\n    @EnabledOnOs(OS.LINUX)\n    void adds", warn},
		{"disabled on Linux", "    @Test\n    void adds",
			"    @Test\n    @DisabledOnOs(value = OS.LINUX, disabledReason = \"differs from windows\")\n    void adds", act},
		{"disabled on Windows", "    @Test\n    void adds", "    @Test\n    @DisabledOnOs(OS.WINDOWS)\n    void adds", warn},
		{"assumed", "void adds() {\n", "void adds() {\n" +
			"        assumeTrue(System.getProperty(\"os.name\").startsWith(\"Windows\"));\n", act},
	})
	checkNotRun(t, "A.Tests/ATests.cs", "public class ATests {\n    [Fact]\n    public void A() {\n"+
		"        Assert.Equal(20, F(1));\n    }\n}\n", []notRun{
		{"left at once", "{\n        Assert", "{\n        if (!OperatingSystem.IsWindows()) return;\n        Assert", act},
		{"left at once on Windows", "{\n        Assert",
			"{\n        if (OperatingSystem.IsWindows()) return;\n        Assert", warn},
		{"an attribute", "[Fact]", "[Fact, Platform(\"Win\")]", act},
		{"an attribute that excludes", "[Fact]", "[Fact, Platform(Exclude = \"Win\")]", warn},
		{"an attribute of one's own", "[Fact]", "[WindowsOnlyFact]", act},
		{"one of Linux", "[Fact]", "[LinuxFact]", warn},
		{"when asked for", "[Fact]", "[Fact(Explicit = true)]", "act skip-added"},
		{"not public", "public class", "internal class", "act test-removed"},
	})
	const rust = "#[test]\nfn adds() {\n    assert_eq!(f(1), 20);\n}\n"
	checkNotRun(t, "tests/a.rs", rust, []notRun{
		{"on Windows", "#[test]", "#[test]\n#[cfg(windows)]", act},
		{"not on Windows", "#[test]", "#[test]\n#[cfg(not(windows))]", warn},
		{"on two", "#[test]", "#[test]\n#[cfg(any(windows, target_os = \"macos\"))]", act},
		{"ignored on Linux", "#[test]", "#[test]\n#[cfg_attr(target_os = \"linux\", ignore)]", act},
		{"ignored by Miri", "#[test]", "#[test]\n#[cfg_attr(miri, ignore)]", warn},
		{"left on Unix", "{\n    assert", "{\n    if cfg!(unix) {\n        return;\n    }\n    assert", act},
	})
	checkNotRun(t, "test/a_test.rb", notRunRuby, []notRun{
		{"on Windows", "def test_a\n", "def test_a\n    skip \"clock\" unless Gem.win_platform?\n", act},
		{"not on Windows", "def test_a\n", "def test_a\n    skip \"clock\" if Gem.win_platform?\n", warn},
		{"not on Linux", "def test_a\n", "def test_a\n    skip if RUBY_PLATFORM =~ /linux/\n", act},
		{"declared on Windows", "  def test_a\n    assert_equal 20, @a.f(1)\n  end\n",
			"  if Gem.win_platform?\n    def test_a\n      assert_equal 20, @a.f(1)\n    end\n  end\n", act},
	})
	checkNotRun(t, "spec/a_spec.rb", notRunSpec, []notRun{
		{"on Windows", "\"adds\" do", "\"adds\", if: RUBY_PLATFORM.match?(/mingw/) do", act},
		{"not on Windows", "\"adds\" do", "\"adds\", unless: RUBY_PLATFORM.match?(/mingw/) do", warn},
	})
	checkNotRun(t, "tests/ATest.php", notRunPHP, []notRun{
		{"on Windows", "testA(): void\n    {\n", "testA(): void\n    {\n        if (PHP_OS_FAMILY !== 'Windows') {\n" +
			"            $this->markTestSkipped();\n        }\n", act},
		{"not on Windows", "testA(): void\n    {\n", "testA(): void\n    {\n        if (PHP_OS_FAMILY === 'Windows') {\n" +
			"            $this->markTestSkipped();\n        }\n", warn},
		{"by the separator", "testA(): void\n    {\n", "testA(): void\n    {\n        if (DIRECTORY_SEPARATOR === '/') {\n" +
			"            $this->markTestSkipped();\n        }\n", act},
		{"an attribute", "    public function testA",
			"    #[RequiresOperatingSystemFamily('Windows')]\n    public function testA", act},
		{"an attribute for Linux", "    public function testA",
			"    #[RequiresOperatingSystemFamily('Linux')]\n    public function testA", warn},
	})
	const pest = "<?php\nit('adds', function () {\n    expect(f(1))->toBe(20);\n});\n"
	checkNotRun(t, "tests/BTest.php", pest, []notRun{
		{"not on Linux", "});", "})->skipOnLinux();", act}, {"not on Windows", "});", "})->skipOnWindows();", warn},
		{"on Windows", "});", "})->onlyOnWindows();", act}, {"in CI", "});", "})->skipOnCi();", act},
	})
}
