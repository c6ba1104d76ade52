// Opens many connections: unfinished requests, silent connections, and short ones.

import { ask } from "../ask.ts";
import { type Attack, failureOf, Outcomes, repeat } from "../attack.ts";
import { holdSocket } from "../hold-socket.ts";

const IDLE = 1_000;
const COMING_AND_GOING = 20;
const UNFINISHED_HEAD = "GET /users HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";

export const attack: Attack = async (target) => {
  const outcomes = new Outcomes();
  await Promise.all([
    repeat(target, { times: IDLE, pauseMs: 500 }, async (index) => {
      outcomes.count(await idle(new URL(target.url), index % 2 === 0 ? UNFINISHED_HEAD : "", target.until));
    }),
    repeat(target, { times: COMING_AND_GOING, pauseMs: 100 }, async () => {
      const sent = ask(`${target.url}/health/live`, { headers: { Connection: "close" } });
      outcomes.count(await sent.then(({ status }) => String(status), failureOf));
    }),
  ]);
  return outcomes.result;
};

async function idle(url: URL, said: string, until: number): Promise<string> {
  const how = await holdSocket(url, until, (socket) => socket.write(said));
  return /^\d/.test(how) ? `${how} to an unfinished head` : how;
}
