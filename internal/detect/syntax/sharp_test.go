package syntax_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/perdure/perdure/internal/detect/syntax"
)

// Preprocessor lines are not code, even between attributes and a method.
func TestPreprocessor(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       []string
	}{
		{"between an attribute and its method", `
public class ATests {
  [Test]
#if WASM
  [Category ("MultiThreaded")]
#endif
  public void A() { Assert.AreEqual(1, F()); }
  [Test]
#pragma warning disable 618 // it's the old one that is tested
  public void B() { Assert.AreEqual(1, F()); }
}`, []string{"7 ATests > A asserts=1", "10 ATests > B asserts=1"}},
		{"skipped in some builds", `
public class ATests {
#if WASM || AOT
  [Ignore("no threads")]
#endif
  [Test] public void A() { Assert.AreEqual(1, F()); }
  [Test]
# if true
  [Ignore("later")]
# endif
  public void B() { Assert.AreEqual(1, F()); }
}`, []string{"6 ATests > A asserts=1 skipped sometimes", "11 ATests > B asserts=1 skipped"}},
		{"there in some builds", `
#if NET
#region all of them
public class ATests {
  [Test] public void A() { Assert.AreEqual(1, F()); }
#if false
  [Test] public void B() { Assert.AreEqual(1, F()); }
#else
  [Test] public void C() { Assert.AreEqual(1, F()); }
#endif
}
#endregion
#endif
public class BTests { [Test] public void D() { Assert.AreEqual(1, F()); } }
`, []string{"5 ATests > A asserts=1 skipped sometimes", "9 ATests > C asserts=1 skipped sometimes",
			"14 BTests > D asserts=1"}},
		{"a block that opens twice", `
#if NET
public class ATests : Base {
#elif WASM
public class ATests : Other {
#else
public class ATests {
#endif
  [Test] public void A() { Assert.AreEqual(1, F()); }
}
[Test] public void B() { Assert.AreEqual(1, F()); }
`, []string{"9 ATests > A asserts=1", "11 B asserts=1"}},
		{"without an end", "#if false\n[Test] public void A() { Assert.AreEqual(1, F()); }\n#if\n#else\n",
			[]string{"2 A asserts=1"}},
	}
	for _, test := range tests {
		if diff := cmp.Diff(test.want, summary(read(t, "A.Tests/ATests.cs", test.text))); diff != "" {
			t.Errorf("%s: tests differ (-want +got):\n%s", test.name, diff)
		}
	}
}

// The less common forms of tests, assertions and skips in C#.
func TestSharpForms(t *testing.T) {
	t.Parallel()
	const text = "\ufeff" + `[TestFixtureAttribute]
public class ATests {
  [NUnit.Framework.TestAttribute] public void A() { CollectionAssert.AreEqual(a, F()); }
  [RetryFact(3)] public void B() { Assert.True(F()); }
  [UnityTest] public IEnumerator C() { yield return null; Assert.IsTrue(F()); }
  [Test] public void D() { if (!OnUnix) Assert.Ignore("needs Unix"); Assert.IsTrue(F()); }
  [SkippableFact] public void E() { Skip.IfNot(OnUnix); Assert.True(F()); }
  [Fact] public void G() { Assert.Skip("later"); }
  [Test, IgnoreAttribute("later")] public void H() { StringAssert.Contains("a", F()); }
}
`
	want := []string{
		"3 ATests > A asserts=1", "4 ATests > B asserts=1", "5 ATests > C asserts=1",
		"6 ATests > D asserts=1 skipped sometimes",
		"7 ATests > E asserts=1 skipped sometimes", "8 ATests > G skipped", "9 ATests > H asserts=1 skipped",
	}
	if diff := cmp.Diff(want, summary(read(t, "A.Tests/ATests.cs", text))); diff != "" {
		t.Errorf("tests differ (-want +got):\n%s", diff)
	}
}

// Strings of C# may hold quotes, line ends and code.
func TestSharpStrings(t *testing.T) {
	t.Parallel()
	tests := []string{`@"""a"" b"`, "@\"a\nb\\\"", `$"{d["(\"}"]} {{"`, `$@"{{{d}""` + "\n\"", `""""a """ b""""`,
		`$$"""a "{{b}}" """`, `@""`, `""`, `$"{a}}}"`}
	for _, test := range tests {
		want := func(c rune) rune {
			if c == '\n' {
				return c
			}
			return ' '
		}
		last := len(test) - 1
		if got, want := syntax.Blank(syntax.LanguageOf("a.cs"), test+" + c", false), test[:1]+
			strings.Map(want, test[1:last])+test[last:]+" + c"; got != want {
			t.Errorf("%s\n got %q\nwant %q", test, got, want)
		}
	}
	const open = `"""a b` // without an end
	if got := syntax.Blank(syntax.LanguageOf("a.cs"), open, false); got != open {
		t.Errorf("%s became %q", open, got)
	}
}

// The names of functions and types are read, whatever follows their parameters.
func TestSharpFunctions(t *testing.T) {
	t.Parallel()
	m := read(t, "A.cs", `
record struct Pair(int A) { public int Sum() => Added<int, List<int[]>>(A); }
class A : B {
  A(int a) : base(a) { if (a < 0) throw new E(); }
  public A(string s) : this(int.Parse(s)) => Log(s);
  string F(object o) {
    if (G(o) is { Length: 1 }) return H(o) switch { 1 => "a", _ => I<B>(o) };
    if (o.X < 1 && o.Y > (2)) return null;
    return o with { X = 1 };
  }
  void C<D>.J(int a) { if (a < 0) throw new E(); x = new A.B(1) { X = 2 }; }
  public int P { [X] get { return p; } private set => p = value > 0 ? value : throw new E(); }
  int Q { get; set { if (value < 0) throw new E(); q = value; } } = 1;
}
`)
	var got []string
	for _, f := range m.Funcs {
		got = append(got, f.Name)
	}
	if diff := cmp.Diff([]string{"Pair", "Pair > Sum", "A", "A > A", "A > A", "A > F", "A > J", "A > P get", "A > P set",
		"A > Q set"}, got); diff != "" {
		t.Errorf("functions differ (-want +got):\n%s", diff)
	}
	calls := m.Funcs[5].Calls
	for name, want := range map[string]bool{"I": true, "G": true, "H": true, "X": false} {
		if calls.Has(syntax.Hash(name)) != want {
			t.Errorf("F calls %s: %v", name, !want)
		}
	}
	if !m.Funcs[1].Calls.Has(syntax.Hash("Added")) {
		t.Error("Sum does not call Added")
	}
	for _, i := range []int{3, 6, 9} {
		if n := len(m.Funcs[i].Guards); n != 1 {
			t.Errorf("%s has %d guards", m.Funcs[i].Name, n)
		}
	}
}

// A throw in some builds only does not make a guard of the condition around it.
func TestGuardOfSomeBuilds(t *testing.T) {
	t.Parallel()
	m := read(t, "A.cs", `class A { void F() { if (a) {
#if NETCORE
    throw new NotImplementedException();
#else
    G();
#endif
} } }`)
	if f := m.Funcs[len(m.Funcs)-1]; len(f.Guards) != 0 {
		t.Errorf("%s has %d guards", f.Name, len(f.Guards))
	}
}
