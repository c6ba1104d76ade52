// Opens many connections: unfinished requests, silent connections, and short ones.

import { connect } from "node:net";
import { ask } from "../ask.ts";
import { type Attack, failureOf, Outcomes, repeat } from "../attack.ts";

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

function idle({ hostname, port }: URL, said: string, until: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname, () => socket.write(said));
    const end = (how: string) => {
      clearTimeout(stop);
      socket.destroy();
      resolve(how);
    };
    const stop = setTimeout(() => end("held"), Math.max(0, until - Date.now()));
    socket.on("data", (data) => end(`${data.toString("latin1", 9, 12)} to an unfinished head`));
    socket.on("error", (error) => end(failureOf(error)));
    socket.on("close", () => end("closed"));
  });
}
