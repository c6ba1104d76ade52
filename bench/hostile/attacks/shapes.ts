// Reads /rest/v1 anonymously with new statement texts, so that each is parsed, planned and prepared again.

import { ask } from "../ask.ts";
import { type Attack, failureOf, Outcomes, repeat } from "../attack.ts";
import { ANON_KEY } from "../callers.ts";

const READERS = 20;
const PAUSE_MS = 10;

/** The shapes; each gets a name that no other has had. */
const SHAPES: readonly ((name: string) => string)[] = [
  (name) => `marks?select=id,${name}:note&limit=1`,
  (name) => `marks?select=${list(100, (n) => `${name}_${n}:note`)}&limit=1`,
  (name) => `marks?select=id&or=(${list(100, (n) => `note.eq.${name}_${n}`)})&limit=${1 + Number(name.slice(1))}`,
  (name) => `articles?select=id,${name}:users(${name}_1:name),comments(${name}_2:content)&limit=1`,
  (name) => `essays?select=${name}:id&order=id.desc&limit=1`,
];

let last = 0;

export const attack: Attack = async (target) => {
  const outcomes = new Outcomes();
  await repeat(target, { times: READERS, pauseMs: PAUSE_MS }, async () => {
    const number = ++last;
    const path = SHAPES[number % SHAPES.length]!(`n${number}`);
    const sent = ask(`${target.url}/rest/v1/${path}`, { headers: { apikey: ANON_KEY } });
    outcomes.count(await sent.then(({ status }) => String(status), failureOf));
  });
  return outcomes.result;
};

function list(count: number, what: (n: number) => string): string {
  return Array.from({ length: count }, (_, n) => what(n)).join(",");
}
