// Made by 'decree agents install'; 'decree agents remove marvin' takes it away.
// It only calls 'decree hook', which records each turn, and never holds Marvin up.
import { spawnSync } from "node:child_process";

export default function (marvin: any) {
  let prompt: string | undefined; // agent.start, which every prompt has, does not say it
  const hook = (event: string, e: any, ctx: any) => {
    const data = {
      session: e.sessionId ?? ctx?.sessionId,
      directory: ctx?.cwd ?? process.cwd(),
      model: ctx?.model?.id,
      prompt: event === "agent.start" ? prompt : undefined,
      event: { type: event, toolName: e.toolName, toolCallId: e.toolCallId, input: e.input },
    };
    spawnSync("decree", ["hook", "marvin", event], { input: JSON.stringify(data), timeout: 20000, stdio: ["pipe", "ignore", "ignore"] });
  };
  const on = (event: string) =>
    marvin.on(event, async (e: any, ctx: any) => {
      try {
        hook(event, e, ctx);
      } catch {}
    });
  marvin.on("agent.before_start", async (e: any) => {
    prompt = e?.prompt;
  });
  [
    "session.start", "session.resume", "session.clear", "agent.start",
    "tool.execute.before", "tool.execute.after", "agent.end", "session.shutdown",
  ].forEach(on);
}
