// Sign-ins of one address, with right passwords, which are not counted as attempts, and with wrong ones. Others sign in beside them.

import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { ask } from "../ask.ts";
import { type Attack, failureOf, Outcomes, repeat, type Target } from "../attack.ts";
import { JSON_TYPE } from "../callers.ts";
import { percentile } from "../percentile.ts";

const SOCKETS = 60;
const OTHERS = 5;
const OTHERS_PER_SECOND = 5;
const LONGEST_P99_MS = 1_000;
const PASSWORD = "Tangerine-Boat-7";
/** Linux accepts all addresses of 127.0.0.0/8 as this machine's. */
const FLOOD_ADDRESS = "127.0.99.1";

type Account = { readonly email: string; readonly address: string };

export const attack: Attack = async (target) => {
  const outcomes = new Outcomes();
  const others = await Promise.all(Array.from({ length: OTHERS }, (_, n) => register(target, `127.0.1.${n + 1}`)));
  const own = await register(target, "127.0.98.1");
  const flood = repeat(target, { times: SOCKETS, pauseMs: 0 }, async (index) => {
    const password = index % 2 === 0 ? PASSWORD : "Another-Boat-8";
    const email = index % 2 === 0 ? own.email : `${randomUUID()}@example.org`;
    outcomes.count(await signIn(target, { email, address: FLOOD_ADDRESS }, password).catch(failureOf));
  });
  const times = await signInBeside(target, others);
  await flood;
  const p99 = percentile(times, 0.99);
  const refused = times.filter((time) => !Number.isFinite(time)).length;
  outcomes.state({
    what: `sign-ins of others: p99 ${Number.isFinite(p99) ? `${p99.toFixed(0)} ms` : "for ever"}, ${refused} of ${times.length} refused`,
    isMet: p99 < LONGEST_P99_MS && refused === 0,
    target: `below ${LONGEST_P99_MS} ms`,
  });
  return outcomes.result;
};

/** Milliseconds; infinite for those that did not succeed. */
async function signInBeside(target: Target, others: readonly Account[]): Promise<number[]> {
  const sent: Promise<number>[] = [];
  while (Date.now() < target.until) {
    const since = performance.now();
    const status = signIn(target, others[sent.length % others.length]!, PASSWORD).catch(failureOf);
    sent.push(status.then((status) => (status === "200" ? performance.now() - since : Number.POSITIVE_INFINITY)));
    await sleep(1_000 / OTHERS_PER_SECOND);
  }
  return Promise.all(sent);
}

async function register(target: Target, address: string): Promise<Account> {
  const email = `${randomUUID()}@example.org`;
  const { status, text } = await send(target, "/auth/register", address, { name: "Ann", email, password: PASSWORD });
  if (status !== 201) throw new Error(`Not registered: ${status} ${text}`);
  return { email, address };
}

async function signIn(target: Target, { email, address }: Account, password: string): Promise<string> {
  const { status } = await send(target, "/auth/login", address, { username: email, password });
  return String(status);
}

function send({ url }: Target, path: string, localAddress: string, body: object) {
  return ask(url + path, { method: "POST", headers: JSON_TYPE, body: JSON.stringify(body), localAddress });
}
