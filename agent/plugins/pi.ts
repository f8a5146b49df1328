// Made by 'decree agents install'; 'decree agents remove pi' takes it away.
// It only calls 'decree hook', which records each turn, and never holds pi up.
import { spawnSync } from "node:child_process";

export default function (pi: any) {
  const on = (event: string) =>
    pi.on(event, async (e: any, ctx: any) => {
      try {
        const data = {
          session: ctx.sessionManager?.getSessionId?.(),
          file: ctx.sessionManager?.getSessionFile?.(),
          cwd: ctx.cwd,
          model: ctx.model?.id,
          event: { type: event, toolName: e.toolName, toolCallId: e.toolCallId, prompt: e.prompt, input: e.input },
        };
        spawnSync("decree", ["hook", "pi", event], { input: JSON.stringify(data), timeout: 20000, stdio: ["pipe", "ignore", "ignore"] });
      } catch {}
    });
  ["session_start", "before_agent_start", "tool_call", "tool_result", "agent_end", "session_shutdown"].forEach(on);
}
