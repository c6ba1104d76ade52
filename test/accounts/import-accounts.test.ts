import { describe, expect, test } from "vitest";
import { importAccounts, readAccountRows } from "../../accounts/import-accounts.ts";
import { useFixture } from "../fixture.ts";
import { from, openAccounts } from "./open-accounts.ts";

const opened = useFixture(openAccounts);

const ADA = "8a2f5a54-6a8e-4b8f-9f6e-3f1f6f0c1a01";
const BOB = "8a2f5a54-6a8e-4b8f-9f6e-3f1f6f0c1a02";
const BCRYPT = "$2b$04$EGdrhbKUv8Oc9vGiXX0HQOxSg445d458Muh7DAHskb6QbtCvdxcie";
const PASSWORD = "correctbatteryhorsestapler";

/** A data dump in the format of pg_dump. */
const DUMP = `--
COPY auth.identities (provider_id, user_id, identity_data, provider, last_sign_in_at, id) FROM stdin;
${ADA}\t${ADA}\t{"sub": "${ADA}", "email": "ada@example.org"}\temail\t\\N\t${BOB}
4711\t${BOB}\t{"sub": "4711"}\tacme\t2026-01-01 10:00:00+00\t${ADA}
\\.

COPY auth.users (instance_id, id, aud, role, email, encrypted_password, email_confirmed_at, raw_app_meta_data, raw_user_meta_data, created_at, phone, banned_until, deleted_at, is_sso_user, is_anonymous) FROM stdin;
00000000-0000-0000-0000-000000000000\t${ADA}\tauthenticated\tauthenticated\tada@example.org\t${BCRYPT}\t2025-03-04 05:06:07+00\t{"provider": "email", "providers": ["email"], "plan": "free"}\t{"full_name": "Ada\\\\nL.\\\\tx"}\t2024-02-03 04:05:06+00\t\\N\t\\N\t\\N\tf\tf
00000000-0000-0000-0000-000000000000\t${BOB}\tauthenticated\tauthenticated\tbob@example.org\t\\N\t\\N\t{}\t\\N\t2024-02-03 04:05:06+00\t\\N\t\\N\t\\N\tf\tf
00000000-0000-0000-0000-000000000000\t8a2f5a54-6a8e-4b8f-9f6e-3f1f6f0c1a03\tauthenticated\tauthenticated\tnobody\t\\N\t\\N\t{}\t{}\t2024-02-03 04:05:06+00\t\\N\t\\N\t\\N\tf\tf
00000000-0000-0000-0000-000000000000\t8a2f5a54-6a8e-4b8f-9f6e-3f1f6f0c1a04\tauthenticated\tauthenticated\t\\N\t\\N\t\\N\t{}\t{}\t2024-02-03 04:05:06+00\t\\N\t\\N\t\\N\tf\tt
\\.
`;

describe("an import of accounts", () => {
  test("keeps ids, confirmed addresses, metadata and times, and links identities once their provider exists", async () => {
    const rows = readAccountRows(DUMP);
    expect(await importAccounts(opened.asOwner, rows)).toEqual({
      users: { imported: 2, refused: 1, skipped: 1 },
      identities: { skipped: 1, no_provider: 1 },
      missingProviders: ["acme"],
      refused: ["nobody"],
    });
    const { rows: accounts } = await opened.owner.query(
      `select account.id, email_confirmed_at is not null as confirmed, raw_user_meta_data as metadata, raw_app_meta_data as app,
        account.created_at, users.name from auth.users as account join public.users on users.id = user_id order by account.id`,
    );
    const created = new Date("2024-02-03T04:05:06Z");
    expect(accounts).toEqual([
      {
        id: ADA,
        confirmed: true,
        metadata: { full_name: "Ada\nL.\tx" },
        app: { plan: "free" },
        created_at: created,
        name: "Ada\nL.\tx",
      },
      { id: BOB, confirmed: false, metadata: {}, app: {}, created_at: created, name: "bob" },
    ]);

    await opened.owner.query(
      "insert into auth.providers (name, kind, issuer, client_id) values ('acme', 'oidc', 'https://id.example.org', 'us')",
    );
    expect(await importAccounts(opened.asOwner, rows)).toMatchObject({
      users: { known: 2, refused: 1, skipped: 1 },
      identities: { imported: 1, skipped: 1 },
    });
    const { rows: linked } = await opened.owner.query(
      "select subject from auth.identities join auth.users as account using (user_id) where account.id = $1",
      [BOB],
    );
    expect(linked).toEqual([{ subject: "4711" }]);
  });

  test("keeps passwords, whose hashes are replaced at the next sign-in", async () => {
    const email = "carl@example.org";
    const user = { id: "8a2f5a54-6a8e-4b8f-9f6e-3f1f6f0c1a05", email, encrypted_password: BCRYPT };
    await importAccounts(opened.asOwner, readAccountRows(JSON.stringify([user])));
    const { accounts, owner } = opened;
    const signIn = (password: string) =>
      accounts.login({ username: email, password }, from(), accounts.sessionTokens.open);
    const hash = async () =>
      (await owner.query("select password_hash from auth.users where email = $1", [email])).rows[0].password_hash;
    await expect(signIn("wrong")).rejects.toMatchObject({ code: "INVALID_CREDENTIALS" });
    expect(await hash()).toBe(BCRYPT);
    expect((await signIn(PASSWORD)).sessionId).toBeTruthy();
    expect(await hash()).toMatch(/^\$argon2id\$/);
    expect((await signIn(PASSWORD)).sessionId).toBeTruthy();
  });

  test.each([
    ["INSERT INTO auth.users VALUES (1);", "The file has INSERT statements. Only dumps with COPY"],
    ["id,email\n1,ada@example.org", "The file has no users. Only dumps with COPY and JSON can be imported."],
    ['{"users": [', "The file is no valid JSON: "],
    ["[]", "The file has no users"],
    ['{"users": 1}', "The JSON is no list of users"],
  ])("of %s says what the file should be", (text, message) => {
    expect(() => readAccountRows(text)).toThrow(message);
  });
});
