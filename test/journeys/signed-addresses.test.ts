// A signature is never more than its signer: each address that is signed or sent is tried after each event.

import { randomUUID } from "node:crypto";
import { createClient, type SupabaseClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import { beforeAll, describe, expect, test } from "vitest";
import { useFixture, useFolder } from "../fixture.ts";
import { MailFolder } from "../rest-gateway/sign-in/auth-v1/mail-folder.ts";
import {
  type Application,
  approved,
  browserOf,
  decide,
  newApplication,
  newPerson,
  openOAuth,
  PASSWORD,
  type Person,
  requestAuthorization,
  signedIn,
  supabaseFor,
} from "../rest-gateway/sign-in/oauth/open-oauth.ts";
import { serve } from "../serve.ts";
import { until } from "../until.ts";
import { digestOf, EVENTS, type Event, PICTURE, type Signer, STORAGE_ADDRESSES } from "./signed-addresses/addresses.ts";

let application: Application;
let operator: SupabaseClient;
let other: SupabaseClient;

const POLICIES = `
  create policy "open to all users" on storage.objects to authenticated
    using (bucket_id = 'open') with check (bucket_id = 'open');
  create policy "of the owner" on storage.objects to authenticated
    using (bucket_id = 'owned' and owner_id = (select auth.jwt()) ->> 'sub')
    with check (bucket_id = 'owned' and owner_id = (select auth.jwt()) ->> 'sub');`;

const folder = useFolder("files-");
const mails = useFixture(() => MailFolder.open());
const settings = () => ({
  ...{ STORAGE_DIR: folder, MAIL_DIR: mails.path, MAIL_INTERVAL_SECONDS: "0", AUTH_AUTOCONFIRM: "false" },
  ...{ SITE_URL: "https://app.example.org" },
});
const fixture = useFixture(() => openOAuth(settings()));
const rotated = useFixture(() => serve(fixture.database, { ...settings(), JWT_SECRET: randomUUID().repeat(2) }));
beforeAll(async () => {
  await fixture.owner.query(
    `insert into storage.buckets (id, name) values ('open', 'open'), ('owned', 'owned'); ${POLICIES}`,
  );
  operator = supabaseFor(fixture, "service_role");
  application = await newApplication(fixture);
  other = (await signedIn(fixture, await newPerson(fixture))).supabase;
});

const assignRole = (userId: string, role: string) =>
  fixture.owner.query("select auth.assign_role($1, $2, null)", [userId, role]);

/** A user who signs; by the event, with a token of an application or with an API key. */
async function newSigner(event: Event): Promise<{ readonly person: Person; readonly signer: Signer }> {
  const person = await newPerson(fixture);
  if (event === "demoted") await assignRole(person.userId, "admin");
  const token = await tokenFor(event, person);
  const client = createClient(fixture.url, token, { auth: { persistSession: false, autoRefreshToken: false } });
  return { person, signer: { url: fixture.url, token, client } };
}

async function tokenFor(event: Event, person: Person): Promise<string> {
  if (event === "grant withdrawn")
    return (await approved(fixture, application, person, { scope: "read write" })).tokens.access_token;
  if (event !== "API key revoked") return (await signedIn(fixture, person)).token;
  const key = randomUUID().repeat(2);
  await fixture.owner.query(
    "insert into auth.api_keys (key_hash, prefix, role, owner_id) values ($1, 'test', 'authenticated', $2)",
    [digestOf(key), person.userId],
  );
  return key;
}

type Signed = { readonly person: Person; readonly userId: string };

/** The events that concern the account, the grant, the key or the policies. */
const HAPPENINGS: Partial<Record<Event, (signed: Signed) => Promise<unknown>>> = {
  "policy changed": () =>
    fixture.owner.query(
      `drop policy "open to all users" on storage.objects; drop policy "of the owner" on storage.objects`,
    ),
  promoted: ({ userId }) => assignRole(userId, "admin"),
  demoted: ({ userId }) => assignRole(userId, "authenticated"),
  banned: ({ person }) => updateAccount(person, { ban_duration: "24h" }),
  "account deleted": async ({ person }) => {
    expect((await operator.auth.admin.deleteUser(await uuidOf(person))).error).toBeNull();
  },
  "grant withdrawn": ({ userId }) =>
    fixture.owner.query("select auth.withdraw_oauth_grant($1, $2, null)", [userId, application.id]),
  "API key revoked": ({ userId }) =>
    fixture.owner.query("update auth.api_keys set revoked_at = now() where owner_id = $1", [userId]),
};

async function uuidOf({ userId }: Person): Promise<string> {
  const { rows } = await fixture.owner.query("select id from auth.users where user_id = $1", [userId]);
  return rows[0].id;
}

async function updateAccount(person: Person, changes: object): Promise<void> {
  const { error } = await operator.auth.admin.updateUserById(await uuidOf(person), changes);
  expect(error).toBeNull();
}

/** Makes the event happen to the object that an address names. */
async function happenToObject(event: Event, bucket: string, name: string): Promise<void> {
  const files = operator.storage.from(bucket);
  const upload = (client: SupabaseClient, path: string, upsert = false) =>
    client.storage.from(bucket).upload(path, PICTURE, { contentType: "image/png", upsert });
  const succeed = async (work: PromiseLike<{ error: unknown }>) => expect((await work).error).toBeNull();
  if (event === "overwritten") return succeed(upload(operator, name, true));
  if (event === "deleted" || event.startsWith("deleted and")) await files.remove([name]);
  if (event === "deleted and replaced by another user") await succeed(upload(other, name));
  if (!event.startsWith("moved")) return;
  await succeed(files.move(name, `${name}.moved`));
  await succeed(upload(other, `${name}.other`));
  await succeed(files.move(`${name}.other`, name));
}

describe("addresses of files", () => {
  test.each(EVENTS)("are worth nothing after: %s", async (event) => {
    const { person, signer } = await newSigner(event);
    const signed = await Promise.all(
      Object.entries(STORAGE_ADDRESSES)
        .filter(([, { except }]) => except?.[event] === undefined)
        .map(async ([kind, { bucket, isThere, sign }]) => {
          const name = `${randomUUID()}.png`;
          const put = () => signer.client.storage.from(bucket).upload(name, PICTURE, { contentType: "image/png" });
          if (isThere) expect((await put()).error).toBeNull();
          return { kind, bucket, name, use: await sign(signer, name) };
        }),
    );
    for (const { bucket, name } of signed) await happenToObject(event, bucket, name);
    await HAPPENINGS[event]?.({ person, userId: person.userId });
    const url = event === "key of tokens rotated" ? rotated.url : fixture.url;
    try {
      // Accounts and keys are remembered for some seconds.
      if (["promoted", "demoted", "banned", "account deleted", "grant withdrawn", "API key revoked"].includes(event)) {
        for (const { kind, use } of signed)
          if (kind === "download" || kind === "S3 presigned GET") await until(async () => !(await use(url)));
      }
      const results = [];
      for (const { kind, use } of signed) results.push([kind, await use(url)]);
      expect(results).toEqual(signed.map(({ kind }) => [kind, event === "nothing"]));
    } finally {
      if (event === "policy changed") await fixture.owner.query(POLICIES);
    }
  });
});

/** A link or a credential that a person has received. */
type AccountAddress = {
  /** Returns a function that uses the address: the access token that it leads to, or null. */
  make(): Promise<{ readonly person: Person; readonly use: () => Promise<string | null> }>;
  readonly except: Partial<Record<Event, string>>;
};

const OF_FILES = "accounts are no objects of storage";
const NOT_OF_APPLICATION = {
  "grant withdrawn": "no application has caused it",
  "API key revoked": "no API key has caused it",
};
const NO_OBJECT = { deleted: OF_FILES, overwritten: OF_FILES, "policy changed": "no policy of a table decides it" };
const RANDOM = { "key of tokens rotated": "it is a random secret in the database, which no key has signed" };
const OF_MAIL = { ...NOT_OF_APPLICATION, ...NO_OBJECT, ...RANDOM };
const OF_OAUTH = {
  ...{ ...NO_OBJECT, ...RANDOM, "API key revoked": NOT_OF_APPLICATION["API key revoked"] },
  ...{ "moved, and another one moved there": "it names the account, not the address" },
};

async function openLink(email: string, count: number): Promise<string | null> {
  const { link } = (await mails.receive(email, count)).at(-1)!;
  const response = await fetch(link, { redirect: "manual" });
  const target = new URL(response.headers.get("location") ?? "about:blank");
  return new URLSearchParams(target.hash.slice(1)).get("access_token");
}

const mailed =
  (send: (person: Person) => PromiseLike<{ error: unknown }>): AccountAddress["make"] =>
  async () => {
    const person = await newPerson(fixture);
    expect((await send(person)).error).toBeNull();
    await mails.receive(person.email);
    return { person, use: () => openLink(person.email, 1) };
  };

/** The mail comes with a new account. */
const invited =
  (send: (email: string) => PromiseLike<{ error: unknown }>): AccountAddress["make"] =>
  async () => {
    const email = `user-${randomUUID()}@example.org`;
    expect((await send(email)).error).toBeNull();
    const { rows } = await fixture.owner.query("select user_id::text as id from auth.users where email = $1", [email]);
    await mails.receive(email);
    return { person: { email, userId: rows[0].id }, use: () => openLink(email, 1) };
  };

const anonymous = () => supabaseFor(fixture);

const postForm = async (fields: Record<string, string>): Promise<string | null> => {
  const response = await fetch(`${fixture.url}/auth/v1/oauth/token`, {
    method: "POST",
    body: new URLSearchParams(fields),
  });
  return ((await response.json()) as { access_token?: string }).access_token ?? null;
};

const ACCOUNT_ADDRESSES: Readonly<Record<string, AccountAddress>> = {
  "link of confirmation": {
    make: invited((email) => anonymous().auth.signUp({ email, password: PASSWORD })),
    except: OF_MAIL,
  },
  "link of recovery": { make: mailed(({ email }) => anonymous().auth.resetPasswordForEmail(email)), except: OF_MAIL },
  "magic link": { make: mailed(({ email }) => anonymous().auth.signInWithOtp({ email })), except: OF_MAIL },
  "link of invitation": { make: invited((email) => operator.auth.admin.inviteUserByEmail(email)), except: OF_MAIL },
  "code of OAuth": {
    async make() {
      const person = await newPerson(fixture);
      const { authorization, landed } = await authorize(person);
      const fields = { code: landed.searchParams.get("code")!, redirect_uri: "https://films.example/callback" };
      const form = { ...fields, client_id: application.id, code_verifier: authorization.verifier };
      return { person, use: () => postForm({ grant_type: "authorization_code", ...form }) };
    },
    except: OF_OAUTH,
  },
  "refresh token of OAuth": {
    async make() {
      const person = await newPerson(fixture);
      const { tokens } = await approved(fixture, application, person);
      const form = { refresh_token: tokens.refresh_token!, client_id: application.id };
      return { person, use: () => postForm({ grant_type: "refresh_token", ...form }) };
    },
    except: OF_OAUTH,
  },
};

async function authorize(person: Person) {
  const authorization = await requestAuthorization(application);
  return { authorization, landed: await decide(fixture, await browserOf(fixture, person), authorization) };
}

const removeAccount = async (person: Person) => {
  expect((await operator.auth.admin.deleteUser(await uuidOf(person))).error).toBeNull();
};
const addAccount = async ({ email }: Person) => {
  const { error } = await operator.auth.admin.createUser({ email, password: PASSWORD, email_confirm: true });
  expect(error).toBeNull();
};

/** The events that concern accounts, besides those of signers. */
const ACCOUNT_HAPPENINGS: typeof HAPPENINGS = {
  ...HAPPENINGS,
  "deleted and replaced by another user": async ({ person }) => {
    await removeAccount(person);
    await addAccount(person);
  },
  "moved, and another one moved there": async ({ person }) => {
    await updateAccount(person, { email: `user-${randomUUID()}@example.org`, email_confirm: true });
    await addAccount(person);
  },
};

const ROLES: Partial<Record<Event, string>> = { promoted: "admin", demoted: "authenticated" };

describe("addresses of accounts", () => {
  const cells = Object.entries(ACCOUNT_ADDRESSES).flatMap(([kind, { except }]) =>
    EVENTS.filter((event) => except[event] === undefined).map((event) => [kind, event] as const),
  );

  test.each(cells)("%s, after: %s", async (kind, event) => {
    const { person, use } = await ACCOUNT_ADDRESSES[kind]!.make();
    const { userId } = person;
    if (event === "demoted") await assignRole(userId, "admin");
    await ACCOUNT_HAPPENINGS[event]?.({ person, userId });
    const token = await use();
    if (event !== "nothing" && ROLES[event] === undefined) return expect(token).toBeNull();
    // It signs in to the account as it is now, or is refused.
    if (event === "nothing") expect(token).not.toBeNull();
    if (token !== null) {
      const { role, sub } = jwt.decode(token) as jwt.JwtPayload;
      expect([role, sub]).toEqual([ROLES[event] ?? "authenticated", userId]);
    }
  });
});
