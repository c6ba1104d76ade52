// Joins channels that make the service keep as much as allowed.

import { once } from "node:events";
import { WebSocket } from "ws";
import { openSocket } from "../../realtime/subscriber.ts";
import { type Attack, failureOf, Outcomes, repeat } from "../attack.ts";
import { ANON_KEY } from "../callers.ts";

const SOCKETS = 20;
const CHANNELS = 100;
/** Lengths above the limit of a join, and slightly below it. */
const LENGTHS = [250_000, 60_000];

const PAYLOADS = LENGTHS.flatMap((length) => {
  const long = "k".repeat(length);
  const filter = `note=eq.${long}`;
  return [
    { config: { presence: { key: long, enabled: true } } },
    { config: { postgres_changes: [{ event: "*", schema: "public", table: "marks", filter }] } },
    { config: {}, access_token: long },
  ];
});

export const attack: Attack = async (target) => {
  const outcomes = new Outcomes();
  await repeat(target, { times: SOCKETS, pauseMs: 500 }, async (index) => {
    try {
      await joinMany(new URL(target.url), index, target.until, outcomes);
    } catch (error) {
      outcomes.count(failureOf(error));
    }
  });
  return outcomes.result;
};

/** Resolves when the service has closed the socket, or at the end time. */
async function joinMany(base: URL, index: number, until: number, outcomes: Outcomes): Promise<void> {
  const socket = await openSocket(base, ANON_KEY);
  socket.on("message", (data: Buffer) => {
    if (data.includes('"phx_reply"')) outcomes.count(data.includes('"status":"ok"') ? "joined" : "refused");
  });
  socket.on("error", () => {});
  for (let channel = 0; channel < CHANNELS; channel++) {
    const ref = String(channel + 1);
    const payload = PAYLOADS[channel % PAYLOADS.length];
    socket.send(JSON.stringify([ref, ref, `realtime:${index}-${channel}`, "phx_join", payload]));
  }
  const stop = setTimeout(() => socket.terminate(), Math.max(0, until - Date.now()));
  if (socket.readyState !== WebSocket.CLOSED) await once(socket, "close");
  clearTimeout(stop);
  if (Date.now() < until) outcomes.count("closed");
}
