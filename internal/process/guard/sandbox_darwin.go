package guard

import (
	"syscall"

	"github.com/perdure/perdure/internal/process/sandbox"
)

// startInSandbox starts the child by sandbox-exec, which becomes the child.
func startInSandbox(o *order) (pid int, layers []string, err error) {
	p, err := sandbox.Wrap(o.Sandbox, sandbox.Program{Path: o.Path, Args: o.Args, Env: o.Env, Dir: o.Dir})
	if err != nil {
		return 0, nil, err
	}
	pid, err = syscall.ForkExec(p.Path, p.Args, &syscall.ProcAttr{
		Dir: p.Dir, Env: p.Env, Files: []uintptr{0, 1, 2}, Sys: childAttr(),
	})
	if err != nil {
		return 0, nil, &sandbox.Error{Op: "start sandbox program", Err: err, Refused: true}
	}
	return pid, []string{sandbox.LayerSandboxExec}, nil
}
