// Signs in from one address with right passwords, which do not count as attempts, and with wrong ones, and from ever new
// addresses. Honest callers sign in meanwhile.

import { fork } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { percentile } from "../../measuring/percentile.ts";
import { type Attack, Outcomes, repeat, type Target } from "../attack.ts";
import type { HonestSignIns, SignInSample, SignInSamples } from "../honest-sign-ins.ts";
import { type Account, PASSWORD, randomAddress, register, signIn } from "../sign-in-calls.ts";

const SOCKETS_OF_ONE_ADDRESS = 60;
const SOCKETS_OF_NEW_ADDRESSES = 200;
const OTHERS = 5;
const QUIET_MS = 2_000;
const LONGEST_P99_MS = 1_000;
const WRONG_PASSWORD = "Another-Boat-8";
const FLOOD_ADDRESS = "192.0.2.1";

/** The process has its own session, which starts before this process lowers its priority. */
const honest = fork(join(import.meta.dirname, "../honest-sign-ins.ts"), { serialization: "advanced", detached: true });

export const attack: Attack = async (target) => {
  const outcomes = new Outcomes();
  const { url, until } = target;
  const accounts = await Promise.all(Array.from({ length: OTHERS }, (_, n) => register(url, `198.51.100.${n + 1}`)));
  const own = await register(url, "192.0.2.2");
  const quiet = await signInBeside({ url, accounts, until: Math.min(until, Date.now() + QUIET_MS) });
  const flooding = flood(target, outcomes, { own, accounts });
  const { known, strangers } = await signInBeside({ url, accounts, until });
  await flooding;
  honest.disconnect();
  outcomes.state({
    what: `sign-ins from known addresses: ${describe(known)} (quiet: ${describe(quiet.known)})`,
    isMet: known.every(({ status }) => status === "200") && p99Of(known) < LONGEST_P99_MS,
    target: `all accepted, p99 below ${LONGEST_P99_MS} ms`,
  });
  outcomes.state({
    what: `sign-ins of others from new addresses: ${describe(strangers)}`,
    isMet: strangers.every(({ status }) => status === "200" || status === "503"),
    target: "200, or 503",
  });
  return outcomes.result;
};

async function flood(
  target: Target,
  outcomes: Outcomes,
  { own, accounts }: { readonly own: Account; readonly accounts: readonly Account[] },
): Promise<void> {
  const emailOf = (index: number, email: string) => (index % 2 === 0 ? email : `${randomUUID()}@example.org`);
  await Promise.all([
    repeat(target, { times: SOCKETS_OF_ONE_ADDRESS, pauseMs: 0 }, async (index) => {
      const password = index % 2 === 0 ? PASSWORD : WRONG_PASSWORD;
      outcomes.count(await signIn(target.url, { email: emailOf(index, own.email), address: FLOOD_ADDRESS }, password));
    }),
    repeat(target, { times: SOCKETS_OF_NEW_ADDRESSES, pauseMs: 0 }, async (index) => {
      const email = emailOf(index, accounts[index % OTHERS]!.email);
      outcomes.count(await signIn(target.url, { email, address: randomAddress(10) }, WRONG_PASSWORD));
    }),
  ]);
}

async function signInBeside(signIns: HonestSignIns): Promise<SignInSamples> {
  honest.send(signIns);
  const [samples] = (await once(honest, "message")) as [SignInSamples];
  return samples;
}

function describe(samples: readonly SignInSample[]): string {
  const times = samples.map(({ milliseconds }) => milliseconds);
  const accepted = samples.filter(({ status }) => status === "200").length;
  return `${accepted} of ${samples.length}, p50 ${percentile(times, 0.5).toFixed(0)} ms, p99 ${p99Of(samples).toFixed(0)} ms`;
}

function p99Of(samples: readonly SignInSample[]): number {
  return percentile(
    samples.map(({ milliseconds }) => milliseconds),
    0.99,
  );
}
