package e2e

import (
	"strings"
	"testing"
)

// TestLoopNamesMissingVariables: a check that fails for want of a variable is explained: the
// baseline, a gate and the end name those that its output names, without their values.
func TestLoopNamesMissingVariables(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.write("check.sh", `if [ "$SERVICE_HOST" ]; then echo "ok 1 - a"; else echo "# SERVICE_HOST is not set"
echo "not ok 1 - a"; bad=1; fi; echo 1..1; exit ${bad:-0}
`)
	w.write("agent.sh", "cat > ../told; echo $$ > work")
	env := []string{"SERVICE_HOST=hunter2", "OTHER_URL=hunter2"}
	const run = "perdure loop run x --until 'sh check.sh' --agent 'exec:sh agent.sh' --no-wait "
	const hint = "the output of the check names variables that checks do not get: SERVICE_HOST; " +
		"`--env SERVICE_HOST` passes them"
	out, errs, status := w.try(run+"--max-iterations 1", env...)
	wantSaid(t, errs, status, 1, "baseline: "+hint)
	wantSaid(t, out, status, 1, "after 1 iteration, which is the limit; "+hint)
	out, errs, status = w.try("perdure loop resume --no-wait --max-iterations 2 --env SERVICE_HOST", env...)
	wantSaid(t, out+errs, status, 0, "completed: the check passes after iteration 2")

	w.write("agent.sh", "echo 'HONEST EXIT: it is not set'")
	out, errs, status = w.try(run, env...)
	wantSaid(t, out+errs, status, 6, "the agent reports that the task cannot be done", "- "+hint)
	if found, errs, _ := w.try("grep -rl hunter2 .perdure"); found != "" || errs != "" {
		t.Errorf("values of the environment are in %s%s", found, errs)
	}
}

// TestLoopNamesSecretVariables: for variables whose names look like secrets there is no command
// that passes them, because the agent can control the output that names them.
func TestLoopNamesSecretVariables(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.write("check.sh", "echo \"AWS_SECRET_ACCESS_KEY, $1 is not set\"; exit 1\n")
	w.write("agent.sh", "echo $$ > work")
	env := []string{"AWS_SECRET_ACCESS_KEY=hunter2", "SERVICE_HOST=here"}
	const named = "the output of the check names variables that checks do not get: AWS_SECRET_ACCESS_KEY"
	const why = "; names of secrets: AWS_SECRET_ACCESS_KEY, which code of the agent could read in a check"
	for name, want := range map[string]string{"IT": named + why,
		"SERVICE_HOST": named + ", SERVICE_HOST; `--env SERVICE_HOST` passes them" + why} {
		out, errs, status := w.try("perdure loop run x --until 'sh check.sh "+name+"' --agent 'exec:sh agent.sh' --no-wait "+
			"--max-iterations 1", env...)
		wantSaid(t, errs, status, 1, "baseline: "+want)
		wantSaid(t, out, status, 1, want)
		if strings.Contains(out+errs, "--env AWS") {
			t.Errorf("the output recommends to pass a secret:\n%s%s", out, errs)
		}
	}
}

// TestLoopUnsetVariables: a name of --env for which there is no variable is reported once, and
// again when the loop is resumed. The names of a resume are added to those of the loop.
func TestLoopUnsetVariables(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	w.write("agent.sh", "mktemp ./XXXXXX") // another file each time: it is not stuck
	const warning = "warning: --env or loop.env names variables that are not set: "
	_, errs, _ := w.try("perdure loop run x --no-wait --until false --agent 'exec:sh agent.sh' --max-iterations 2 "+
		"--env IS_SET,NOT_SET,NONE_*", "IS_SET=1")
	if strings.Count(errs, warning+"NOT_SET, NONE_*\n") != 1 || strings.Count(errs, warning) != 1 {
		t.Error(errs)
	}
	_, errs, _ = w.try("perdure loop resume --no-wait --max-iterations 3 --env LATER", "IS_SET=1", "NOT_SET=1", "NONE_A=1",
		"LATER=1")
	if strings.Contains(errs, warning) {
		t.Error(errs)
	}
	_, errs, _ = w.try("perdure loop resume --no-wait --max-iterations 4", "NOT_SET=1", "NONE_A=1")
	if !strings.Contains(errs, warning+"IS_SET, LATER\n") {
		t.Error(errs)
	}
}

// TestLoopTimes: negative times are refused, except for the one that stands for no limit.
func TestLoopTimes(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t)
	const run = "perdure loop run x --until true --even-if-green --agent 'exec:true' --no-wait --max-iterations 1 "
	for flag, hint := range map[string]string{"--gate-timeout -3s": "--gate-timeout 0 stands", "--gate-timeout -1s": "0",
		"--timeout -3s": "--timeout -1s stands", "--idle-timeout -5m": "--idle-timeout -1s stands",
		"--check-timeout -1ms": "--check-timeout -1s stands"} {
		name, _, _ := strings.Cut(flag, " ")
		for _, command := range []string{run, "perdure loop resume "} {
			_, errs, status := w.try(command + flag)
			wantSaid(t, errs, status, 2, name+" is -", hint+" ")
		}
	}
	_, errs, status := w.try(run + "--gate-timeout 0 --timeout -1s --idle-timeout -1s --check-timeout -1s")
	wantSaid(t, errs, status, 0)
}
