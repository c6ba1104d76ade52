import { describe, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { eventsOf, from, newPerson, openAccounts, PASSWORD } from "./open-accounts.ts";

const opened = useFixture(openAccounts);

async function signIn() {
  const person = await newPerson(opened);
  const { accounts } = opened;
  const again = () => accounts.login({ username: person.email, password: PASSWORD }, from(), accounts.sessions.open);
  return { ...person, again, session: await again() };
}
const use = (id: string) => opened.accounts.sessions.use(id);
const sql = (statement: string, ...values: unknown[]) => opened.owner.query(statement, values);
/** Turns the clock of a user's session forward. */
const later = (userId: string, interval: string) =>
  sql(
    `update auth.sessions set created_at = created_at - $2::interval, last_used_at = last_used_at - $2::interval,
      idle_expires_at = idle_expires_at - $2::interval, expires_at = expires_at - $2::interval where user_id = $1`,
    userId,
    interval,
  );

describe("a session", () => {
  test("belongs to its user and has the claims of a token", async () => {
    const { userId, username, session } = await signIn();
    const claims = { sub: userId, name: "Ada", role: "authenticated", permissions: [] };
    expect(session).toEqual({ id: expect.stringMatching(/^[\w-]{43}$/), userId, username, claims });
    const living = await use(session.id);
    expect(living).toMatchObject({ userId, username, claims });
    expect(Date.now() - living!.signedInAt.getTime()).toBeLessThan(60_000);
    expect(living!.expiresAt.getTime() - living!.signedInAt.getTime()).toBe(12 * 3_600_000);
    expect(await eventsOf(opened, userId)).toContain("session.created");
  });

  test("replaces the user's previous session and has a new id", async () => {
    const { session, again } = await signIn();
    const next = await again();
    expect(next.id).not.toBe(session.id);
    expect(await use(session.id)).toBeNull();
    expect(await use(next.id)).not.toBeNull();
  });

  test("exists once per user, also after concurrent sign-ins", async () => {
    const { userId, again } = await signIn();
    const all = await Promise.all(Array.from({ length: 4 }, again));
    const living = (await Promise.all(all.map(({ id }) => use(id)))).filter((each) => each !== null);
    expect(living).toHaveLength(1);
    expect((await sql("select from auth.sessions where user_id = $1", userId)).rowCount).toBe(1);
  });

  test("ends after half an hour without use", async () => {
    const { userId, session } = await signIn();
    for (let n = 0; n < 3; n++) {
      await later(userId, "29 minutes");
      expect(await use(session.id)).not.toBeNull();
    }
    await later(userId, "30 minutes");
    expect(await use(session.id)).toBeNull();
  });

  test("ends after twelve hours even if it is used", async () => {
    const { userId, session } = await signIn();
    for (let n = 0; n < 25; n++) {
      await later(userId, "28 minutes");
      expect(await use(session.id), `use ${n}`).not.toBeNull();
    }
    await later(userId, "20 minutes");
    expect(await use(session.id)).toBeNull();
  });

  test("is not written at every use", async () => {
    const { userId, session } = await signIn();
    const version = async () => (await sql("select xmin from auth.sessions where user_id = $1", userId)).rows[0].xmin;
    const before = await version();
    await use(session.id);
    expect(await version()).toBe(before);
    await later(userId, "16 seconds");
    const turned = await version();
    await use(session.id);
    expect(await version()).not.toBe(turned);
  });

  test("ends at logout, which is logged once", async () => {
    const { userId, session } = await signIn();
    await opened.accounts.sessions.close(session.id, from());
    expect(await use(session.id)).toBeNull();
    await opened.accounts.sessions.close(session.id, from());
    const events = await eventsOf(opened, userId);
    expect(events.filter((event) => event === "session.closed")).toHaveLength(1);
  });

  test.each([
    ["disabled", "select auth.disable_account($1, null)"],
    ["deleted", "delete from public.users where id = $1"],
  ])("ends with an account that is %s", async (_, statement) => {
    const { userId, session } = await signIn();
    await sql(statement, userId);
    expect(await use(session.id)).toBeNull();
  });

  test("is not found by its stored digest or by invalid ids", async () => {
    const { userId } = await signIn();
    const { rows } = await sql("select id_hash from auth.sessions where user_id = $1", userId);
    for (const id of [
      rows[0].id_hash.toString("base64url"),
      rows[0].id_hash.toString("hex"),
      "",
      "x".repeat(43),
      "\0",
    ]) {
      expect(await use(id)).toBeNull();
      await opened.accounts.sessions.close(id, from());
    }
  });

  test("is not blocked by a concurrent use", async () => {
    const { userId, session } = await signIn();
    await later(userId, "1 minute");
    const other = await opened.owner.connect();
    await other.query("begin");
    await other.query("update auth.sessions set last_used_at = last_used_at where user_id = $1", [userId]);
    expect(await use(session.id)).not.toBeNull();
    await other.query("rollback");
    other.release();
  });
});

test("new sessions delete ended ones", async () => {
  const { again } = await signIn();
  const { userId } = await newPerson(opened);
  await sql(
    `insert into auth.sessions (id_hash, user_id, created_at, idle_expires_at, expires_at)
      values (sha256('old'), $1, now() - interval '2 days', now() - interval '1 day', now() + interval '1 day')`,
    userId,
  );
  await again();
  expect((await sql("select from auth.sessions where id_hash = sha256('old')")).rowCount).toBe(0);
});
