package acp_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/perdure/perdure/internal/process/guard"
	"github.com/perdure/perdure/internal/testing/testenv"
)

// agentArg makes this binary, started again by a test, an agent that follows
// the script named by the next argument.
const agentArg = "be-an-agent"

func TestMain(m *testing.M) {
	guard.Enter()
	testenv.Set()
	if len(os.Args) == 3 && os.Args[1] == agentArg {
		os.Exit(beAgent(os.Args[2]))
	}
	goleak.VerifyTestMain(m)
}
