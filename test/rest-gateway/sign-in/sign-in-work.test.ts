import { randomUUID } from "node:crypto";
import { beforeAll, expect, test } from "vitest";
import { argon2Runs } from "../../accounts/argon2-runs.ts";
import { useFixture } from "../../fixture.ts";
import { newAddress } from "../../new-address.ts";
import { newPerson, openGateways } from "./gateways.ts";

/** Accounts that strangers want to tell apart. */
const addresses: Record<string, string> = {};
const gateways = useFixture(() =>
  openGateways({
    settings: { REST_REQUIRE_APIKEY: "false", AUTH_AUTOCONFIRM: "false", MAIL_INTERVAL_SECONDS: "0" },
  }),
);
beforeAll(async () => {
  for (const kind of ["known", "without a password", "disabled", "with an unconfirmed address"])
    addresses[kind] = (await newPerson(gateways)).email;
  addresses.unknown = newAddress();
  addresses["no address"] = "nobody";
  await gateways.owner.query("update auth.users set email_confirmed_at = now()");
  await gateways.owner.query("update auth.users set password_hash = null where email = $1", [
    addresses["without a password"],
  ]);
  await gateways.owner.query("update auth.users set email_confirmed_at = null where email = $1", [
    addresses["with an unconfirmed address"],
  ]);
  await gateways.owner.query("select auth.disable_account(user_id, null) from auth.users where email = $1", [
    addresses.disabled,
  ]);
});

const WRONG = "Another-Boat-8";
const INTERFACES: Readonly<Record<string, (email: string) => Promise<{ readonly status: number }>>> = {
  "POST /auth/login": (username) => gateways.post(`${gateways.one.url}/auth/login`, { username, password: WRONG }),
  "POST /api/auth/login": (username) =>
    gateways.post(`${gateways.one.url}/api/auth/login`, { username, password: WRONG }),
  "POST /auth/v1/token": (email) =>
    gateways.post(`${gateways.one.url}/auth/v1/token?grant_type=password`, { email, password: WRONG }),
};

test.each(Object.keys(INTERFACES))("%s does the same work for a wrong password, whatever the account", async (name) => {
  const work: Record<string, unknown> = {};
  for (const [kind, email] of Object.entries(addresses)) {
    let status = 0;
    const hashes = await argon2Runs(async () => {
      ({ status } = await INTERFACES[name]!(email));
    });
    work[kind] = { status, hashes };
  }
  const { known } = work;
  expect(known).toMatchObject({ hashes: 1 });
  expect(work).toEqual(Object.fromEntries(Object.keys(addresses).map((kind) => [kind, known])));
});

/** Requests with the same answer for each address, and how many passwords they hash. */
const REQUESTS: Readonly<Record<string, readonly [path: string, body: object, hashes: number]>> = {
  "a sign-up": ["/auth/v1/signup", { password: "Tangerine-Boat-8" }, 1],
  "a code to sign in": ["/auth/v1/otp", {}, 0],
  "a code to set a password": ["/auth/v1/recover", {}, 0],
  "a link to set a password": ["/auth/forgot-password", {}, 0],
};

test.each(Object.entries(REQUESTS))(
  "%s does the same work, whatever the account",
  async (_what, [path, more, hashes]) => {
    const work: unknown[] = [];
    const kinds = ["unknown", "known", "disabled", "with an unconfirmed address"];
    for (const kind of kinds) {
      // An unknown address is another one for each request: a sign-up makes it known.
      const email = kind === "unknown" ? `${randomUUID()}@example.org` : addresses[kind];
      let answer: object = {};
      const runs = await argon2Runs(async () => {
        const { status, body } = await gateways.post(`${gateways.one.url}${path}`, { email, ...more });
        answer = { status, members: Object.keys(body ?? {}).sort() };
      });
      work.push({ ...answer, runs });
    }
    expect(work).toEqual(kinds.map(() => work[0]));
    expect(work[0]).toMatchObject({ status: path === "/auth/forgot-password" ? 202 : 200, runs: hashes });
  },
);
