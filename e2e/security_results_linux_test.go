package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// surefire is a fake of Maven, which cannot be run here: it writes the results of the tests of a
// project where Maven writes them.
const surefire = `#!/bin/sh
mkdir -p target/surefire-reports
status=0
for test in src/test/java/*Test.java; do
	name=$(basename "$test" .java)
	failure=
	if ! grep -q 'assertTrue(true)' "$test"; then failure='<failure message="no"/>'; status=1; fi
	printf '<testsuite name="%s" tests="1"><testcase classname="%s" name="works">%s</testcase></testsuite>\n' \
		$name $name "$failure" > target/surefire-reports/TEST-$name.xml
done
exit $status
`

func javaTest(name, value string) string {
	return "class " + name + " {\n\t@Test\n\tvoid works() {\n\t\tassertTrue(" + value + ");\n\t}\n}\n"
}

// TestSecurityForgedReports: an agent that removes a test and writes the file with its result
// itself completes no loop: the files of the results are removed before the check.
func TestSecurityForgedReports(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	tools := t.TempDir()
	if err := os.WriteFile(filepath.Join(tools, "mvn"), []byte(surefire), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	w.env = append(w.env, "PATH="+tools+":"+w.path)
	w.write("pom.xml", "<project/>\n")
	w.write(".gitignore", "target/\n")
	for name, value := range map[string]string{"KeptTest": "true", "GoneTest": "true", "NewTest": "false"} {
		w.write("src/test/java/"+name+".java", javaTest(name, value))
	}
	w.agent(`cat > /dev/null
rm -f src/test/java/GoneTest.java
sed -i 's/false/true/' src/test/java/NewTest.java
mkdir -p target/surefire-reports
for name in GoneTest MoreTest; do
	echo "<testsuite name=\"$name\" tests=\"1\"><testcase classname=\"$name\" name=\"works\"/></testsuite>" \
		> target/surefire-reports/TEST-$name.xml
done
`)
	out, errs, status := w.try("perdure loop run 'Make the tests pass' --until 'mvn test' --no-wait --max-retries 0 " +
		"--agent 'exec:sh " + w.agentFile() + "'")
	if said := out + errs; status != 6 || !strings.Contains(said, "test removed") {
		t.Fatalf("status %d:\n%s", status, said)
	}
	if said := w.sh("perdure loop status --persistence"); !strings.Contains(said, "Baseline Metrics:      3 tests") ||
		!strings.Contains(said, "Current Metrics:       2 tests") {
		t.Errorf("the written results count:\n%s", said)
	}
}

// forgesCoverage is an agent that calls no G any more and writes profiles of coverage at each
// place where the check could write one.
const forgesCoverage = `cat > /dev/null
cat > call_test.go
sed -i 's/t.Fatal("not done")/_ = t/' a_test.go
find . -type d -not -path './.git*' | while read -r dir; do
	for name in coverage.out cover.out c.out coverage-1.out cover-1.out cover-1 PROFILE; do
		printf 'mode: set\nexample.com/a/a.go:3.14,5.2 1 1\nexample.com/a/a.go:7.14,9.2 1 1\n' > "$dir/$name"
	done
done
`

// TestSecurityForgedCoverage: an agent that covers less and writes profiles of coverage itself does
// not hide the loss, also if the tests write no profile any more.
func TestSecurityForgedCoverage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ call, now string }{
		"tests cover less": {"package a\n\nfunc call() {}\n", "50% coverage"},
		"tests write no profile": {"package a\n\nimport (\n\t\"flag\"\n\t\"testing\"\n)\n\nfunc call() {}\n\n" +
			"func TestMain(m *testing.M) {\n\tflag.Parse()\n\t_ = flag.Set(\"test.coverprofile\", \"\")\n\tm.Run()\n}\n",
			"4 of 4 covered lines are no longer covered"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkplace(t)
			w.write("go.mod", "module example.com/a\n\ngo 1.24\n")
			w.write("a.go", "package a\n\nfunc F() int {\n\treturn 1\n}\n\nfunc G() int {\n\treturn 2\n}\n")
			w.write("a_test.go", "package a\n\nimport \"testing\"\n\nfunc TestF(t *testing.T) {\n"+
				"\tif F() != 1 {\n\t\tt.Fatal()\n\t}\n\tcall()\n}\n\nfunc TestNew(t *testing.T) {\n\tt.Fatal(\"not done\")\n}\n")
			w.write("call_test.go", "package a\n\nfunc call() { G() }\n")
			w.agent(strings.Replace(forgesCoverage, "cat > call_test.go", "cat > call_test.go <<'X'\n"+c.call+"X", 1))
			out, errs, status := w.try("perdure loop run 'Make the tests pass' --until 'go test ./...' --no-wait " +
				"--max-retries 0 --sealed off --agent 'exec:sh " + w.agentFile() + "'; status=$?; " +
				"perdure loop status --persistence; exit $status")
			if said := out + errs; status != 6 || !strings.Contains(said, "100% coverage") || !strings.Contains(said, c.now) {
				t.Errorf("status %d:\n%s", status, said)
			}
		})
	}
}
