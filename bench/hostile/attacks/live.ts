// 1,000 callers open ever more shapes under a policy, while the memberships that the policy reads change 1,000 times a second.

import pg from "pg";
import { signClaims } from "../../comparison/sign-claims.ts";
import { ask } from "../ask.ts";
import { type Attack, failureOf, Outcomes, repeat, type Target } from "../attack.ts";
import { credentials } from "../callers.ts";
import { ROOMS } from "../schema.ts";

const STRANGERS = 1_000;
/** The number of concurrent requests. */
const ASKING = 40;
const CHANGES_AT_ONCE = 100;
/** The letters of the room without members, which nobody may read. */
const FOREIGN = `"body":"of room ${ROOMS}"`;

export const attack: Attack = async (target) => {
  const outcomes = new Outcomes();
  let opened = 0;
  await Promise.all([
    changeMemberships(target, outcomes),
    repeat(target, { times: ASKING, pauseMs: 5 }, async () => {
      const number = opened++;
      // The condition is one that no shape of this caller has had.
      const path = `v1/shape?table=letters&offset=-1&where=id>${-Math.floor(number / STRANGERS)}`;
      const token = signClaims({ sub: strangerOf(number), role: "authenticated" });
      const asked = ask(`${target.url}/${path}`, { headers: credentials(token) });
      const outcome = await asked.then(({ status, text }) => {
        if (text.includes(FOREIGN)) outcomes.fault("rows of a room without members");
        return String(status);
      }, failureOf);
      outcomes.count(outcome);
    }),
  ]);
  return outcomes.result;
};

/** Moves the callers from room to room. The database does this, since its processes have the usual priority. */
async function changeMemberships({ ownerUrl, until }: Target, outcomes: Outcomes): Promise<void> {
  const owner = new pg.Client({ connectionString: ownerUrl });
  await owner.connect();
  while (Date.now() < until) {
    await owner.query("call public.change_memberships($1, $2)", [CHANGES_AT_ONCE, STRANGERS]);
    outcomes.count(`${CHANGES_AT_ONCE} memberships changed`);
  }
  await owner.query("truncate public.memberships");
  await owner.end();
}

function strangerOf(number: number): string {
  return `stranger ${number % STRANGERS}`;
}
