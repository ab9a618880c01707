package thoughts_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/perdure/perdure/model/internal/thoughts"
)

func TestProgramsPrintFilesAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"User: two and two?\nAssistant:\n<think>\neasy\n</think>\n4\n",
		"src/prompt.go:12: <think>\nsrc/prompt.go:13: </think>\n",
		"1\t<root>\n2\t<reasoning>a</reasoning>\n3\t</root>\n",
		"The log ends with </think>\nand nothing follows\n",
	} {
		if answer, found := thoughts.Cut(text, thoughts.Printed); answer != text || found != "" {
			t.Errorf("%q became %q, thoughts %q", text, answer, found)
		}
	}
	if answer, _ := thoughts.Cut("Thinking...\nhm\n...done thinking.\n\n42\n", thoughts.Printed); answer != "42\n" {
		t.Errorf("the output of ollama became %q", answer)
	}
	if answer, _ := thoughts.Cut("hm, 17?\n</think>\n\n42\n", thoughts.Printed); answer != "42\n" {
		t.Errorf("the output of a template became %q", answer)
	}
}

// parts are what replies consist of in the tests of properties.
func parts() []string {
	return []string{"<think>", "</think>", "<Thinking>", "</thinking>", "[THINK]", "[/THINK]",
		"◁think▷", "◁/think▷",
		"<|channel|>", "analysis", "<|message|>", "final", "<|end|>", "assistantfinal", "```", "```repl", "~~~", "`",
		"\n", "\n\n", " ",
		"a", "answer.", "is", "and", "FINAL(1)", "<root>", "</root>", "- ", "> ", "{", "}", "\"", "\x00", "é",
		"Thinking...\n", "\n...done thinking.", "<answer>", "</answer>", "<analysis>", "</analysis>",
		"<|begin_of_solution|>", "<|end_of_solution|>", "```thinking\n", "<scratchpad>", "</scratchpad>"}
}

// What was cut once is not cut again, and nothing is made up.
func TestCutIsStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts()), 0, 30).Draw(t, "parts"), "")
		for _, style := range []thoughts.Style{thoughts.Generated, thoughts.Printed} {
			answer, found := thoughts.Cut(text, style)
			if found == "" && answer != text {
				t.Fatalf("%q became %q without thoughts", text, answer)
			}
			if again, more := thoughts.Cut(answer, style); again != answer || more != "" {
				t.Fatalf("%q became %q, and then %q, thoughts %q", text, answer, again, more)
			}
		}
	})
}

func FuzzCut(f *testing.F) {
	for _, seed := range []string{"<think>a</think>b",
		"a\n</think>\nb", "<|channel|>analysis<|message|>a<|end|>", "[THINK]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, style := range []thoughts.Style{thoughts.Generated, thoughts.Printed} {
			answer, found := thoughts.Cut(text, style)
			if len(answer) > len(text)+1 || found == "" && answer != text {
				t.Fatalf("%q became %q, thoughts %q", text, answer, found)
			}
		}
		var passed strings.Builder
		s := thoughts.Stream{Pass: func(part string) { passed.WriteString(part) }}
		for i := 0; i < len(text); i += 3 {
			s.Add(text[i:min(i+3, len(text))])
		}
		s.Close()
		if passed.Len() > len(text) {
			t.Fatalf("%q was passed on as %q", text, passed.String())
		}
	})
}

// A reply of 10 MB is cut in a time that does not grow with its square.
func TestLongReplies(t *testing.T) {
	t.Parallel()
	size := 10 << 20
	for _, piece := range []string{"```a\n</think>\n", "<think>", "</think>\n", "<think>\n", "<", "[THINK",
		"a\n<think>x</think>\n",
		"```a\n<think>\n", "\n", "<|channel|>analysis<|message|>", "`</think>`", "<think> is ",
		"```thinking\na\n```\nb\n", "x\n```thinking\na\n", "<analysis>", "<analysis>a</analysis>", "<answer>",
		"<think>\n<answer>a\n</answer>\n", "</answer>", "<|begin_of_solution|>", "a.<think>"} {
		thoughts.Cut(strings.Repeat(piece, size/len(piece)), thoughts.Generated)
		size = 1 << 20 // the others are read in the same way
	}
	thoughts.Cut("a\n"+strings.Repeat("<think> is a mark\n", size/18)+"</think>\n", thoughts.Generated)
	s := thoughts.Stream{Pass: func(part string) { t.Errorf("%q was passed on", part) }}
	s.Add("<|channel|>analysis<|message|>")
	for range size / 8 {
		s.Add("thought ")
	}
	s.Close()
}

// A stream has the answer only, however the reply is divided.
func TestStreamHasNoThoughts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text, want string
		closed     bool
	}{
		{"<think>\nsecret\n</think>\nThe answer.\nIt is 42.", "The answer.\nIt is 42.", false},
		{"Plain text.\nTwo lines.", "Plain text.\nTwo lines.", false},
		{"secret\n</think>\n42", "42", true},
		{"[THINK]secret[/THINK]42", "42", false},
		{"<|channel|>analysis<|message|>secret<|end|><|start|>assistant<|channel|>final<|message|>42", "42", false},
		{"First.\n<thinking>secret</thinking>\nSecond.", "First.\n\nSecond.", false},
		{"<b>bold</b> and a < b", "<b>bold</b> and a < b", false},
		{"<thi", "<thi", false},
		{"<think>secret", "", false},
	} {
		for size := 1; size <= len(tt.text); size++ {
			var got strings.Builder
			s := thoughts.Stream{Pass: func(part string) { got.WriteString(part) }, Closed: tt.closed}
			for i := 0; i < len(tt.text); i += size {
				s.Add(tt.text[i:min(i+size, len(tt.text))])
			}
			s.Close()
			if strings.TrimSpace(got.String()) != tt.want {
				t.Errorf("%q in parts of %d bytes is passed on as %q", tt.text, size, got.String())
			}
		}
	}
}
