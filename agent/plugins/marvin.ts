// Made by 'decree agents install'; 'decree agents remove marvin' takes it away.
// It only calls 'decree hook', which records each turn, and never holds Marvin up.
import { spawnSync } from "node:child_process";

export default function (marvin: any) {
  const prompts = new Map<string, string>(); // of each session; agent.start, which every prompt has, does not say it
  const sessionOf = (e: any, ctx: any) => e?.sessionId ?? ctx?.sessionId;
  const hook = (event: string, e: any, ctx: any) => {
    const session = sessionOf(e, ctx);
    const data = {
      session,
      directory: ctx?.cwd ?? process.cwd(),
      model: ctx?.model?.id,
      prompt: event === "agent.start" ? prompts.get(session) : undefined,
      event: { type: event, toolName: e.toolName, toolCallId: e.toolCallId, input: e.input },
    };
    if (event === "agent.start") prompts.delete(session);
    spawnSync("decree", ["hook", "marvin", event], { input: JSON.stringify(data), timeout: 20000, stdio: ["pipe", "ignore", "ignore"] });
  };
  const on = (event: string) =>
    marvin.on(event, async (e: any, ctx: any) => {
      try {
        hook(event, e, ctx);
      } catch {}
    });
  marvin.on("agent.before_start", async (e: any, ctx: any) => {
    prompts.set(sessionOf(e, ctx), e?.prompt);
  });
  [
    "session.start", "session.resume", "session.clear", "agent.start",
    "tool.execute.before", "tool.execute.after", "agent.end", "session.shutdown",
  ].forEach(on);
}
