import { type AuthError, createClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import { describe, expect, test } from "vitest";
import { withClient } from "../../../../postgres/client/with-client.ts";
import { useDatabase } from "../../../database.ts";
import { useFolder } from "../../../fixture.ts";
import { SECRET } from "../../../secret.ts";
import { useService } from "../../../serve.ts";

const PASSWORD = "correct horse Battery 9";
const WITHOUT_SESSION = { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false };

const newEmail = () => `user-${crypto.randomUUID()}@example.org`;

/** The value of a call that must succeed. */
function succeeded<Result extends { data: unknown; error: AuthError | null }>(result: Result) {
  expect(result.error).toBeNull();
  return result.data as Extract<Result, { error: null }>["data"];
}

describe("supabase.auth.admin without a table of users", () => {
  const admin = () =>
    createClient(service.url, jwt.sign({ role: "service_role" }, SECRET), { auth: WITHOUT_SESSION }).auth.admin;
  const create = async (attributes: object) => succeeded(await admin().createUser(attributes)).user!;
  const signInWith = (credentials: { email: string } | { phone: string }) =>
    createClient(service.url, jwt.sign({ role: "anon" }, SECRET), {
      auth: WITHOUT_SESSION,
    }).auth.signInWithPassword({ ...credentials, password: PASSWORD });

  const database = useDatabase({ template: "platform" });
  const mailDir = useFolder("mail-");
  const service = useService({
    database,
    settings: {
      BASE_SCHEMA: "platform",
      MAIL_DIR: mailDir,
      // Enables phone numbers; nothing is sent here.
      SMS_WEBHOOK_URL: "http://127.0.0.1:9/texts",
      SMS_WEBHOOK_SECRET: `v1,whsec_${Buffer.alloc(32, 1).toString("base64")}`,
    },
  });

  test("a user whom rows refer to is kept, and the error names their table", async () => {
    const user = await create({ email: newEmail(), password: PASSWORD });
    await withClient(database.ownerUrl, (client) =>
      client.query(
        `create table public.invoices (payer uuid references auth.users (id)); insert into invoices values ('${user.id}')`,
      ),
    );
    const { error } = await admin().deleteUser(user.id);
    expect(error).toMatchObject({ status: 409, code: "conflict", message: expect.stringContaining("public.invoices") });
    await withClient(database.ownerUrl, (client) => client.query("drop table public.invoices"));
    expect((await admin().deleteUser(user.id)).error).toBeNull();
  });

  test("edge functions that do not exist are refused with a message at the top", async () => {
    const client = createClient(service.url, jwt.sign({ role: "anon" }, SECRET), { auth: WITHOUT_SESSION });
    const { error } = await client.functions.invoke("hello");
    expect(error.context.status).toBe(404);
    expect(await error.context.json()).toEqual({
      code: "NOT_FOUND",
      message: expect.stringContaining("Requested function was not found"),
    });
  });

  test("users have the metadata that they are created with, and addresses that change", async () => {
    const metadata = { color: "blue" };
    const user = await create({ email: newEmail(), password: PASSWORD, email_confirm: true, user_metadata: metadata });
    expect(user.user_metadata).toEqual(metadata);
    const email = newEmail();
    const changed = succeeded(await admin().updateUserById(user.id, { email, user_metadata: { color: null, a: 1 } }));
    expect(changed.user).toMatchObject({ email, user_metadata: { a: 1 }, email_confirmed_at: expect.any(String) });
    expect(succeeded(await signInWith({ email })).user!.id).toBe(user.id);
    const { error } = await admin().createUser({ email: email.toUpperCase() });
    expect(error?.code).toBe("email_exists");
  });

  test("a user with a phone number alone signs in with it", async () => {
    const phone = "4915112345";
    const user = await create({ phone: `+${phone}`, phone_confirm: true, password: PASSWORD, role: "admin" });
    expect(user).toMatchObject({ email: "", phone, role: "admin", phone_confirmed_at: expect.any(String) });
    expect(succeeded(await signInWith({ phone })).user!.id).toBe(user.id);
    expect((await admin().createUser({ phone })).error?.code).toBe("phone_exists");
  });

  test("users are listed, invited, and deleted with and without their rows", async () => {
    const user = await create({ email: newEmail(), user_metadata: { name: "Ada" } });
    succeeded(await admin().deleteUser(user.id, true));
    const deleted = succeeded(await admin().getUserById(user.id)).user!;
    expect(deleted).toMatchObject({ user_metadata: {}, deleted_at: expect.any(String) });
    expect(JSON.stringify(deleted)).not.toContain(user.email!);
    const { user: invited } = succeeded(await admin().inviteUserByEmail(user.email!));
    const { users } = succeeded(await admin().listUsers({ perPage: 2 }));
    expect(users.map(({ id }) => id)).toEqual([invited!.id, user.id]);
    for (const { id } of users) succeeded(await admin().deleteUser(id));
    expect((await admin().getUserById(user.id)).error?.code).toBe("user_not_found");
  });
});
