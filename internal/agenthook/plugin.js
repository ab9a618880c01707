// The hook of perdure in OpenCode. `perdure install opencode` writes this file, and
// `perdure uninstall opencode` removes it.
import { spawn } from "node:child_process"

const command = ["perdure", "hook", "opencode"]
const timeout = 15 * 60 * 1000
const inLoop = command.includes("--socket") || Boolean(process.env.PERDURE_HOOK_SOCKET)

// ask returns the answer of the hook about a call. Every failure is an error.
function ask(event) {
  return new Promise((resolve, reject) => {
    let out = ""
    let fault = ""
    const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "pipe"] })
    const denied = (why) => reject(new Error(`perdure: the hook failed, so the call is denied: ${why}`))
    const timer = setTimeout(() => {
      child.kill("SIGKILL")
      denied("no answer")
    }, timeout)
    child.stdout.on("data", (data) => (out += data))
    child.stderr.on("data", (data) => (fault += data))
    child.stdin.on("error", () => {})
    child.on("error", (error) => {
      clearTimeout(timer)
      denied(error.message)
    })
    child.on("close", (code) => {
      clearTimeout(timer)
      if (code !== 0) return denied(fault.trim() || `exit status ${code}`)
      try {
        resolve(JSON.parse(out))
      } catch {
        denied("the answer is not JSON")
      }
    })
    child.stdin.end(JSON.stringify(event))
  })
}

export const Perdure = async ({ directory }) => {
  const warnings = new Map()
  const key = (input) => `${input.sessionID} ${input.callID}`
  const event = (name, input, args) => ({
    hook_event_name: name,
    session_id: input.sessionID,
    cwd: directory,
    tool_name: input.tool,
    tool_input: args ?? {},
    tool_use_id: input.callID,
  })
  return {
    "tool.execute.before": async (input, output) => {
      const answer = await ask(event("PreToolUse", input, output.args))
      if (answer?.verdict !== "pass") throw new Error(answer?.text || "perdure: this call is not allowed here")
      if (answer.text) warnings.set(key(input), answer.text)
    },
    "tool.execute.after": async (input, output) => {
      const texts = [warnings.get(key(input))]
      warnings.delete(key(input))
      if (inLoop) {
        const answer = await ask(event("PostToolUse", input, input.args)).catch(() => undefined) // the call was made
        texts.push(answer?.text)
      }
      const text = texts.filter(Boolean).join("\n")
      if (text && typeof output?.output === "string") output.output += `\n\n${text}`
    },
  }
}
