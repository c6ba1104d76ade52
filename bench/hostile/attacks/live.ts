// 1,000 strangers who open ever more shapes under a policy, while the table of memberships that it reads changes 1,000 times a second.

import pg from "pg";
import { signClaims } from "../../comparison/sign-claims.ts";
import { ask } from "../ask.ts";
import { type Attack, failureOf, Outcomes, repeat, type Target } from "../attack.ts";
import { credentials } from "../callers.ts";
import { ROOMS } from "../schema.ts";

const STRANGERS = 1_000;
/** Those that ask at one time. */
const ASKING = 40;
const CHANGES_AT_ONCE = 100;
/** The letters of the room without members are for nobody. */
const FOREIGN = `"body":"of room ${ROOMS}"`;

export const attack: Attack = async (target) => {
  const outcomes = new Outcomes();
  let opened = 0;
  await Promise.all([
    changeMemberships(target, outcomes),
    repeat(target, { times: ASKING, pauseMs: 5 }, async () => {
      const number = opened++;
      // A condition that no shape of this caller has had.
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

/** The strangers move from room to room. The database does it, whose processes have the usual priority. */
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
