import fc from "fast-check";
import { beforeAll, expect, test } from "vitest";
import { inOwnerTransaction } from "../../postgres/database/owner-pool.ts";
import { useFixture } from "../fixture.ts";
import { propertyRuns } from "../property-runs.ts";
import { from, newPerson, openAccounts } from "./open-accounts.ts";

let userId: string;
const opened = useFixture(openAccounts);
beforeAll(async () => {
  userId = (await newPerson(opened)).userId;
});

const sql = (statement: string, ...values: unknown[]) => opened.owner.query(statement, values);

/** The session as the contract describes it, in minutes. */
type Model = { id: string; idleLeft: number; left: number } | null;

const IDLE = 30;
const ABSOLUTE = 12 * 60;

const event = fc.oneof(
  { weight: 3, arbitrary: fc.constant({ kind: "sign in" as const }) },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("use" as const), which: fc.nat(3) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("sign out" as const), which: fc.nat(3) }) },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant("wait" as const), minutes: fc.constantFrom(1, 10, 29, 31, 300) }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: "disable" as const }) },
  { weight: 2, arbitrary: fc.constant({ kind: "enable" as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: "new password" as const }) },
);

test("a session ends exactly when its model does, for any sequence of operations", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(event, { minLength: 1, maxLength: 25 }), async (events) => {
      await sql("select auth.enable_account($1, null), auth.end_sign_ins($1)", userId);
      const { sessions } = opened.accounts;
      const issued: string[] = [];
      let model: Model = null as Model;
      let isDisabled = false;
      const nameOf = (which: number) => issued.at(-1 - which) ?? "none";

      for (const each of events) {
        switch (each.kind) {
          case "sign in": {
            // A disabled user does not come this far.
            if (isDisabled) break;
            const { id } = await inOwnerTransaction(opened.asOwner, (client) => sessions.open(client, userId, from()));
            expect(issued).not.toContain(id);
            issued.push(id);
            model = { id, idleLeft: IDLE, left: ABSOLUTE };
            break;
          }
          case "use": {
            const id = nameOf(each.which);
            const isLiving: boolean = model?.id === id && model.idleLeft > 0 && model.left > 0;
            expect((await sessions.use(id)) !== null).toBe(isLiving);
            if (isLiving) model!.idleLeft = IDLE;
            break;
          }
          case "sign out": {
            const id = nameOf(each.which);
            await sessions.close(id, from());
            if (model?.id === id) model = null;
            break;
          }
          case "wait":
            await sql(
              `update auth.sessions set created_at = created_at - $1::interval, last_used_at = last_used_at - $1::interval,
                idle_expires_at = idle_expires_at - $1::interval, expires_at = expires_at - $1::interval`,
              `${each.minutes} minutes`,
            );
            if (model) model = { ...model, idleLeft: model.idleLeft - each.minutes, left: model.left - each.minutes };
            break;
          case "disable":
            await sql("select auth.disable_account($1, null)", userId);
            isDisabled = true;
            model = null;
            break;
          case "enable":
            await sql("select auth.enable_account($1, null)", userId);
            isDisabled = false;
            break;
          case "new password":
            await sql("select auth.set_password($1, '$hash')", userId);
            model = null;
            break;
        }
        expect((await sql("select from auth.sessions where user_id = $1", userId)).rowCount).toBeLessThanOrEqual(1);
      }
      for (const id of issued) {
        const isLiving: boolean = model?.id === id && model.idleLeft > 0 && model.left > 0;
        expect((await sessions.use(id)) !== null).toBe(isLiving);
      }
    }),
    { numRuns: propertyRuns(60) },
  );
});
