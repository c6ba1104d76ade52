import { describe, expect, test } from "vitest";
import { makeFindApiKey } from "../../accounts/identity/api-key-lookup.ts";
import { useFixture } from "../fixture.ts";
import { until } from "../until.ts";
import { eventsOf, from, newPerson, openAccounts } from "./open-accounts.ts";

const opened = useFixture(openAccounts);

/** Finds the caller without a cache, like a gateway that has not seen the key yet. */
const callerOf = (key: string) => makeFindApiKey({ asOwner: opened.asOwner, log: { warn: () => {} } })(key);
const inAnHour = () => new Date(Date.now() + 3_600_000);

describe("an API key", () => {
  test("authenticates until it is revoked", async () => {
    const { apiKeys } = opened.accounts;
    const { userId } = await newPerson(opened);
    const { id, key } = await apiKeys.create({ role: "authenticated", ownerId: userId, expiresAt: inAnHour() }, from());
    expect(key).toMatch(/^key_[\w-]{43}$/);
    expect(await callerOf(key)).toMatchObject({ role: "authenticated", claims: { sub: userId, api_key: id } });

    await apiKeys.revoke(id);
    expect(await callerOf(key)).toBeNull();
    await expect(apiKeys.revoke(id)).rejects.toMatchObject({ kind: "notFound" });
    expect(await eventsOf(opened, userId)).toEqual(["account.created", "api_key.created", "api_key.revoked"]);
  });

  test("is listed with its first characters, by owner or for all", async () => {
    const { apiKeys } = opened.accounts;
    const [ada, bob] = [await newPerson(opened), await newPerson(opened)];
    const expiresAt = inAnHour();
    const made = await apiKeys.create({ role: "authenticated", ownerId: ada.userId, name: "backup", expiresAt });
    const server = await apiKeys.create({ role: "service_role" });
    expect(await apiKeys.list({ ownerId: ada.userId })).toEqual([
      {
        id: made.id,
        prefix: made.key.slice(0, 12),
        role: "authenticated",
        ownerId: ada.userId,
        name: "backup",
        createdAt: expect.any(Date),
        expiresAt,
        revokedAt: null,
        lastUsedAt: null,
        isLive: true,
      },
    ]);
    expect(await apiKeys.list({ ownerId: bob.userId })).toEqual([]);
    expect((await apiKeys.list()).map(({ id }) => id)).toEqual(expect.arrayContaining([made.id, server.id]));
    expect(JSON.stringify(await apiKeys.list())).not.toContain(made.key.slice(0, 20));
  });

  test("is revoked when its owner loses its role; other keys are not", async () => {
    const { apiKeys } = opened.accounts;
    const { userId } = await newPerson(opened);
    await opened.owner.query("select auth.assign_role($1, 'admin', null)", [userId]);
    const [lost, kept, theirs] = await Promise.all([
      apiKeys.create({ role: "admin", ownerId: userId }),
      apiKeys.create({ role: "authenticated", ownerId: userId }),
      apiKeys.create({ role: "admin" }),
    ]);
    expect(await callerOf(lost.key)).toMatchObject({ role: "admin" });
    await opened.owner.query("select auth.assign_role($1, 'authenticated', null)", [userId]);
    expect(await callerOf(lost.key)).toBeNull();
    for (const { key } of [kept, theirs]) expect(await callerOf(key)).not.toBeNull();
    expect(await eventsOf(opened, userId)).toContain("api_key.revoked");
  });

  test("cannot be created by a former administrator or a disabled user", async () => {
    const { apiKeys } = opened.accounts;
    const { userId } = await newPerson(opened);
    const make = () => apiKeys.create({ role: "admin" }, { ...from(), actor: userId });
    await opened.owner.query("select auth.assign_role($1, 'admin', null)", [userId]);
    expect(await callerOf((await make()).key)).toMatchObject({ role: "admin" });
    await opened.owner.query("select auth.disable_account($1, null)", [userId]);
    await expect(make()).rejects.toMatchObject({ code: "NOPER" });
    await opened.owner.query("select auth.enable_account($1, null)", [userId]);
    await make();
    await opened.owner.query("select auth.assign_role($1, 'authenticated', null)", [userId]);
    await expect(make()).rejects.toMatchObject({ code: "NOPER" });
  });

  test("that is created while its owner loses the role is refused or revoked", async () => {
    const { apiKeys } = opened.accounts;
    const [root, { userId }] = [await newPerson(opened), await newPerson(opened)];
    for (const id of [root.userId, userId])
      await opened.owner.query("select auth.assign_role($1, 'admin', null)", [id]);
    const blocked = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()
      and query like $1`;
    const waitsAt = (text: string) => until(async () => (await opened.owner.query(blocked, [text])).rowCount === 1);

    const maker = await opened.owner.connect();
    try {
      await maker.query("begin");
      await maker.query(
        `select auth.create_api_key(sha256('open'), 'key_open', 'admin', $1, '', null,
          jsonb_populate_record(null::auth.client_info, jsonb_build_object('actor', $2::bigint)))`,
        [userId, userId],
      );
      const losing = opened.owner.query("select auth.assign_role($1, 'authenticated', null)", [userId]);
      await waitsAt("select auth.assign_role%");
      await maker.query("commit");
      await losing;
      expect((await apiKeys.list({ ownerId: userId })).map(({ revokedAt }) => revokedAt)).toEqual([expect.any(Date)]);

      await maker.query("begin");
      await maker.query("select auth.assign_role($1, 'authenticated', null)", [root.userId]);
      const made = expect(
        apiKeys.create({ role: "admin", ownerId: root.userId }, { ...from(), actor: root.userId }),
      ).rejects.toMatchObject({ code: "NOPER" });
      await waitsAt("%auth.create_api_key%");
      await maker.query("commit");
      await made;
    } finally {
      maker.release();
    }
  });

  test("can be revoked only by its owner", async () => {
    const { apiKeys } = opened.accounts;
    const [ada, bob] = [await newPerson(opened), await newPerson(opened)];
    const { id, key } = await apiKeys.create({ role: "authenticated", ownerId: ada.userId });
    await expect(apiKeys.revoke(id, { ownerId: bob.userId })).rejects.toMatchObject({ kind: "notFound" });
    expect(await callerOf(key)).not.toBeNull();
    await apiKeys.revoke(id, { ownerId: ada.userId });
    expect(await callerOf(key)).toBeNull();
  });

  test.each([
    [{ role: "postgres" }, { code: "WRONG", detail: "role" }],
    [
      { role: "anon", ownerId: "999999" },
      { code: "NTFND", detail: "owner" },
    ],
    [
      { role: "anon", expiresAt: new Date(0) },
      { code: "WRONG", detail: "expires" },
    ],
  ])("%o is refused", async (key, refusal) => {
    await expect(opened.accounts.apiKeys.create(key)).rejects.toMatchObject(refusal);
  });
});
