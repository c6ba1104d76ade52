// Subscribes anonymously with filters that are regular expressions without an end.

import { subscribe } from "../../realtime/subscriber.ts";
import { type Attack, failureOf, Outcomes, repeat } from "../attack.ts";
import { ANON_KEY } from "../callers.ts";

const SOCKETS = 5;

export const attack: Attack = async (target) => {
  const outcomes = new Outcomes();
  await repeat(target, { times: SOCKETS, pauseMs: 250 }, async (index) => {
    const filter = String.raw`note=match.^(.+)(.+)(.+)\1\2\3$|${index}`;
    try {
      const socket = await subscribe(new URL(target.url), ANON_KEY, { table: "marks", filter });
      outcomes.count("subscribed");
      const stop = setTimeout(() => socket.terminate(), Math.max(0, target.until - Date.now()));
      socket.on("message", (data: Buffer) => {
        if (data.includes('"is_public":false')) outcomes.fault("a row that no stranger may see");
        // The service has closed the channel.
        if (data.includes('"phx_close"') || data.includes('"phx_error"')) socket.terminate();
      });
      await new Promise((resolve) => socket.once("close", resolve));
      clearTimeout(stop);
      if (Date.now() < target.until) outcomes.count("ended");
    } catch (error) {
      const failure = failureOf(error);
      outcomes.count(failure.startsWith("A subscriber") ? "refused" : failure);
    }
  });
  return outcomes.result;
};
