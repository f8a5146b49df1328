// Made by 'decree agents install'; 'decree agents remove opencode' takes it away.
// It only calls 'decree hook', which records each turn, and never holds OpenCode up.
import { spawnSync } from "node:child_process"

const hook = (event, data) => {
  spawnSync("decree", ["hook", "opencode", event], { input: JSON.stringify(data), timeout: 20000, stdio: ["pipe", "ignore", "ignore"] })
}
const quietly = (f) => async (...args) => {
  try { f(...args) } catch {}
}

export const Decree = async ({ directory }) => {
  const outer = new Map() // a subagent's session is a part of the one that began it
  const session = (id) => outer.get(id) ?? id
  let last
  return {
    event: quietly(({ event }) => {
      const info = event.properties?.info
      const id = event.properties?.sessionID ?? info?.id
      if (event.type === "session.created" && info?.parentID) outer.set(id, session(info.parentID))
      if (outer.has(id)) return
      if (event.type === "session.created" || event.type === "session.idle") hook(event.type, { directory, session: (last = id) })
    }),
    "chat.message": quietly((input, output) => {
      if (outer.has(input.sessionID)) return
      hook("chat.message", { directory, session: (last = input.sessionID), output })
    }),
    "tool.execute.before": quietly((input, output) => {
      hook("tool.execute.before", { directory, session: session(input.sessionID), input, output })
    }),
    "tool.execute.after": quietly((input) => {
      hook("tool.execute.after", { directory, session: session(input.sessionID), input })
    }),
    dispose: quietly(() => hook("dispose", { directory, session: last })),
  }
}
