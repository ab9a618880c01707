package risk_test

import (
	"testing"

	"github.com/perdure/perdure/agent"
	"github.com/perdure/perdure/internal/toolguard/risk"
)

// TestCommandsOfTheUser: the user adds commands and tools to the class destroy_external, or allows
// one of the table.
func TestCommandsOfTheUser(t *testing.T) {
	t.Parallel()
	at := where()
	at.Commands = map[string]risk.Answer{"make db-wipe": risk.Block, "./scripts/nuke": risk.Gate,
		"docker push": risk.Allow, "mcp__ops__rollout": risk.Gate, "task ** prod": risk.Warn}
	for line, want := range map[string]risk.Answer{
		"make db-wipe":                    risk.Block,
		"make -j 4 db-wipe FORCE=1":       risk.Block,
		"sudo make db-wipe":               risk.Block,
		"bash -c 'cd x && make db-wipe'":  risk.Block,
		"scripts/nuke --all":              risk.Gate,
		"task deploy to prod":             risk.Warn,
		"docker push me/app":              risk.Allow,
		"docker volume rm x":              risk.Gate,
		"make db-migrate":                 risk.Allow,
		"make test":                       risk.Allow,
		"cat scripts/nuke":                risk.Allow,
		"task deploy staging":             risk.Allow,
		"echo make db-wipe":               risk.Allow,
		"npx prisma migrate reset && ls":  risk.Gate,
		"terraform destroy; make db-wipe": risk.Block,
	} {
		found := risk.Assess(&agent.ToolCall{Kind: agent.ToolExecute, Command: line}, at)
		if got := risk.Strictest(found); got != want {
			t.Errorf("%s: %s, want %s: %+v", line, got, want, found)
		}
	}
	for _, c := range []struct {
		tool, input string
		want        risk.Answer
	}{
		{"mcp__ops__rollout", `{"env":"prod"}`, risk.Gate},
		{"mcp__supabase__execute_sql", `{"query":"drop table users"}`, risk.Gate},
		{"mcp__postgres__query", `{"steps":[{"sql":"delete from users"}]}`, risk.Gate},
		{"mcp__neon__delete_project", `{"projectId":"p"}`, risk.Gate},
		{"mcp__supabase__reset_branch", `{"branch_id":"b"}`, risk.Gate},
		{"mcp__k8s__kubectl_delete", `{"kind":"pod"}`, risk.Gate},
		{"mcp__supabase__execute_sql", `{"query":"select 1"}`, risk.Allow},
		{"mcp__postgres__query", `{"sql":"delete from users where id = 1"}`, risk.Allow},
		{"mcp__neon__describe_project", `{"projectId":"p"}`, risk.Allow},
		{"mcp__board__delete", `{"id":"3"}`, risk.Allow},
		{"mcp__github__create_issue", `{"title":"Drop table users from the docs"}`, risk.Allow},
	} {
		call := agent.Describe("1", c.tool, []byte(c.input))
		if got := risk.Strictest(risk.Assess(&call, at)); got != c.want {
			t.Errorf("%s %s: %s, want %s", c.tool, c.input, got, c.want)
		}
	}
}
