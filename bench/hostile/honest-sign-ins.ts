// The process of users that sign in beside an attack: from known addresses, and from new ones.

import { setTimeout as sleep } from "node:timers/promises";
import { type Account, PASSWORD, randomAddress, signIn } from "./sign-in-calls.ts";

export type SignInSample = { readonly status: string; readonly milliseconds: number };

export type HonestSignIns = {
  readonly url: string;
  readonly accounts: readonly Account[];
  /** The end time by `Date.now()`. */
  readonly until: number;
};

export type SignInSamples = { readonly known: readonly SignInSample[]; readonly strangers: readonly SignInSample[] };

const PER_SECOND = 5;

process.on("message", async ({ url, accounts, until }: HonestSignIns) => {
  const known: Promise<SignInSample>[] = [];
  const strangers: Promise<SignInSample>[] = [];
  for (let number = 0; Date.now() < until; number++) {
    const account = accounts[number % accounts.length]!;
    known.push(sample(url, account));
    strangers.push(sample(url, { ...account, address: randomAddress(11) }));
    await sleep(1_000 / PER_SECOND);
  }
  process.send!({ known: await Promise.all(known), strangers: await Promise.all(strangers) });
});

process.on("disconnect", () => process.exit());

async function sample(url: string, account: Account): Promise<SignInSample> {
  const since = performance.now();
  const status = await signIn(url, account, PASSWORD);
  return { status, milliseconds: performance.now() - since };
}
