// Sends unfinished bodies, uses slow sockets and endless patterns, beside a caller whom functions must serve.

import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { signClaims } from "../../comparison/sign-claims.ts";
import { percentile } from "../../measuring/percentile.ts";
import { ask } from "../ask.ts";
import { type Attack, failureOf, Outcomes, repeat, type Target } from "../attack.ts";
import { ANON_KEY } from "../callers.ts";
import { FUNCTION_NAMES } from "../functions-folder.ts";
import { holdSocket, sendBytes } from "../hold-socket.ts";
import type { FunctionSamples, HonestFunctionCalls } from "../honest-functions.ts";

const LARGE_BYTES = 230 * 2 ** 20;
const ANONYMOUS_BYTES = 2 ** 20;
/** The functions of honest callers; the earlier ones are attacked. */
const HONEST_FUNCTIONS = FUNCTION_NAMES.slice(-2);
const ATTACKED = FUNCTION_NAMES.slice(0, -2);
const ATTACKER_TOKEN = signClaims({ sub: "2", role: "authenticated" });
/** The limit includes the start of a function that nobody has called for a while. */
const LONGEST_P99_MS = 2_000;

/** The process has its own session, which starts before this process lowers its priority. */
const honest = fork(join(import.meta.dirname, "../honest-functions.ts"), { serialization: "advanced", detached: true });

type Sending = { readonly authorization: string; readonly length: number; readonly sent: number };

export const attack: Attack = async (target) => {
  const outcomes = new Outcomes();
  const key = `Bearer ${ANON_KEY}`;
  const token = `Bearer ${ATTACKER_TOKEN}`;
  await Promise.all([
    callHonestly(target, outcomes),
    // These bodies are declared as 230 MB, by an anonymous caller and by a user.
    repeat(target, { times: 12, pauseMs: 250 }, async (index) => {
      const authorization = index % 2 === 0 ? key : token;
      await hold(target, outcomes, index, { authorization, length: LARGE_BYTES, sent: LARGE_BYTES - 1 });
    }),
    // These bodies have the maximum size, without the last byte.
    repeat(target, { times: 60, pauseMs: 250 }, (index) =>
      hold(target, outcomes, index, { authorization: key, length: ANONYMOUS_BYTES, sent: ANONYMOUS_BYTES - 1 }),
    ),
    repeat(target, { times: 12, pauseMs: 250 }, (index) =>
      hold(target, outcomes, index, { authorization: token, length: 45 * 2 ** 20, sent: 45 * 2 ** 20 - 1 }),
    ),
    // These requests send two bytes of their bodies.
    repeat(target, { times: FUNCTION_NAMES.length * 2, pauseMs: 250 }, (index) =>
      hold(target, outcomes, index, { authorization: key, length: 10, sent: 2 }),
    ),
    repeat(target, { times: 6, pauseMs: 100 }, async (index) => {
      outcomes.count(`pattern ${await statusOf(`${target.url}/functions/v1/${ATTACKED[index]}?pattern`, key)}`);
    }),
  ]);
  return outcomes.result;
};

async function callHonestly({ url, until }: Target, outcomes: Outcomes): Promise<void> {
  honest.send({ url, names: HONEST_FUNCTIONS, until } satisfies HonestFunctionCalls);
  const [{ milliseconds, failures }] = (await once(honest, "message")) as [FunctionSamples];
  honest.disconnect();
  for (const failure of failures) outcomes.fault(`${failure} for an account beside the attack`);
  const p99 = percentile(milliseconds, 0.99);
  outcomes.state({
    what: `functions of others: ${milliseconds.length} calls, p50 ${percentile(milliseconds, 0.5).toFixed(1)} ms, p99 ${p99.toFixed(1)} ms`,
    isMet: p99 < LONGEST_P99_MS,
    target: `below ${LONGEST_P99_MS} ms`,
  });
}

async function statusOf(url: string, authorization: string): Promise<string> {
  try {
    return String((await ask(url, { headers: { Authorization: authorization } })).status);
  } catch (error) {
    return failureOf(error);
  }
}

async function hold({ url, until }: Target, outcomes: Outcomes, index: number, sending: Sending): Promise<void> {
  const held = holdSocket(new URL(url), until, (socket) => {
    const path = `/functions/v1/${ATTACKED[index % ATTACKED.length]}`;
    const host = new URL(url).hostname;
    socket.write(`POST ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: ${sending.authorization}\r\n`);
    socket.write(`Content-Length: ${sending.length}\r\n\r\n`);
    sendBytes(socket, sending.sent);
  });
  outcomes.count(await held);
}
